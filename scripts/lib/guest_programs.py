# SPDX-License-Identifier: GPL-2.0
"""Builds what benches run: programs, and for guests the module and the traffic plugin."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = (
    "memsluiced", "memsluice", "redis-load", "hot-set", "migrate-lists", "fault-cost",
    "memory-load", "redistribute-load",
    "memsluice-traffic", "memsluice_traffic_plugin",
)  # fmt: skip


def build(log: Path, also: Sequence[str] = ()) -> None:
    """What runs in a guest. ALSO: more targets."""
    build_programs(log, [*TARGETS, *also], then=[["scripts/testbed", "build-module"]])


def build_programs(log: Path, targets: Sequence[str], then: Sequence[Sequence[str]] = ()) -> None:
    """THEN: commands to run after that."""
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as output:
        for command in (
            ["cmake", "--preset", "release"],
            ["cmake", "--build", "--preset", "release", "--target", *targets],
            *then,
        ):
            if subprocess.run(command, cwd=ROOT, stdout=output, stderr=output).returncode:
                sys.exit(f"{' '.join(command)} failed; {log} says why")
