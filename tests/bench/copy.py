# SPDX-License-Identifier: GPL-2.0
"""The benchmark `copy`: lists of pages copied by DSA and by the CPU, and what hardware would take.

Times are those of the emulation. What hardware would take is modelled (docs/memsluice-dsa.md) from
the descriptors that the module really gave to the emulated devices.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.dsa import MEMMOVE, PROGRAM

from .dsa_host import COUNTED_MACHINE, DEVICES, ENGINES, MACHINE, Host, counters
from .guest import booted
from .measure import Figures

PAGE_BYTES, HUGE_BYTES = 4096, 2 << 20
TRACE_ENTRIES = 1_000_000
QUEUE_COUNTS = (1, 2, 4, 8)
SENSITIVITY = 0.3
# DSA-2LM (ATC '25): on list B the engine reaches 106.3 GB/s, 14.38 times what the CPU does.
CPU_GB_PER_S = 106.3 / 14.38
# Options of memsluice-dsa time, with its defaults: docs/memsluice-dsa.md says where they are from.
CONSTANTS = {
    "device-gb-per-s": 32.0,
    "all-gb-per-s": 110.0,
    "descriptor-ns": 70.0,
    "latency-ns": 400.0,
    "submit-ns": 6.0,
}


@dataclass(frozen=True)
class List:
    """ITEMS pages, of which each HUGE_EVERYth is a huge one; 0: none."""

    name: str
    items: int
    huge_every: int

    @property
    def huge(self) -> int:
        return self.items // self.huge_every if self.huge_every else 0

    @property
    def base(self) -> int:
        return self.items - self.huge

    @property
    def arguments(self) -> list[str]:
        kind = "base" if not self.huge else "mixed" if self.base else "thp"
        arguments = ["--kind", kind, "--items", str(self.items)]
        return arguments + (["--huge-every", str(self.huge_every)] if kind == "mixed" else [])


# DSA-2LM's lists: B of 24 huge pages among 1000, A of one among 1023.
MIXED_B = List("mixed_b", 1024, 42)
LISTS = (
    List("mixed_a", 1024, 1024),
    List("thp", 24, 1),
    *(List(f"base.items_{items}", items, 0) for items in (1, 8, 64, 512, 4096)),
)


def _copy_ns_per_byte(host: Host, what: List, engine: str) -> float:
    host.copy_from(ENGINES[engine])
    before = counters(host.vm)
    host.vm.run(["migrate-lists", "--rounds", "1", *what.arguments], timeout=600)
    after = counters(host.vm)
    copied = after["copied_bytes"] - before["copied_bytes"]
    return (after["copy_ns"] - before["copy_ns"]) / copied


def _trace(host: Host, what: List) -> list[list[dict[str, Any]]]:
    """What each device was given to copy the list there and back."""
    for device in host.vm.dsa:
        device.ask("trace", entries=TRACE_ENTRIES)
    _copy_ns_per_byte(host, what, "dsa")
    traces = [device.ask("read-trace") for device in host.vm.dsa]
    for device in host.vm.dsa:
        device.ask("trace", entries=0)
    return [trace for trace in traces if trace]


def _model(traces: Sequence[Sequence[dict[str, Any]]], constants: dict[str, float]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number in range(len(traces))]
        for file, trace in zip(files, traces, strict=True):
            file.write_text(json.dumps(trace))
        options = [f"--{name}={value}" for name, value in constants.items()]
        command = [PROGRAM, "time", *options, *files]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def _raw(what: List, queues: int) -> list[list[dict[str, Any]]]:
    """Huge pages by DSA, each as one descriptor, the queues in turn; the CPU copies the rest."""
    devices = min(queues, DEVICES)
    traces: list[list[dict[str, Any]]] = [[] for _ in range(devices)]
    for number in range(what.huge):
        queue = number % queues
        traces[queue % devices].append(
            {
                "sequence": number // queues,
                "queue": queue // devices,
                "batch_index": -1,
                "opcode": MEMMOVE,
                "size": HUGE_BYTES,
            }
        )
    return [trace for trace in traces if trace]


def _against_raw(
    traces: list[list[dict[str, Any]]], queues: int, constants: dict[str, float], cpu: float
) -> tuple[float, float]:
    """How much faster than DSA-raw list B is, and how near to the peak, in percent."""
    ours = _model(traces, constants)
    raw = _model(_raw(MIXED_B, queues), constants)
    bytes_ = MIXED_B.base * PAGE_BYTES + MIXED_B.huge * HUGE_BYTES
    raw_ns_per_byte = (raw["modelled_ns"] + MIXED_B.base * PAGE_BYTES / cpu) / bytes_
    ours_ns_per_byte = ours["modelled_ns"] / ours["bytes"]
    return raw_ns_per_byte / ours_ns_per_byte, 100 * ours["peak_ns"] / ours["modelled_ns"]


def _sensitivity(
    traces: list[list[dict[str, Any]]], figures: Figures, say: Callable[[str], None]
) -> None:
    """Each constant alone by 30 % less and more."""
    known = CONSTANTS | {"cpu-gb-per-s": CPU_GB_PER_S}
    for name, value in known.items():
        for factor in (1 - SENSITIVITY, 1 + SENSITIVITY):
            changed = known | {name: value * factor}
            cpu = changed.pop("cpu-gb-per-s")
            speedup, peak = _against_raw(traces, QUEUE_COUNTS[-1], changed, cpu)
            say(f"{name} {value * factor:.4g}: {speedup:.3f} x DSA-raw, {peak:.2f} % of the peak")
            figures.add("copy.mixed_b.speedup_over_raw.sensitivity.modelled", speedup, "x")
            figures.add("copy.mixed_b.peak_percent.sensitivity.modelled", peak, "%")


def _descriptors_per_page(traces: list[list[dict[str, Any]]]) -> float:
    submitted = {
        (device, entry["queue"], entry["sequence"])
        for device, trace in enumerate(traces)
        for entry in trace
    }
    bytes_ = sum(entry["size"] for trace in traces for entry in trace if entry["opcode"] == MEMMOVE)
    return len(submitted) * PAGE_BYTES / bytes_


def _modelled(
    host: Host, what: List, name: str, figures: Figures
) -> list[list[dict[str, Any]]]:
    traces = _trace(host, what)
    modelled = _model(traces, CONSTANTS)
    figures.add(
        f"{name}.gb_per_s.modelled", modelled["bytes"] / modelled["modelled_ns"], "GB/s"
    )
    figures.add(f"{name}.descriptors_per_page.emulated", _descriptors_per_page(traces), "1")
    return traces


def _pairs(host: Host, what: List, name: str, rounds: int, figures: Figures) -> None:
    """DSA and CPU in turn; the first turn of each is not counted."""
    for number in range(rounds + 1):
        by_dsa = _copy_ns_per_byte(host, what, "dsa")
        by_cpu = _copy_ns_per_byte(host, what, "cpu")
        if number:
            figures.add(f"{name}.speedup_over_cpu.emulated", by_cpu / by_dsa, "x")


def _instructions(host: Host, what: List, name: str, figures: Figures) -> None:
    """What the CPU executes for a page beside the copy, where its clock counts that."""
    _copy_ns_per_byte(host, what, "dsa")
    before = counters(host.vm)
    _copy_ns_per_byte(host, what, "dsa")
    after = counters(host.vm)
    spent = {
        phase: after[f"{phase}_ns"] - before[f"{phase}_ns"] for phase in ("unmap", "submit", "map")
    }
    pages = (after["copied_bytes"] - before["copied_bytes"]) / PAGE_BYTES
    prefix = f"{name}.instructions_outside_copying_per_page"
    for phase, instructions in spent.items():
        figures.add(f"{prefix}.{phase}.emulated", instructions / pages, "instructions")
    figures.add(f"{prefix}.emulated", sum(spent.values()) / pages, "instructions")


def run(rounds: int, say: Callable[[str], None]) -> Figures:
    figures = Figures()
    with booted(MACHINE) as vm:
        host = Host(vm)
        for queues in QUEUE_COUNTS:
            say(f"mixed_b, {queues} queues")
            host.configure(queues)
            name = f"copy.mixed_b.queues_{queues}"
            traces = _modelled(host, MIXED_B, name, figures)
            speedup, peak = _against_raw(traces, queues, CONSTANTS, CPU_GB_PER_S)
            figures.add(f"{name}.speedup_over_raw.modelled", speedup, "x")
            figures.add(f"{name}.peak_percent.modelled", peak, "%")
            _pairs(host, MIXED_B, name, rounds, figures)
        # What the benchmark is judged by: with all queues.
        judged_by = ("speedup_over_raw.modelled", "peak_percent.modelled")
        for figure in (*judged_by, "speedup_over_cpu.emulated"):
            figures.copy(f"{name}.{figure}", f"copy.mixed_b.{figure}")
        _sensitivity(traces, figures, say)
        for what in LISTS:
            say(f"{what.name}, {queues} queues")
            _modelled(host, what, f"copy.{what.name}", figures)
            _pairs(host, what, f"copy.{what.name}", rounds, figures)
    with booted(COUNTED_MACHINE) as vm:
        host = Host(vm)
        host.configure(QUEUE_COUNTS[-1])
        for what in (MIXED_B, *LISTS):
            say(f"{what.name}, instructions counted")
            _instructions(host, what, f"copy.{what.name}", figures)
    return figures
