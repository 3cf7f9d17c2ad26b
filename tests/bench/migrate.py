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
TRACING = "/sys/kernel/tracing"
EVENTS = f"{TRACING}/events/memsluice/memsluice_batch_[mp]*/enable"  # mapped, planned
PHASES = ("unmap", "copy", "map")
WARM_UP_ROUNDS = 2  # fill the pools, and are not counted
COUNTED_ROUNDS = 2
# Items, and how many pairs of turns. More huge pages than 64 are only more of the same.
LISTS = {
    "base": {1: 20, 8: 20, 64: 15, 512: 8, 4096: 3},
    "thp": {1: 10, 8: 6, 64: 2},
    "mixed": {8: 10, 64: 4, 512: 1},
}


@dataclass(frozen=True)
class Pair:
    """What a turn of METHOD and one of move_pages(2) took, in ns, for so many pages."""

    pages: int
    ns: int
    move_pages_ns: int

    @property
    def speedup(self) -> float:
        return self.move_pages_ns / self.ns


def _run(vm: Vm, method: str, kind: str, items: int, rounds: int) -> list[Pair]:
    rounds += WARM_UP_ROUNDS
    command = ["migrate-lists", "--method", method, "--kind", kind]
    command += ["--items", str(items), "--rounds", str(rounds)]
    lines = [json.loads(line) for line in vm.run(command, timeout=1800).stdout.splitlines()]
    pairs: list[Pair] = []
    for number in range(WARM_UP_ROUNDS, rounds):
        turn = {line["method"]: line for line in lines if line["round"] == number}
        pages, ns = turn[method]["pages"], turn[method]["ns"]
        pairs.append(Pair(pages, ns, turn["move_pages"]["ns"]))
    return pairs


def counters(vm: Vm) -> dict[str, int]:
    text = vm.run(["cat", MIGRATION]).stdout
    return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}


def _speed(vm: Vm, rounds: int, figures: Figures, say: Callable[[str], None]) -> None:
    for kind, items, turns in _lists():
        say(f"{kind}, {items} items")
        for pair in _run(vm, "ours", kind, items, turns * rounds):
            for name in (f"migrate.{kind}", f"migrate.{kind}.items_{items}"):
                figures.add(f"{name}.speedup.emulated", pair.speedup, "x")
            pages_per_s = pair.pages * 1e9 / pair.ns
            figures.add(f"migrate.{kind}.items_{items}.pages_per_s.emulated", pages_per_s, "1/s")
        for pair in _run(vm, "in_tree", kind, items, turns):
            figures.add(f"migrate.{kind}.in_tree_speedup.emulated", pair.speedup, "x")


def _instructions(vm: Vm, figures: Figures, say: Callable[[str], None]) -> None:
    for kind, items, _ in _lists():
        say(f"{kind}, {items} items, instructions counted")
        name = f"migrate.{kind}.items_{items}.instructions_per_page"
        before = counters(vm)
        pairs = _run(vm, "ours", kind, items, COUNTED_ROUNDS)
        after = counters(vm)
        moved = pairs[0].pages * (COUNTED_ROUNDS + WARM_UP_ROUNDS)
        for phase in PHASES:
            spent = after[f"{phase}_ns"] - before[f"{phase}_ns"]
            figures.add(f"{name}.phase_{phase}.emulated", spent / moved, "instructions")
        for pair in pairs:
            figures.add(f"migrate.{kind}.instructions_ratio.emulated", 1 / pair.speedup, "x")
            figures.add(f"{name}.ours.emulated", pair.ns / pair.pages, "instructions")
            per_page = pair.move_pages_ns / pair.pages
            figures.add(f"{name}.move_pages.emulated", per_page, "instructions")
        for pair in _run(vm, "in_tree", kind, items, COUNTED_ROUNDS):
            figures.add(f"{name}.in_tree.emulated", pair.ns / pair.pages, "instructions")


def _stall(vm: Vm, figures: Figures) -> None:
    """Over the bound, of base pages: where the clock counts instructions, no CPU is taken away."""
    bound_ns = int(vm.run("cat /sys/kernel/memsluice/batch_stall_us").stdout) * 1000
    vm.run(f"echo > {TRACING}/trace; echo 1 | tee {EVENTS}")
    _run(vm, "ours", "base", 4096, 4)
    trace = vm.run(f"echo 0 | tee {EVENTS}; cat {TRACING}/trace").stdout
    planned = re.findall(r" folios=(\d+) .* expected_ns=(\d+) bound_ns=(\d+)", trace)
    largest = max(int(ns) / int(bound) for folios, ns, bound in planned if int(folios) > 1)
    figures.add("migrate.planned_over_cap.emulated", largest, "x")
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
