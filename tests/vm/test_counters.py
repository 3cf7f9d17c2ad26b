# SPDX-License-Identifier: GPL-2.0
"""What the daemon counts: traffic of nodes, by the plugin; time that tenants lose, by BPF."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from test_daemon import Daemon, daemon, eventually, make_cgroups  # noqa: F401: a fixture
from testbed.kernels import DEBIAN_KERNELS
from testbed.traffic import Traffic
from testbed.vm import Vm

MIB = 1 << 20
SOCKET = "/run/traffic.counters"
SLOW = 1
CAUSES = {"page_fault", "migration", "reclaim"}


def command(vm: Vm, arguments: str) -> str:
    return vm.run(f"memsluice --socket /run/memsluice.api {arguments}", cwd="/", timeout=120).stdout


@pytest.fixture
def traffic(vm: Vm) -> Iterator[Traffic]:
    traffic = Traffic(vm)
    traffic.reset()
    exporter = vm.start(["memsluice-traffic", "serve", SOCKET])
    assert vm.agent.wait_for(lambda: "listening" in exporter.stdout, 30), exporter.stderr
    yield traffic
    exporter.kill()
    exporter.wait(timeout=30, check=False)
    traffic.off()


@pytest.mark.machine("two-tier-traffic")
def test_traffic_of_each_node_is_seen_through_the_daemon(
    vm: Vm, daemon: Daemon, traffic: Traffic
) -> None:
    daemon.configure(f'[counters]\nsource = "{SOCKET}"\n')
    daemon.start()

    def channels() -> dict[int, dict[str, Any]]:
        counters = daemon.call("counters", samples=300)["counters"]
        assert counters["error"] is None or counters["error"]["message"].startswith("have not")
        return {channel["node"]: channel for channel in counters["channels"]}

    eventually(lambda: set(channels()) == {0, SLOW}, "both nodes are counted")
    probe = "traffic-probe sweep --node 1 --bytes $((32 << 20)) --stride 64 --passes 3"
    swept = json.loads(vm.run(probe, timeout=300).stdout)
    expected = next(node for node in swept["nodes"] if node["node"] == SLOW)
    assert expected["read_bytes"] >= 96 * MIB
    # The probe has stopped counting: what the daemon reads from now on is what the host sees.
    counted = traffic.nodes()
    for node in (0, SLOW):
        eventually(
            lambda node=node: channels()[node]["read_bytes"] == counted[node].read_bytes
            and channels()[node]["write_bytes"] == counted[node].write_bytes,
            f"the daemon counts what the plugin does of node {node}",
        )
    assert channels()[SLOW]["read_bytes"] == expected["read_bytes"]
    moved = sum(sample["read_bytes_per_s"] for sample in channels()[SLOW]["samples"] if sample)
    assert moved > 0, "a second has seen it"

    frame = command(vm, "top --once --interval 2")
    assert re.search(r"^CHANNEL +READ/s +WRITE/s", frame, re.MULTILINE), frame
    assert re.search(r"^node 1 +[0-9.]+", frame, re.MULTILINE), frame
    sample = json.loads(command(vm, "top --once --interval 2 --json"))
    assert sample["nodes"][SLOW]["read_bytes_per_s"] is not None
    metrics = command(vm, "metrics")
    value = re.search(r'channel_read_bytes_total\{channel="node1",node="1"\} (\d+)', metrics)
    assert value and int(value[1]) == expected["read_bytes"], metrics


@pytest.mark.machine("two-tier-traffic")
def test_an_exporter_that_is_gone_is_missed_and_found_again(
    vm: Vm, daemon: Daemon, traffic: Traffic
) -> None:
    daemon.configure(f'[counters]\nsource = "{SOCKET}.late"\n')
    daemon.start()
    daemon.wait_for_log("bandwidth of channels: ")
    assert daemon.call("counters")["counters"]["error"]["code"] == "not_found"
    exporter = vm.start(["memsluice-traffic", "serve", f"{SOCKET}.late"])
    daemon.wait_for_log("all are counted")
    exporter.kill()
    exporter.wait(timeout=30, check=False)
    eventually(
        lambda: daemon.call("counters")["counters"]["error"] is not None, "nobody tells it any more"
    )


@pytest.mark.machine("two-tier")
def test_a_vm_without_counters_says_so(vm: Vm, daemon: Daemon) -> None:
    daemon.start()
    daemon.wait_for_log("there is no usable PMU of a memory controller")
    assert "<3>" not in daemon.log and "<4>" not in daemon.log, daemon.log
    assert daemon.call("counters")["counters"]["error"]["code"] == "unavailable"
    assert "bandwidth not known: there is no usable PMU" in command(vm, "top --once")


def lost(daemon: Daemon, cgroup: str) -> dict[str, dict[str, Any]]:
    return daemon.tenants()[cgroup]["lost_time"]


def events(of_cause: dict[str, Any]) -> int:
    return sum(of_cause["histogram_us"])


@contextmanager
def small_pages(vm: Vm) -> Iterator[None]:
    """So that each page is a fault."""
    setting = "/sys/kernel/mm/transparent_hugepage/enabled"
    before = re.findall(r"\[(\w+)\]", vm.run(f"cat {setting}").stdout)[0]
    vm.run(f"echo never > {setting}")
    try:
        yield
    finally:
        vm.run(f"echo {before} > {setting}")


@pytest.mark.machine("two-tier")
@pytest.mark.kernels(*DEBIAN_KERNELS)
def test_the_time_that_tenants_lose(vm: Vm, daemon: Daemon) -> None:
    outer, inner, other = "/daemon.slice/outer", "/daemon.slice/outer/inner", "/daemon.slice/other"
    make_cgroups(vm, f"{inner}/leaf", other)
    vm.run("echo +memory > /sys/fs/cgroup/daemon.slice/outer/cgroup.subtree_control")
    tenants = "".join(
        f'[[tenant]]\ncgroup = "{cgroup}"\ntiering = false\n' for cgroup in (outer, inner, other)
    )
    daemon.configure("[counters]\nlost_time = true\n" + tenants)
    daemon.start()
    assert daemon.call("counters")["lost_time"] == {"wanted": True, "error": None}, daemon.log
    eventually(lambda: len(daemon.tenants()) == 3, "all are tenants")
    assert set(lost(daemon, outer)) == CAUSES

    def run_inside(cgroup: str, script: str) -> None:
        vm.run(f"echo $$ > /sys/fs/cgroup{cgroup}/cgroup.procs; {script}", check=False, timeout=300)

    pages = 2000
    touch = (
        f"b = bytearray({pages} * 4096)\n"  # zero pages, not touched yet
        f"for page in range({pages}): b[page * 4096] = 1"
    )
    with small_pages(vm):
        run_inside(f"{inner}/leaf", f"exec python3 -c '{touch}'")
    of_inner = lost(daemon, inner)
    assert events(of_inner["page_fault"]) >= pages
    assert of_inner["page_fault"]["total_ns"] > 0
    assert events(lost(daemon, other)["page_fault"]) == 0, "nothing has run in it"
    # Only the shell's last steps before it moved, and nothing of what ran below.
    assert events(lost(daemon, outer)["page_fault"]) < pages // 10, "the nearest tenant counts"

    # Reclaim, and the kernel's own migration, by a task of the tenant.
    run_inside(other, f"echo 4M > /sys/fs/cgroup{other}/memory.reclaim")
    of_other = lost(daemon, other)
    assert events(of_other["reclaim"]) > 0 and of_other["reclaim"]["total_ns"] > 0
    assert events(lost(daemon, inner)["reclaim"]) == 0
    before = events(of_other["migration"])
    run_inside(other, "exec migratepages $$ 0 1")
    assert events(lost(daemon, other)["migration"]) > before

    text = command(vm, "metrics")
    assert f'memsluice_tenant_lost_seconds_count{{tenant="{inner}",cause="page_fault"}}' in text
    assert "lost ms/s:" in command(vm, "top --once")
    daemon.configure(tenants)
    daemon.call("config.reload")
    assert daemon.tenants()[inner]["lost_time"] is None


@pytest.mark.machine("two-tier")
def test_without_the_right_to_load_bpf_the_daemon_goes_on(vm: Vm, daemon: Daemon) -> None:
    daemon.configure('[counters]\nlost_time = true\n[[tenant]]\ncgroup = "/daemon.slice"\n')
    daemon.start("setpriv", "--bounding-set", "-sys_admin,-bpf,-perfmon", "--inh-caps", "-all")
    daemon.wait_for_log("the time that tenants lose is not counted")
    error = daemon.call("counters")["lost_time"]["error"]
    assert error["code"] == "denied" and "CAP_BPF" in error["hint"], error
