# SPDX-License-Identifier: GPL-2.0
"""A VM with a fast and a slow node, on which memsluice, the kernel or nobody tiers memory."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from testbed import dsa, machines
from testbed.agent import Command
from testbed.errors import TestbedError
from testbed.traffic import NodeTraffic, Traffic
from testbed.vm import Vm

from .dsa_host import counters

MACHINE, MACHINE_WITH_DSA = "tiering", "tiering-dsa"
# Of the emulation, which may let a thread wait for long; and what is copied by DSA at all.
DSA_KNOBS = "deadline_us=10000000 least_bytes=32768"
TENANT = "/load"
CGROUP = f"/sys/fs/cgroup{TENANT}"
FAST, SLOW = 0, 1
# An emulated CPU is some 40 times slower than a real one and waits for each miss, where a real one
# overlaps about four: ten times the latency of the machine's description keeps the proportion.
LATENCY_SCALE = 10

CONFIGURATION = f"""
[[tenant]]
cgroup = "{TENANT}"
fast_limit = "none"
promote_mib_per_s = 1024
demote_mib_per_s = 1024

[module]
scan_period_ms = 1000
scan_cpu_percent = 10
"""


@dataclass(frozen=True)
class Sample:
    """Memory traffic of an interval that ended so many seconds after counting began."""

    seconds: float
    fast_share_percent: float


class TieredHost:
    """Booted, with nothing that tiers, until told otherwise."""

    def __init__(self, machine: str = MACHINE) -> None:
        description = machines.load(machine).vms[0]
        self._latency_ns = [node.latency_ns * LATENCY_SCALE for node in description.nodes]
        self.vm = Vm(description)
        self.traffic = Traffic(self.vm)
        self._daemon: Command | None = None
        self._has_dsa = False
        self.vm.run(f"mkdir -p /etc/memsluice /run/memsluice {CGROUP}")
        self.vm.put(CONFIGURATION.encode(), "/etc/memsluice/memsluiced.toml")
        self.nobody()

    def __enter__(self) -> "TieredHost":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.vm.stop()

    @property
    def latencies(self) -> str:
        return ", ".join(
            f"{ns} ns a miss on node {node}" for node, ns in enumerate(self._latency_ns)
        )

    def nobody(self) -> None:
        """Nothing moves pages."""
        self._stop_memsluice()
        self._kernel_tiering(0, "false")

    def kernel(self) -> None:
        """NUMA balancing in its tiering mode promotes, reclaim demotes."""
        self._stop_memsluice()
        self._kernel_tiering(2, "true")

    def memsluice(self) -> None:
        """Module and daemon, which know nothing yet of any load."""
        self.nobody()
        self.vm.run(f"insmod {dsa.MODULES}/memsluice.ko")
        self._start_daemon()

    def memsluice_with_dsa(self) -> None:
        """The same, and pages are copied by the devices."""
        self.nobody()
        self.vm.run(f"insmod {dsa.MODULES}/memsluice.ko")
        dsa.load_driver(self.vm)
        self.vm.run(f"insmod {dsa.MODULES}/memsluice_dsa.ko {DSA_KNOBS}")
        self._has_dsa = True
        dsa.configure(self.vm, *[["memsluice"] for _ in self.vm.dsa])
        self._start_daemon()

    def copied_by_dsa_bytes(self) -> int:
        return counters(self.vm)["bytes"]

    def tenant(self) -> dict[str, Any] | None:
        """What the daemon knows of the tenant; None as long as it knows none."""
        result = self.vm.run(["memsluice", "tenant", "show", TENANT, "--json"], check=False)
        if result.status:
            return None
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer.get("tenant", answer)

    def start_in_tenant(self, command: str) -> Command:
        return self.vm.start(f"echo $$ > {CGROUP}/cgroup.procs && exec {command}")

    def fresh_memory(self) -> None:
        """What the last load has left in page cache is dropped, so that each one finds the same."""
        self.vm.run("sync; echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory")

    def watch(self, running: Callable[[], bool], interval_s: float) -> list[Sample]:
        """Counts traffic, with emulated latencies, while RUNNING says so."""
        for node, nanoseconds in enumerate(self._latency_ns):
            self.traffic.set_latency(node, nanoseconds)
        samples: list[Sample] = []
        with self.traffic.counting():
            begun = time.monotonic()
            before = self.traffic.nodes()
            while running():
                time.sleep(interval_s)
                now = self.traffic.nodes()
                share = _fast_share(before, now)
                if share is not None:
                    samples.append(Sample(time.monotonic() - begun, share))
                before = now
        return samples

    def _kernel_tiering(self, balancing: int, demotion: str) -> None:
        self.vm.run(
            f"echo {balancing} > /proc/sys/kernel/numa_balancing && "
            f"echo {demotion} > /sys/kernel/mm/numa/demotion_enabled"
        )

    def _start_daemon(self) -> None:
        self._daemon = self.vm.start("exec memsluiced")
        self._until(lambda: self.tenant() is not None, "memsluiced has not set its tenant")

    def _stop_memsluice(self) -> None:
        if self._daemon:
            self._daemon.kill(15)
            self._daemon.wait(60)
            self._daemon = None
        if self._has_dsa:
            names = " ".join(f"dsa{number}" for number in range(len(self.vm.dsa)))
            self.vm.run(f"accel-config disable-device {names} && rmmod memsluice_dsa")
            dsa.unload_driver(self.vm)
            self._has_dsa = False
        # The module goes on without its daemon: to be without tiering, it has to go as well.
        self.vm.run("! grep -qw ^memsluice /proc/modules || rmmod memsluice")

    def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            ended = self._daemon is None or self._daemon.status is not None
            if ended or time.monotonic() > deadline:
                raise TestbedError(f"{otherwise}\n{self._daemon.stderr if self._daemon else ''}")
            time.sleep(0.2)


def _fast_share(before: dict[int, NodeTraffic], now: dict[int, NodeTraffic]) -> float | None:
    """In percent; None when there was no traffic."""
    fast = (now[FAST] - before[FAST]).bytes
    everything = sum((now[node] - before[node]).bytes for node in now)
    return 100 * fast / everything if everything else None
