# SPDX-License-Identifier: GPL-2.0
"""The benchmark `migrate`: lists of pages, moved by memsluice, move_pages(2) and the kernel's own
migration with memsluice's pool."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testbed import machines
from testbed.vm import Vm

from .measure import Figures

MODULE = "/opt/memsluice/modules/memsluice.ko"
MIGRATION = "/proc/memsluice/migration"
EVENT = "/sys/kernel/tracing/events/memsluice/memsluice_batch_mapped/enable"
PHASES = ("unmap", "copy", "map")
# Items, and how often each method has its turn. Of huge pages as many as the nodes hold.
LISTS = {
    "base": {1: 20, 8: 20, 64: 15, 512: 10, 4096: 5},
    "thp": {1: 15, 8: 10, 64: 5},
    "mixed": {8: 15, 64: 10, 512: 3},
}


@dataclass(frozen=True)
class Pair:
    """What one turn of each method took, in ns, for so many pages."""

    pages: int
    ns: dict[str, int]


def _run(vm: Vm, kind: str, items: int, rounds: int) -> list[Pair]:
    command = ["migrate-lists", "--kind", kind, "--items", str(items), "--rounds", str(rounds)]
    lines = [json.loads(line) for line in vm.run(command, timeout=1800).stdout.splitlines()]
    pairs: list[Pair] = []
    for number in range(rounds):
        turn = {line["method"]: line for line in lines if line["round"] == number}
        pairs.append(Pair(turn["ours"]["pages"], {name: at["ns"] for name, at in turn.items()}))
    # The first turn fills pools and caches.
    return pairs[1:]


def _counters(vm: Vm) -> dict[str, int]:
    text = vm.run(["cat", MIGRATION]).stdout
    return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}


def _speed(vm: Vm, rounds: int, figures: Figures, say: Callable[[str], None]) -> None:
    for kind, items, turns in _lists():
        say(f"{kind}, {items} items")
        for pair in _run(vm, kind, items, turns * rounds + 1):
            ours = pair.ns["ours"]
            for name in (f"migrate.{kind}", f"migrate.{kind}.items_{items}"):
                figures.add(f"{name}.speedup.emulated", pair.ns["move_pages"] / ours, "x")
            figures.add(f"migrate.{kind}.over_in_tree.emulated", pair.ns["in_tree"] / ours, "x")
            pages_per_s = pair.pages * 1e9 / ours
            figures.add(f"migrate.{kind}.items_{items}.pages_per_s.emulated", pages_per_s, "1/s")


def _instructions(vm: Vm, figures: Figures, say: Callable[[str], None]) -> None:
    for kind, items, _ in _lists():
        say(f"{kind}, {items} items, instructions counted")
        before = _counters(vm)
        pairs = _run(vm, kind, items, 4)
        after = _counters(vm)
        moved = sum(pair.pages for pair in pairs) * 4 / 3  # the first turn included
        for pair in pairs:
            ratio = pair.ns["ours"] / pair.ns["move_pages"]
            figures.add(f"migrate.{kind}.instructions_ratio.emulated", ratio, "x")
            for method, ns in pair.ns.items():
                name = f"migrate.{kind}.items_{items}.instructions_per_page.{method}.emulated"
                figures.add(name, ns / pair.pages, "instructions")
        for phase in PHASES:
            spent = after[f"{phase}_ns"] - before[f"{phase}_ns"]
            name = f"migrate.{kind}.items_{items}.instructions_per_page.phase_{phase}.emulated"
            figures.add(name, spent / moved, "instructions")


def _stall(vm: Vm, figures: Figures) -> None:
    """Over the bound, of base pages: where the clock counts instructions, no CPU is taken away."""
    bound_ns = int(vm.run("cat /sys/kernel/memsluice/batch_stall_us").stdout) * 1000
    vm.run(f"echo > /sys/kernel/tracing/trace; echo 1 > {EVENT}")
    _run(vm, "base", 4096, 6)
    trace = vm.run(f"echo 0 > {EVENT}; cat /sys/kernel/tracing/trace").stdout
    stalls = sorted(int(ns) for ns in re.findall(r"stall_ns=(\d+)", trace))
    p99 = stalls[min(len(stalls) - 1, len(stalls) * 99 // 100)]
    figures.add("migrate.stall_over_cap.emulated", p99 / bound_ns, "x")
    figures.add("migrate.batches_measured.emulated", len(stalls), "batches")


def _lists() -> Iterator[tuple[str, int, int]]:
    for kind, lists in LISTS.items():
        for items, turns in lists.items():
            yield kind, items, turns


@contextmanager
def _booted(machine: str) -> Iterator[Vm]:
    with Vm(machines.load(machine).only_vm()) as vm:
        vm.run(["insmod", MODULE])
        yield vm
        reports = vm.kernel_reports()
    if reports:
        raise RuntimeError("the guest's kernel reported:\n" + "\n".join(reports))


def run(rounds: int, say: Callable[[str], None]) -> Figures:
    """Methods take turns within each boot: one boot for time, one for instructions."""
    figures = Figures()
    with _booted("migrate") as vm:
        _speed(vm, rounds, figures, say)
    with _booted("migrate-counted") as vm:
        _instructions(vm, figures, say)
        _stall(vm, figures)
    return figures
