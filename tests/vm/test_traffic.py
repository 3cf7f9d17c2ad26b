# SPDX-License-Identifier: GPL-2.0
"""The traffic plugin's counts and delays against computed ones.

The slow node holds next to nothing but the probe's buffer. What the kernel does there besides is
measured in a run of the same length without the buffer; every other byte must be accounted for.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.traffic import NodeTraffic, Traffic
from testbed.vm import Vm

pytestmark = pytest.mark.machine("two-tier-traffic")

MIB = 1 << 20
LINE = 64
SLOW = 1
BUFFER = 32 * MIB  # 16 times the cache: with exact LRU, every pass misses every line
# The kernel's own traffic varies from run to run.
NOISE_FACTOR = 16
# A delay too short to spin for is owed until the next one: at most this is missing at the end,
# and as much may have been given back at the start.
GRAIN_NS = 2 * 2000


class Probe:
    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def run(self, *arguments: object) -> dict[str, Any]:
        output = self._vm.run(["traffic-probe", *map(str, arguments)]).stdout
        return json.loads(output)

    def sweep(self, *arguments: object, size: int = BUFFER) -> dict[str, Any]:
        return self.run("sweep", "--node", SLOW, "--bytes", size, *arguments)

    def noise_bytes(self, elapsed_ns: int) -> int:
        """An upper bound of what the kernel reads or writes on the slow node meanwhile."""
        idle = on_slow_node(self.run("idle", "--milliseconds", elapsed_ns // 1_000_000 + 50))
        return NOISE_FACTOR * max(idle.read_bytes, idle.write_bytes, 4096)


def on_slow_node(report: dict[str, Any]) -> NodeTraffic:
    node = next(node for node in report["nodes"] if node["node"] == SLOW)
    return NodeTraffic(node["read_bytes"], node["write_bytes"])


@pytest.fixture
def traffic(vm: Vm) -> Iterator[Traffic]:
    traffic = Traffic(vm)
    yield traffic
    traffic.off()
    traffic.clear()


@pytest.fixture
def probe(vm: Vm, traffic: Traffic) -> Probe:
    return Probe(vm)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        pytest.param(["--stride", 64], BUFFER // 64, id="every line"),
        pytest.param(["--stride", 16], BUFFER // 64, id="four accesses a line"),
        pytest.param(["--stride", 64, "--passes", 3], 3 * BUFFER // 64, id="three passes"),
        pytest.param(["--stride", 256], BUFFER // 256, id="every fourth line"),
        pytest.param(["--stride", 256, "--offset", 56], 2 * BUFFER // 256, id="crossing lines"),
        pytest.param(
            ["--stride", 4096, "--offset", 4088, "--passes", 8],
            8 * 2 * BUFFER // 4096,
            id="crossing pages",
        ),
    ],
)
@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_counts_each_line_moved(
    probe: Probe, arguments: list[object], lines: int, write: bool
) -> None:
    report = probe.sweep(*arguments, *(["--write"] if write else []))
    counted = on_slow_node(report)
    noise = probe.noise_bytes(report["elapsed_ns"])
    assert noise < lines * LINE // 2, "the kernel's own traffic hides the probe's"
    # A line that is written is read first, for ownership, and written back once evicted or at the
    # end, so both counts are those of the lines touched.
    written = lines * LINE if write else 0
    assert lines * LINE <= counted.read_bytes <= lines * LINE + noise
    assert written <= counted.write_bytes <= written + noise


def test_hits_move_nothing(probe: Probe) -> None:
    size = MIB // 2  # a quarter of the cache
    report = probe.sweep("--passes", 200, size=size)
    counted = on_slow_node(report)
    assert size <= counted.read_bytes < 10 * size, "200 passes, but read once or a few times"


def test_while_off_nothing_is_counted(vm: Vm, traffic: Traffic) -> None:
    traffic.off()
    traffic.reset()
    vm.run(["python3", "-c", "bytearray(50 << 20)"])
    assert sum(node.bytes for node in traffic.nodes().values()) == 0
    with traffic.counting():
        vm.run(["python3", "-c", "bytearray(50 << 20)"])
    # The kernel clears 50 MiB.
    assert sum(node.write_bytes for node in traffic.nodes().values()) >= 50 * MIB
    before = traffic.nodes()
    vm.run(["true"])
    assert traffic.nodes() == before


def test_a_reset_zeroes_the_counters(vm: Vm, traffic: Traffic) -> None:
    with traffic.counting():
        vm.run(["true"])
    report = traffic.show()
    assert report["blocks"] and sum(vcpu["misses"] for vcpu in report["vcpus"]) > 0
    traffic.reset()
    report = traffic.show()
    assert report["blocks"] == []
    assert all(set(vcpu.values()) == {0} for vcpu in report["vcpus"])


def test_guest_and_host_see_the_same_counters(vm: Vm, traffic: Traffic) -> None:
    with traffic.counting():
        vm.run(["true"])
    seen = json.loads(vm.run(["memsluice-traffic", "show", "--json"]).stdout)
    assert seen == traffic.show()


def test_every_miss_waits_for_the_latency(probe: Probe, traffic: Traffic) -> None:
    loads, latency_ns = 10_000, 3000
    traffic.set_latency(SLOW, latency_ns)
    report = probe.run("chase", "--node", SLOW, "--bytes", BUFFER, "--count", loads)
    assert on_slow_node(report).read_bytes >= loads * LINE
    assert report["elapsed_ns"] >= loads * latency_ns - GRAIN_NS
    assert sum(report["delay_ns"]) >= loads * latency_ns


def test_vcpus_share_a_channels_rate(probe: Probe, traffic: Traffic) -> None:
    size, bytes_per_second = 8 * MIB, 40_000_000
    traffic.set_channel(3, SLOW, bytes_per_second)
    alone = probe.sweep(size=size)
    together = probe.sweep("--threads", 2, size=size)
    assert alone["elapsed_ns"] >= size * 10**9 // bytes_per_second - GRAIN_NS
    assert together["elapsed_ns"] >= 2 * size * 10**9 // bytes_per_second - GRAIN_NS
    # Both CPUs have stood still for the channel, not only one after the other.
    assert min(together["delay_ns"][:2]) > 0


def test_writing_back_takes_the_channels_time_too(probe: Probe, traffic: Traffic) -> None:
    size, bytes_per_second, cache = 8 * MIB, 40_000_000, traffic.show()["cache_bytes"]
    traffic.set_channel(3, SLOW, bytes_per_second)
    report = probe.sweep("--write", size=size)
    # Not in the time: what is still in the cache, and 64 lines in the write queue.
    moved = size + size - cache - 64 * LINE
    assert report["elapsed_ns"] >= moved * 10**9 // bytes_per_second - GRAIN_NS


def test_what_the_guest_scribbles_harms_nobody(vm: Vm, traffic: Traffic) -> None:
    """The guest can write the whole file; QEMU must survive, and the tools must refuse."""
    with traffic.counting():
        vm.run(["true"])
    original = vm.traffic_file.read_bytes()
    try:
        # Now every setting is out of bounds, and the plugin is asked to count with them.
        vm.run(["traffic-probe", "scribble"])
        vm.run(["true"])
        refused = vm.run(["memsluice-traffic", "show"], check=False)
    finally:
        with vm.traffic_file.open("r+b") as file:
            file.write(original)
    assert refused.status == 1 and "no traffic plugin has laid out this file" in refused.stderr
    with traffic.counting():
        vm.run(["true"])
    assert 0 < sum(node.bytes for node in traffic.nodes().values()) < 1 << 40
