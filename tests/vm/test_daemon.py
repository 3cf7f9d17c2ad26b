# SPDX-License-Identifier: GPL-2.0
"""memsluiced and the real module: both come and go, so do cgroups, and policies hold."""

import itertools
import json
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testbed.agent import Command
from testbed.vm import Vm

pytestmark = pytest.mark.machine("two-tier")
MODULE = "/opt/memsluice/modules/memsluice.ko"
CONFIG = "/etc/memsluice/memsluiced.toml"
SOCKET = "/run/memsluice.api"
NOBODY = 65534
PATIENCE_SECONDS = 30  # an emulated machine, and a host that has other things to do

# The guest's Python has sockets, but no json.
CLIENT = f"""
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect("{SOCKET}")
answers = connection.makefile("r")
for line in sys.stdin:
    connection.sendall(line.encode())
    print(answers.readline(), end="", flush=True)
"""


CHURN = """
import os, time
os.chdir("/sys/fs/cgroup/daemon.slice")
end = time.monotonic() + 10
while time.monotonic() < end:
    for name in "abcd": os.mkdir(name)
    for name in "abcd": os.rmdir(name)
os.mkdir("last")
"""


class ApiError(Exception):
    def __init__(self, error: dict[str, str]) -> None:
        super().__init__(f"{error['code']}: {error['object']}: {error['message']}")
        self.code = error["code"]


class Client:
    """One connection to the daemon, held by a process in the guest."""

    def __init__(self, vm: Vm, user_id: int | None = None) -> None:
        self._vm = vm
        self._process = vm.start(["python3", "-c", CLIENT], user_id=user_id, cwd="/")
        self._ids = itertools.count(1)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        request = {"id": number, "method": method, "params": params}
        self._process.write(json.dumps(request).encode() + b"\n")
        assert self._vm.agent.wait_for(
            lambda: self._process.stdout.count("\n") >= number or self._process.status is not None,
            PATIENCE_SECONDS,
        ), f"no answer to {request}"
        assert self._process.status is None, self._process.stderr
        answer = json.loads(self._process.stdout.splitlines()[number - 1])
        assert answer["id"] == number
        if "error" in answer:
            raise ApiError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        self._process.close_stdin()
        self._process.wait(timeout=PATIENCE_SECONDS)


class Daemon:
    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.config = ""
        self._process: Command | None = None
        self._client: Client | None = None

    def configure(self, text: str) -> None:
        self.config = text
        text = f'[api]\nsocket = "{SOCKET}"\ngroup = "root"\n{text}'
        self.vm.put(text.encode(), CONFIG)

    def start(self, *wrapper: str) -> None:
        command = [*wrapper, "memsluiced", "--config", CONFIG]
        self._process = self.vm.start(command)
        self.wait_for_log("listens at")

    @property
    def log(self) -> str:
        assert self._process
        return self._process.stderr

    def wait_for_log(self, text: str) -> None:
        assert self.vm.agent.wait_for(
            lambda: text in self.log or self._process.status is not None, PATIENCE_SECONDS
        ), f"no {text!r} in:\n{self.log}"
        assert text in self.log, self.log

    def end(self, number: int = signal.SIGTERM) -> None:
        if self._client:
            self._client.close()
        if self._process:
            self._process.kill(number)
            self._process.wait(timeout=PATIENCE_SECONDS)
        self._process = self._client = None

    def signal(self, number: int) -> None:
        assert self._process
        self._process.kill(number)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        if not self._client:
            self._client = Client(self.vm)
        return self._client.call(method, **params)

    def tenants(self) -> dict[str, Any]:
        return {tenant["cgroup"]: tenant for tenant in self.call("tenant.list")["tenants"]}


