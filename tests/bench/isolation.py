# SPDX-License-Identifier: GPL-2.0
"""The benchmark `isolation`: what a victim that waits for each line notices of an aggressor that
writes as much as it can, when they share channels, when the aggressor is throttled, and when each
has its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from testbed.agent import Command
from testbed.daemon import PATIENCE_SECONDS, start_daemon
from testbed.traffic import Traffic
from testbed.vm import Vm

from .guest import booted
from .measure import Figures
from .placement import MODULE

ALL, OWN, OTHERS = "1,2,3,4", "1,2", "3,4"
VICTIM_MIB, AGGRESSOR_MIB = 24, 64
SECONDS = 10
LINE_BYTES = 64
# Of its time on a CPU: what throttles an aggressor where nothing else can.
THROTTLE = "25000 100000"
LATENCY_NS = 1000


@dataclass(frozen=True)
class Case:
    victim: str
    aggressor: str | None
    cpu_max: str = "max 100000"


CASES = {
    "ideal": Case(ALL, None),
    "ideal_own": Case(OWN, None),
    "shared": Case(ALL, ALL),
    "throttled": Case(ALL, ALL, THROTTLE),
    "channels": Case(OWN, OTHERS),
}


class Host:
    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.traffic = Traffic(vm)
        vm.run(f"insmod {MODULE}; echo 0 > /proc/sys/kernel/numa_balancing")
        vm.run("echo +cpu +memory > /sys/fs/cgroup/cgroup.subtree_control")
        vm.run("mkdir -p /sys/fs/cgroup/victim /sys/fs/cgroup/aggressor")
        self._daemon = start_daemon(vm, "[channels]\nupkeep_s = 0\n")

    def place(self, case: Case) -> None:
        for tenant, channels in (("victim", case.victim), ("aggressor", case.aggressor or ALL)):
            where = f"--channels {channels} --granule 4K"
            self.vm.run(f"memsluice tenant set /{tenant} {where}", cwd="/")
        self.vm.run(f"echo {case.cpu_max} > /sys/fs/cgroup/aggressor/cpu.max")

    def start(self, tenant: str, cpu: int, load: str) -> Command:
        enter = f"echo $$ > /sys/fs/cgroup/{tenant}/cgroup.procs"
        command = self.vm.start(f"{enter} && exec taskset -c {cpu} memory-load {load}")
        if not self.vm.agent.wait_for(
            lambda: "ready" in command.stdout or command.status is not None, PATIENCE_SECONDS
        ):
            raise RuntimeError(f"memory-load {load} does not begin")
        return command

    def measure(self, case: Case) -> tuple[float, float]:
        """The victim's 99th percentile, and how many lines a second the aggressor has written."""
        self.place(case)
        aggressor = None
        if case.aggressor:
            # Until after the victim has filled its memory and read from it.
            aggressor = self.start("aggressor", 1, f"write {AGGRESSOR_MIB} {3 * SECONDS}")
        victim = self.start("victim", 0, f"chase {VICTIM_MIB} {SECONDS}")
        _, _, p99 = figures_of(victim)
        lines_per_s = figures_of(aggressor)[0] if aggressor else 0.0
        return p99, lines_per_s

    def calibrate(self) -> int:
        """A channel's rate: what an aggressor alone writes to, where nothing holds it up."""
        self.traffic.on()
        for node in range(5):
            self.traffic.set_latency(node, LATENCY_NS)
        self.place(Case(ALL, ALL))
        lines_per_s = figures_of(self.start("aggressor", 1, f"write {AGGRESSOR_MIB} 5"))[0]
        # Read for ownership and written back; half of what it would have saturates its channels.
        rate = int(lines_per_s * LINE_BYTES * 2 / 4 / 2)
        for node in range(1, 5):
            self.traffic.set_channel(node, node, rate)
        return rate


def figures_of(command: Command) -> tuple[float, float, float]:
    lines = command.wait(timeout=600, check=True).stdout.split("\n")
    per_second, median, p99 = map(float, lines[1].split())
    return per_second, median, p99


def _add(figures: Figures, measured: dict[str, tuple[float, float]]) -> None:
    for case, (p99, lines_per_s) in measured.items():
        figures.add(f"isolation.victim_p99_us.{case}.emulated", p99 / 1000, "us")
        if lines_per_s:
            mib_per_s = lines_per_s * LINE_BYTES / 2**20
            figures.add(f"isolation.aggressor_mib_per_s.{case}.emulated", mib_per_s, "MiB/s")
    for case in ("shared", "throttled", "channels"):
        ratio = measured[case][0] / measured["ideal"][0]
        figures.add(f"isolation.victim_p99_over_ideal.{case}.emulated", ratio, "")
    own = measured["channels"][0] / measured["ideal_own"][0]
    figures.add("isolation.victim_p99_over_equal_channels.channels.emulated", own, "")


def run(rounds: int, say: Callable[[str], None]) -> Figures:
    """Cases take turns within one boot, beginning with another one each time."""
    figures = Figures()
    names = list(CASES)
    with booted("channels-traffic") as vm:
        host = Host(vm)
        rate = host.calibrate()
        say(f"each channel serves {rate / 2**20:.1f} MiB/s, a miss takes {LATENCY_NS} ns")
        for number in range(rounds):
            first = number % len(names)
            measured = {}
            for case in names[first:] + names[:first]:
                say(f"round {number + 1} of {rounds}: {case}")
                measured[case] = host.measure(CASES[case])
            _add(figures, measured)
        host.traffic.off()
    return figures
