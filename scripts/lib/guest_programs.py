# SPDX-License-Identifier: GPL-2.0
"""Builds what runs in a guest: programs, module, traffic plugin."""

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
    """ALSO: more targets."""
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as output:
        for command in (
            ["cmake", "--preset", "release"],
            ["cmake", "--build", "--preset", "release", "--target", *TARGETS, *also],
            ["scripts/testbed", "build-module"],
        ):
            if subprocess.run(command, cwd=ROOT, stdout=output, stderr=output).returncode:
                sys.exit(f"{' '.join(command)} failed; {log} says why")
