# SPDX-License-Identifier: GPL-2.0
"""The benchmark `migrate`: lists of pages, moved by memsluice, move_pages(2) and the kernel's own
migration with memsluice's pool."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from testbed.vm import Vm

from . import dsa_host
from .dsa_host import counters
from .guest import booted
from .measure import Figures

MODULE = "/opt/memsluice/modules/memsluice.ko"
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
ENGINE_LISTS = {"base": 1024, "thp": 24, "mixed": 192}
ENGINE_ROUNDS = 4


@dataclass(frozen=True)
class Pair:
    """What a turn of METHOD and one of move_pages(2) took, in ns, for so many pages."""

    pages: int
    ns: int
    move_pages_ns: int
    cpu_ns: int  # of these, of the thread that moves
    move_pages_cpu_ns: int

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
        ours, other = turn[method], turn["move_pages"]
        pairs.append(
            Pair(ours["pages"], ours["ns"], other["ns"], ours["cpu_ns"], other["cpu_ns"])
        )
    return pairs


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


def _engines(vm: Vm, rounds: int, figures: Figures, say: Callable[[str], None]) -> None:
    """The CPU time of who moves, over that of move_pages(2): copied by DSA, and by the CPU."""
    host = dsa_host.Host(vm)
    host.configure(dsa_host.DEVICES)
    for kind, items in ENGINE_LISTS.items():
        for engine, least_bytes in dsa_host.ENGINES.items():
            say(f"{kind}, {items} items, copied by {engine}")
            host.copy_from(least_bytes)
            for pair in _run(vm, "ours", kind, items, ENGINE_ROUNDS * rounds):
                ratio = pair.cpu_ns / pair.move_pages_cpu_ns
                figures.add(f"migrate.{kind}.cpu_time_ratio_{engine}.emulated", ratio, "x")
                figures.add(f"migrate.{kind}.speedup_{engine}.emulated", pair.speedup, "x")


def _lists() -> Iterator[tuple[str, int, int]]:
    for kind, lists in LISTS.items():
        for items, turns in lists.items():
            yield kind, items, turns


def run(rounds: int, say: Callable[[str], None]) -> Figures:
    """Methods take turns within each boot: one boot for time, one for instructions, one for DSA."""
    figures = Figures()
    with booted("migrate") as vm:
        vm.run(["insmod", MODULE])
        _speed(vm, rounds, figures, say)
    with booted("migrate-counted") as vm:
        vm.run(["insmod", MODULE])
        _instructions(vm, figures, say)
        _stall(vm, figures)
    with booted(dsa_host.MACHINE) as vm:
        _engines(vm, rounds, figures, say)
    return figures
