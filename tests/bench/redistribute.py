# SPDX-License-Identifier: GPL-2.0
"""The benchmark `redistribute`: how fast a tenant's pages come to other channels, and what a reader
of them notices of it.
"""

import json
from collections.abc import Callable
from typing import Any

from testbed.vm import Vm

from .guest import booted
from .measure import Figures
from .placement import MODULE

CGROUP = "/sys/fs/cgroup/moving"
MIB = 128
SIZES = {"base": "base", "thp": "huge"}


def _measure(vm: Vm, size: str) -> dict[str, Any]:
    vm.run(f"mkdir -p {CGROUP}")
    try:
        load = f"redistribute-load {CGROUP} {SIZES[size]} {MIB}"
        return json.loads(vm.run(load, timeout=600).stdout)
    finally:
        vm.run(f"rmdir {CGROUP}", check=False)


def _add(figures: Figures, size: str, report: dict[str, Any]) -> None:
    name = f"redistribute.{{}}.{size}.emulated"
    ratio = report["redistribute_pages_per_s"] / report["migrate_pages_per_s"]
    figures.add(name.format("eager_rate_over_migrate"), ratio, "")
    figures.add(
        name.format("eager_mib_per_s"), report["redistribute_pages_per_s"] * 4096 / 2**20, "MiB/s"
    )
    quiet = {"eager": report["quiet"], "lazy": report["quiet_again"]}
    for way, before in quiet.items():
        meanwhile = report[way]
        slowdown = 1 - meanwhile["reads_per_s"] / before["reads_per_s"]
        figures.add(name.format(f"reader_slowdown_percent.{way}"), slowdown * 100, "%")
        figures.add(name.format(f"reader_p99_us.{way}"), meanwhile["p99_ns"] / 1000, "us")
        figures.add(name.format(f"seconds_until_share.{way}"), meanwhile["seconds"], "s")


def run(rounds: int, say: Callable[[str], None]) -> Figures:
    """Within one boot. A read fails the run if it does not find what was written."""
    figures = Figures()
    with booted("channels") as vm:
        vm.run(f"insmod {MODULE}; echo 0 > /proc/sys/kernel/numa_balancing")
        for number in range(rounds):
            for size in SIZES:
                say(f"round {number + 1} of {rounds}: {size}")
                _add(figures, size, _measure(vm, size))
    return figures
