# SPDX-License-Identifier: GPL-2.0
"""The benchmark `placement`: what a page fault costs, in instructions, when pages are placed."""

from collections.abc import Callable

from testbed.daemon import PATIENCE_SECONDS, start_daemon
from testbed.vm import Vm

from .guest import booted
from .measure import Figures

MODULE = "/opt/memsluice/modules/memsluice.ko"
CHANNELS = "1:3,2:2"
PAGES, TURNS = 20_000, 3
# Whose faults, and whether anybody is placed: the hooks are there as soon as somebody is.
CASES = {"off": ("placed", False), "without": ("beside", True), "with": ("placed", True)}


def _place(vm: Vm, channels: str) -> None:
    daemon = start_daemon(vm, "")
    vm.run(f"memsluice tenant set /placed --tiering off --channels {channels}", cwd="/")
    # It would take part of the only CPU; the module keeps what it was told.
    daemon.kill()
    daemon.wait(timeout=PATIENCE_SECONDS, check=False)


def _instructions(vm: Vm, cgroup: str, kind: str) -> float:
    """The least of some: what the kernel does beside it only ever adds."""
    enter = f"echo $$ > /sys/fs/cgroup/{cgroup}/cgroup.procs"
    command = f"{enter} && exec fault-cost {kind} {PAGES}"
    return min(float(vm.run(command, timeout=600).stdout) for _ in range(TURNS))


def run(rounds: int, say: Callable[[str], None]) -> Figures:
    """Cases take turns within one boot. Where a clock counts instructions, ns are instructions."""
    figures = Figures()
    with booted("channels-counted") as vm:
        vm.run(f"insmod {MODULE}")
        vm.run("mkdir -p /sys/fs/cgroup/placed /sys/fs/cgroup/beside")
        for number in range(rounds):
            say(f"round {number + 1}")
            spent: dict[tuple[str, str], float] = {}
            for case, (cgroup, placed) in CASES.items():
                _place(vm, CHANNELS if placed else "none")
                for kind in ("anon", "shmem"):
                    spent[case, kind] = _instructions(vm, cgroup, kind)
            _add(figures, spent)
    figures.copy(
        "placement.anon.with.instructions_per_fault_percent.emulated",
        to="placement.instructions_per_fault_percent.emulated",
    )
    return figures


def _add(figures: Figures, spent: dict[tuple[str, str], float]) -> None:
    for (case, kind), instructions in spent.items():
        name = f"placement.{kind}.{case}.instructions_per_fault"
        figures.add(f"{name}.emulated", instructions, "instructions")
        if case != "off":
            extra = instructions / spent["off", kind] - 1
            figures.add(f"{name}_percent.emulated", extra * 100, "%")
