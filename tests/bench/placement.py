# SPDX-License-Identifier: GPL-2.0
"""The benchmark `placement`: what a page fault costs, in instructions, when pages are placed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from testbed.vm import Vm

from .dsa_host import booted
from .measure import Figures

MODULE = "/opt/memsluice/modules/memsluice.ko"
CONFIG = "/etc/memsluice/placement.toml"
CHANNELS = "1:3,2:2"
PAGES, TURNS = 20_000, 3
PATIENCE_SECONDS = 60
# Whose faults, and whether anybody is placed: the hooks are there as soon as somebody is.
CASES = {"off": ("placed", False), "without": ("beside", True), "with": ("placed", True)}


@contextmanager
def _daemon(vm: Vm) -> Iterator[None]:
    """While it runs it may take part of the only CPU."""
    vm.put(b"", CONFIG)
    daemon = vm.start(["memsluiced", "--config", CONFIG])
    try:
        if not vm.agent.wait_for(lambda: "listens at" in daemon.stderr, PATIENCE_SECONDS):
            raise RuntimeError(f"memsluiced: {daemon.stderr}")
        yield
    finally:
        daemon.kill()
        daemon.wait(timeout=PATIENCE_SECONDS, check=False)


def _place(vm: Vm, channels: str) -> None:
    with _daemon(vm):
        vm.run(f"memsluice tenant set /placed --tiering off --channels {channels}", cwd="/")


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
        vm.run("mkdir -p /run/memsluice /etc/memsluice /sys/fs/cgroup/placed /sys/fs/cgroup/beside")
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
