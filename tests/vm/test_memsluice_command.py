# SPDX-License-Identifier: GPL-2.0
"""The command memsluice against the real daemon and module."""

import json
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from testbed.agent import Command, Result
from testbed.daemon import PATIENCE_SECONDS, start_daemon
from testbed.vm import Vm

pytestmark = pytest.mark.machine("two-tier")
MODULE = "/opt/memsluice/modules/memsluice.ko"
TENANT = "/command.slice"
NOBODY = 65534

# Fills so many MiB, says so, and then does nothing.
HOLDER = """
import sys
memory = bytearray(b"x") * (int(sys.argv[1]) << 20)
print("filled", flush=True)
sys.stdin.read()
"""


class Holder:
    """A process in the tenant's cgroup whose memory lies on one node."""

    def __init__(self, vm: Vm, mib: int, node: int) -> None:
        self._vm = vm
        enter = f"echo $$ > /sys/fs/cgroup{TENANT}/cgroup.procs && echo $$"
        process = vm.start(f"{enter} && exec numactl -m {node} python3 -c '{HOLDER}' {mib}")
        assert vm.agent.wait_for(
            lambda: "filled" in process.stdout or process.status is not None, PATIENCE_SECONDS
        )
        assert process.status is None, process.stderr
        self.pid = int(process.stdout.split()[0])

    def mib_on(self, node: int) -> float:
        maps = self._vm.run(f"cat /proc/{self.pid}/numa_maps").stdout
        return sum(int(count) for count in re.findall(rf" N{node}=(\d+)", maps)) / 256


class Machine:
    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self._daemon: Command | None = None

    def load(self) -> None:
        self.vm.run(f"grep -qw ^memsluice /proc/modules || insmod {MODULE}")

    def start_daemon(self) -> None:
        self._daemon = start_daemon(self.vm, '[api]\ngroup = "root"\n')

    def end_daemon(self, number: int = signal.SIGTERM) -> None:
        if self._daemon:
            self._daemon.kill(number)
            self._daemon.wait(timeout=PATIENCE_SECONDS)
        self._daemon = None

    def memsluice(self, arguments: str, **options: Any) -> Result:
        return self.vm.run(f"memsluice {arguments}", check=False, cwd="/", **options)

    def answer(self, arguments: str) -> Any:
        result = self.memsluice(f"{arguments} --json")
        assert result.status == 0, result.stderr
        assert result.stdout.count("\n") == 1
        return json.loads(result.stdout)

    def findings(self) -> tuple[int, dict[str, Any]]:
        result = self.memsluice("doctor --json")
        findings = json.loads(result.stdout)["findings"]
        return result.status, {finding["id"]: finding for finding in findings}


@pytest.fixture
def machine(vm: Vm) -> Iterator[Machine]:
    machine = Machine(vm)
    machine.load()
    vm.run(f"mkdir -p /sys/fs/cgroup{TENANT}")
    machine.start_daemon()
    yield machine
    machine.end_daemon()
    machine.load()
    group = f"/sys/fs/cgroup{TENANT}"
    vm.run(f"echo 1 > {group}/cgroup.kill; until rmdir {group}; do sleep 0.1; done")


def test_status_shows_daemon_module_and_nodes(machine: Machine) -> None:
    status = machine.answer("status")
    assert status["module"]["loaded"]
    assert [(node["id"], node["tier"]) for node in status["nodes"]] == [(0, 0), (1, 1)]
    text = machine.memsluice("status").stdout
    assert f"module  {status['module']['version']}, ABI 1: migrate " in text


def test_version_agrees_with_daemon_and_module(machine: Machine) -> None:
    versions = machine.answer("version")
    assert versions["daemon"]["version"] == versions["module"]["version"] == versions["version"]


def test_a_tenant_is_set_shown_and_cleared(machine: Machine) -> None:
    result = machine.memsluice(f"tenant set {TENANT} --fast-limit 96M --promote-mib-per-s 12")
    assert result.status == 0, result.stderr
    assert "fast limit 96 MiB, promote 12 MiB/s" in result.stdout
    assert "100663296" in machine.vm.run("cat /proc/memsluice/tenants").stdout
    tenant = machine.answer(f"tenant show {TENANT}")["tenant"]
    assert tenant["policy"]["fast_limit_bytes"] == 96 << 20
    assert machine.answer(f"tenant set {TENANT} --fast-limit none")["tenant"]["policy"] == {
        **tenant["policy"],
        "fast_limit_bytes": None,
    }
    assert TENANT in machine.memsluice("tenant list").stdout
    assert machine.memsluice(f"tenant clear {TENANT}").status == 0
    assert machine.answer("tenant list")["tenants"] == []