def eventually(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def load(vm: Vm) -> None:
    vm.run(f"grep -qw ^memsluice /proc/modules || insmod {MODULE}")


def make_cgroups(vm: Vm, *paths: str) -> None:
    vm.run(["mkdir", "-p", *(f"/sys/fs/cgroup{path}" for path in paths)])


def tenants_file(vm: Vm) -> str:
    """What the module says of policies, without the daemon."""
    lines = vm.run("cat /proc/memsluice/tenants").stdout.splitlines()[1:]
    # Id, path, tiering, fast limit, rates; what follows are counters.
    return "\n".join(" ".join(line.split(" ")[:6]) for line in lines)


@pytest.fixture
def daemon(vm: Vm) -> Iterator[Daemon]:
    load(vm)
    vm.run("mkdir -p /run /etc/memsluice")
    make_cgroups(vm, "/daemon.slice")
    vm.run("echo +memory > /sys/fs/cgroup/daemon.slice/cgroup.subtree_control")
    daemon = Daemon(vm)
    daemon.configure("")
    yield daemon
    daemon.end()
    vm.run("find /sys/fs/cgroup/daemon.slice -depth -type d -exec rmdir {} +")


def test_a_killed_daemon_that_starts_again_changes_nothing(daemon: Daemon) -> None:
    make_cgroups(daemon.vm, "/daemon.slice/configured", "/daemon.slice/set")
    daemon.configure('[[tenant]]\ncgroup = "/daemon.slice/configured"\nfast_limit = "25%"\n')
    daemon.start()
    daemon.call("tenant.set", cgroup="/daemon.slice/set", fast_limit_bytes=64 << 20)
    before = tenants_file(daemon.vm)
    assert before.count("/daemon.slice/") == 2, before
    daemon.end(signal.SIGKILL)
    assert tenants_file(daemon.vm) == before

    daemon.start("strace", "-f", "-o", "/tmp/ioctls", "-e", "trace=ioctl")
    tenants = daemon.tenants()
    assert tenants["/daemon.slice/configured"]["origin"] == "config"
    assert tenants["/daemon.slice/set"]["origin"] == "module"
    assert tenants["/daemon.slice/set"]["policy"]["fast_limit_bytes"] == 64 << 20
    assert tenants_file(daemon.vm) == before
    ioctls = daemon.vm.run("cat /tmp/ioctls").stdout
    assert "0xb6, 0x12, 0)" in ioctls, "strace has seen the list of tenants being read"
    assert "0xb6, 0x10, 0)" not in ioctls, "a tenant has been set"
    assert "0xb6, 0x11, 0)" not in ioctls, "a tenant has been cleared"


def test_cgroups_are_tenants_as_they_come_and_go(daemon: Daemon) -> None:
    daemon.configure('[[tenant]]\ncgroup = "/daemon.slice/*.scope"\nfast_limit = "8M"\n')
    daemon.start()
    assert daemon.tenants() == {}
    paths = [f"/daemon.slice/{number}.scope" for number in range(10)]
    make_cgroups(daemon.vm, *paths, "/daemon.slice/other.service")
    eventually(lambda: sorted(daemon.tenants()) == paths, "the new cgroups are tenants", 10)
    assert daemon.tenants()[paths[0]]["policy"]["fast_limit_bytes"] == 8 << 20
    daemon.vm.run("rmdir /sys/fs/cgroup/daemon.slice/[0-7].scope")
    eventually(lambda: sorted(daemon.tenants()) == paths[8:], "those that ended are none", 10)


def test_cgroups_that_live_shortly_do_not_disturb(daemon: Daemon) -> None:
    daemon.configure('[daemon]\nrescan_ms = 50\n[[tenant]]\ncgroup = "/daemon.slice/*"\n')
    daemon.start()
    daemon.vm.run(["python3", "-c", CHURN], timeout=300)
    eventually(lambda: list(daemon.tenants()) == ["/daemon.slice/last"], "the last one is a tenant")
    assert "<3>" not in daemon.log, daemon.log


def test_the_module_may_go_and_come_back(daemon: Daemon) -> None:
    make_cgroups(daemon.vm, "/daemon.slice/a", "/daemon.slice/b")
    daemon.configure(
        '[[tenant]]\ncgroup = "/daemon.slice/a"\nfast_limit = "8M"\n'
        "[module]\nfast_free_high_percent = 30\nfast_free_low_percent = 20\n"
    )
    daemon.start()
    daemon.call("tenant.set", cgroup="/daemon.slice/b", promote_mib_per_s=7)
    for _ in range(3):
        daemon.vm.run("rmmod memsluice")
        assert daemon.call("status")["module"]["loaded"] is False
        with pytest.raises(ApiError, match="unavailable"):
            daemon.call("tenant.list")
        load(daemon.vm)
        eventually(
            lambda: len(daemon.tenants()) == 2, "the tenants are those of before", PATIENCE_SECONDS
        )
        tenants = daemon.tenants()
        assert tenants["/daemon.slice/a"]["policy"]["fast_limit_bytes"] == 8 << 20
        assert tenants["/daemon.slice/b"]["policy"]["promote_mib_per_s"] == 7
        knobs = daemon.vm.run("cat /sys/kernel/memsluice/fast_free_*_percent").stdout
        assert knobs.split() == ["30", "20"]


def test_the_daemon_waits_for_the_module(daemon: Daemon) -> None:
    make_cgroups(daemon.vm, "/daemon.slice/a")
    daemon.configure('[[tenant]]\ncgroup = "/daemon.slice/a"\n')
    daemon.vm.run("rmmod memsluice")
    daemon.start()
    assert daemon.call("status")["module"]["error"]["code"] == "unavailable"
    load(daemon.vm)
    eventually(
        lambda: daemon.call("status")["module"]["loaded"] and "/daemon.slice/a" in daemon.tenants(),
        "the module is taken up",
    )


def test_sighup_takes_all_of_a_configuration_or_nothing(daemon: Daemon) -> None:
    make_cgroups(daemon.vm, "/daemon.slice/a", "/daemon.slice/b")
    tenant = '[[tenant]]\ncgroup = "/daemon.slice/{}"\nfast_limit = "{}"\n'
    daemon.configure(tenant.format("a", "8M") + "[module]\nfast_free_high_percent = 10\n")
    daemon.start()
    daemon.call("tenant.set", cgroup="/daemon.slice/b", fast_limit_bytes=1 << 20)

    before = tenants_file(daemon.vm)
    for bad in (
        tenant.format("b", "9Q"),
        tenant.format("b", "9M") + "[module]\nno_such = 1\n",
        # The module takes the first value and refuses the second.
        tenant.format("b", "9M") + "[module]\ncooling_scans = 77\nscan_cpu_percent = 101\n",
    ):
        daemon.configure(bad)
        refused = daemon.log.count("not reloaded")
        daemon.signal(signal.SIGHUP)
        eventually(lambda: daemon.log.count("not reloaded") > refused, "it is refused")
        with pytest.raises(ApiError, match="bad_request"):
            daemon.call("config.reload")
        assert tenants_file(daemon.vm) == before
    assert daemon.vm.run("cat /sys/kernel/memsluice/cooling_scans").stdout != "77\n"

    # Marks that bound one another, in the order that only works backwards.
    daemon.configure(
        tenant.format("b", "9M")
        + "[module]\nfast_free_high_percent = 2\nfast_free_low_percent = 1\n"
    )
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log("configuration reloaded")
    tenants = daemon.tenants()
    assert list(tenants) == ["/daemon.slice/b"]
    assert tenants["/daemon.slice/b"]["origin"] == "config"
    assert tenants["/daemon.slice/b"]["policy"]["fast_limit_bytes"] == 9 << 20
    knobs = daemon.vm.run("cat /sys/kernel/memsluice/fast_free_*_percent").stdout
    assert knobs.split() == ["2", "1"]
    assert daemon.call("config.reload") == {"changed": False}


def test_pages_of_a_process_and_of_a_tenant_move(daemon: Daemon) -> None:
    make_cgroups(daemon.vm, "/daemon.slice/a")
    daemon.start()
    held = daemon.vm.start(
        "echo $$ > /sys/fs/cgroup/daemon.slice/a/cgroup.procs; "
        "exec python3 -c 'data = bytearray(b\"x\") * (32 << 20); "
        "print(\"ready\", flush=True); input()'"
    )
    assert daemon.vm.agent.wait_for(lambda: "ready" in held.stdout, PATIENCE_SECONDS)
    pid = int(daemon.vm.run("cat /sys/fs/cgroup/daemon.slice/a/cgroup.procs").stdout)

    request = daemon.call("migrate", pid=pid, target_node=1)["request"]
    ended = daemon.call("request.wait", id=request["id"])["request"]
    assert ended["state"] == "done", ended
    assert ended["moved_pages"] >= (32 << 20) // 4096 * 0.9, ended
    assert ended["seen_pages"] == ended["total_pages"], ended

    daemon.call("tenant.set", cgroup="/daemon.slice/a", tiering=False)
    assert daemon.tenants()["/daemon.slice/a"]["node_bytes"]["1"] > 28 << 20
    request = daemon.call("migrate", cgroup="/daemon.slice/a", source_node=1, target_node=0)
    ended = daemon.call("request.wait", id=request["request"]["id"])["request"]
    assert ended["state"] == "done", ended
    assert daemon.tenants()["/daemon.slice/a"]["node_bytes"]["0"] > 28 << 20
    assert len(daemon.call("request.list")["requests"]) == 2
    daemon.vm.run("rmmod memsluice")  # what has ended does not hold the module
    held.close_stdin()
    held.wait(timeout=PATIENCE_SECONDS)


def test_a_cgroup_may_end_while_its_pages_move(daemon: Daemon) -> None:
    daemon.start()
    for _ in range(5):
        make_cgroups(daemon.vm, "/daemon.slice/a")
        held = daemon.vm.start(
            "echo $$ > /sys/fs/cgroup/daemon.slice/a/cgroup.procs; "
            "exec python3 -c 'data = bytearray(b\"x\") * (16 << 20); print(\"ready\", flush=True); "
            "input()'"
        )
        assert daemon.vm.agent.wait_for(lambda: "ready" in held.stdout, PATIENCE_SECONDS)
        daemon.call("tenant.set", cgroup="/daemon.slice/a")
        request = daemon.call("migrate", cgroup="/daemon.slice/a", source_node=0, target_node=1)
        held.kill()
        held.wait(timeout=PATIENCE_SECONDS)
        daemon.vm.run("until rmdir /sys/fs/cgroup/daemon.slice/a; do sleep 0.1; done 2> /dev/null")
        ended = daemon.call("request.wait", id=request["request"]["id"])["request"]
        assert ended["state"] in ("done", "failed"), ended
        eventually(lambda: daemon.tenants() == {}, "the tenant goes with its cgroup")
    assert "<3>" not in daemon.log, daemon.log


def test_unprivileged_users_may_look_and_not_change(daemon: Daemon) -> None:
    make_cgroups(daemon.vm, "/daemon.slice/a")
    daemon.start()
    client = Client(daemon.vm, user_id=NOBODY)
    assert client.call("hello")["may_change"] is False
    assert client.call("status")["module"]["loaded"] is True
    for method, params in (
        ("tenant.set", {"cgroup": "/daemon.slice/a"}),
        ("tenant.clear", {"cgroup": "/daemon.slice/a"}),
        ("migrate", {"pid": 1, "target_node": 0}),
        ("request.cancel", {"id": 1}),
        ("config.reload", {}),
    ):
        with pytest.raises(ApiError, match="denied"):
            client.call(method, **params)
    assert daemon.tenants() == {}
    client.close()
