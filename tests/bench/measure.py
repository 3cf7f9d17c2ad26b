# SPDX-License-Identifier: GPL-2.0
"""Figures of a benchmark: collected over interleaved rounds, printed as lines or as JSON."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Figures:
    """Values by name; a name ends in its kind: .hardware, .emulated or .modelled."""

    values: dict[str, list[float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, name: str, value: float, unit: str) -> None:
        self.values.setdefault(name, []).append(value)
        self.units[name] = unit

    def copy(self, name: str, to: str) -> None:
        """The same values under another name."""
        self.values[to] = list(self.values[name])
        self.units[to] = self.units[name]

    def add_series(self, name: str, points: Sequence[tuple[float, float]]) -> None:
        """The course of the last round, for JSON."""
        self.series[name] = list(points)

    def lines(self) -> list[str]:
        return [
            f"{name}: {_rounded(statistics.median(values))} {self.units[name]}"
            f" ({_rounded(min(values))} to {_rounded(max(values))}, {len(values)} rounds)"
            for name, values in sorted(self.values.items())
        ]

    def as_json(self) -> str:
        report = {}
        for name, values in sorted(self.values.items()):
            report[name] = {
                "value": statistics.median(values),
                "unit": self.units[name],
                "low": min(values),
                "high": max(values),
            }
            if name in self.series:
                report[name]["series"] = self.series[name]  # type: ignore[assignment]
        return json.dumps(report, indent=1)


def _rounded(value: float) -> str:
    digits = 2 if value < 10 else 1 if value < 1000 else 0
    return f"{value:.{digits}f}"