def test_a_census_tells_who_has_which_pages(machine: Machine) -> None:
    machine.memsluice(f"tenant set {TENANT} --tiering off")
    Holder(machine.vm, 40, 1)
    for arguments in ("census", "census --node 1", "census --tenants"):
        lines = machine.answer(arguments)["census"]
        pages = [line["pages"] for line in lines if (line["cgroup"], line["node"]) == (TENANT, 1)]
        assert len(pages) == 1 and 40 <= pages[0]["anon"] / 256 < 50, pages
    assert {line["node"] for line in machine.answer("census --node 1")["census"]} == {1}
    text = machine.memsluice("census --tenants").stdout
    assert re.search(rf"^ +1  {TENANT} +4\d MiB ", text, re.M) and "(no tenant's)" in text, text
    assert machine.memsluice("census --node 7").status == 4
    assert machine.memsluice("census", user_id=NOBODY).status == 3


def test_what_is_wrong_is_named(machine: Machine) -> None:
    for arguments, status, about in (
        ("tenant show /nowhere.slice", 4, "/nowhere.slice"),
        ("tenant set /nowhere.slice", 4, "/nowhere.slice"),
        ("tenant clear /command.slice", 4, "/command.slice"),
        ("request show 4711", 4, "4711"),
        ("migrate --pid 4194303 --to 1", 4, "4194303"),
        ("migrate --pid 1 --to 77", 4, "77"),
        ("migrate --pid 1 --to x", 2, "--to"),
        ("--socket /run/none status", 6, "/run/none"),
    ):
        result = machine.memsluice(arguments)
        assert result.status == status, f"{arguments}: {result.stderr}"
        assert re.match(rf"memsluice: .*{about}", result.stderr), result.stderr
        assert result.stdout == ""


def test_plain_users_may_look_but_not_change(machine: Machine) -> None:
    assert machine.memsluice("status", user_id=NOBODY).status == 0
    result = machine.memsluice(f"tenant set {TENANT}", user_id=NOBODY)
    assert result.status == 3
    assert "root" in result.stderr, "the hint names the group"
    machine.vm.run("chmod 0600 /run/memsluice/api")
    result = machine.memsluice("status", user_id=NOBODY)
    assert result.status == 3
    assert result.stderr.startswith("memsluice: /run/memsluice/api: no permission")


def test_the_memory_of_a_process_moves(machine: Machine) -> None:
    holder = Holder(machine.vm, 32, node=0)
    assert holder.mib_on(0) >= 32
    request = machine.answer(f"migrate --pid {holder.pid} --to 1")["request"]
    assert request["state"] == "done"
    assert request["moved_pages"] >= 32 * 256
    assert holder.mib_on(1) >= 32
    result = machine.memsluice(f"migrate --pid {holder.pid} --to 0")
    assert result.status == 0, result.stderr
    assert f"pid {holder.pid} to node 0: done" in result.stdout
    assert holder.mib_on(1) < 8


def test_a_tenant_moves_and_its_requests_are_listed(machine: Machine) -> None:
    machine.memsluice(f"tenant set {TENANT} --tiering off")
    holder = Holder(machine.vm, 32, node=1)
    begun = machine.answer(f"migrate --tenant {TENANT} --from 1 --to 0 --detach")["request"]
    ended = f"memsluice request show {begun['id']} | grep -q ': done'"
    machine.vm.run(f"until {ended}; do sleep 0.1; done")
    assert holder.mib_on(0) >= 32
    listed = {request["id"]: request for request in machine.answer("request list")["requests"]}
    assert listed[begun["id"]]["object"] == TENANT
    assert listed[begun["id"]]["moved_pages"] >= 32 * 256


def test_control_c_cancels_and_says_what_was_moved(machine: Machine) -> None:
    holder = Holder(machine.vm, 240, node=0)
    # So slowly that it has not ended when the bar is seen.
    command = ["memsluice", "migrate", "--pid", str(holder.pid), "--to", "1", "--mib-per-s", "20"]
    migrate = machine.vm.start(command, terminal=True)
    assert machine.vm.agent.wait_for(
        lambda: "[#" in migrate.stdout or migrate.status is not None, PATIENCE_SECONDS
    )
    assert re.search(r"\[#+-*\] +\d+%  [\d.]+ MiB of ", migrate.stdout), migrate.stdout
    migrate.write(b"\x03")
    assert migrate.wait(timeout=PATIENCE_SECONDS).status == 130, migrate.stdout
    assert f"pid {holder.pid} to node 1: cancelled" in migrate.stdout
    moved = re.search(r"moved +([\d.]+) MiB", migrate.stdout)
    assert moved and 0 < float(moved[1]) < 240, migrate.stdout
    assert abs(holder.mib_on(1) - float(moved[1])) < 16


def test_top_shows_what_moves(machine: Machine) -> None:
    machine.memsluice(f"tenant set {TENANT} --fast-limit 16M")
    sample = machine.answer("top --once --interval 0.5")
    assert [node["id"] for node in sample["nodes"]] == [0, 1]
    tenant = next(tenant for tenant in sample["tenants"] if tenant["cgroup"] == TENANT)
    assert tenant["promoted_pages_per_s"] == 0
    picture = machine.memsluice("top --once --interval 0.2").stdout
    assert f"\n{TENANT} " in picture and "16 MiB" in picture


def test_top_survives_its_daemon_and_gives_the_terminal_back(machine: Machine) -> None:
    top = machine.vm.start("stty rows 24 columns 80; memsluice top --interval 0.2", terminal=True)

    def shows(text: str) -> bool:
        return machine.vm.agent.wait_for(lambda: text in top.stdout, PATIENCE_SECONDS)

    assert shows("NODE  TIER")
    machine.end_daemon(signal.SIGKILL)
    assert shows("nobody listens: the daemon has ended") or shows("closed the connection")
    machine.start_daemon()
    pictures = top.stdout.count("up 0 s")
    assert machine.vm.agent.wait_for(
        lambda: top.stdout.count("up 0 s") > pictures or "up 1 s" in top.stdout, PATIENCE_SECONDS
    )
    top.write(b"q")
    assert top.wait(timeout=PATIENCE_SECONDS).status == 0
    assert top.stdout.endswith("\x1b[?25h\x1b[?1049l")


@pytest.fixture
def no_balancing(machine: Machine) -> Iterator[str]:
    """The kernel's own balancer is off, and afterwards as it was."""
    switch = "/proc/sys/kernel/numa_balancing"
    before = machine.vm.run(f"cat {switch}; echo 0 > {switch}").stdout.strip()
    yield switch
    machine.vm.run(f"echo {before} > {switch}")


def test_doctor_finds_a_healthy_machine_healthy(machine: Machine, no_balancing: str) -> None:
    status, findings = machine.findings()
    assert status == 0, findings
    for name in ("kernel", "btf", "symbols", "lockdown", "module", "features", "daemon", "cgroup",
                 "nodes", "tiers", "numa-balancing", "permissions"):  # fmt: skip
        assert findings[name]["level"] == "ok", findings[name]
    assert findings["module-installed"]["level"] == "note", "it was loaded by hand"


def test_doctor_finds_what_is_wrong(machine: Machine, no_balancing: str) -> None:
    machine.end_daemon()
    machine.vm.run(f"echo 2 > {no_balancing}; rmmod memsluice")
    status, findings = machine.findings()
    assert status == 1
    assert findings["module"]["level"] == findings["daemon"]["level"] == "error"
    assert findings["module"]["advice"].startswith("modprobe memsluice")
    assert findings["numa-balancing"]["level"] == "warning"


def test_without_module_the_daemon_answers_and_says_so(machine: Machine) -> None:
    machine.vm.run("rmmod memsluice")
    result = machine.memsluice("tenant list")
    assert result.status == 6
    assert "modprobe memsluice" in result.stderr
    assert "modprobe memsluice" in machine.memsluice("status").stdout


def test_without_daemon_the_hint_says_how_to_start_it(machine: Machine) -> None:
    machine.end_daemon(signal.SIGKILL)
    result = machine.memsluice("status")
    assert result.status == 6
    assert result.stderr.endswith("  start the daemon: systemctl start memsluiced\n")
