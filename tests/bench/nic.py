# SPDX-License-Identifier: GPL-2.0
"""The benchmark `nic`: what requests and chains cost on the emulated NIC, in one process."""

import json
import subprocess
from collections.abc import Callable

from testbed.paths import RELEASE

from .measure import Figures

PROGRAM = RELEASE / "tests/bench/nic-bench"


def run(rounds: int, say: Callable[[str], None]) -> Figures:
    """Times are wall clock, of the least disturbed of some turns within a round."""
    figures = Figures()
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        result = subprocess.run([PROGRAM], capture_output=True, check=True, text=True)
        for name, value in json.loads(result.stdout).items():
            unit = "ns" if "_ns" in name else "1/s"
            figures.add(f"nic.{name}.emulated", value, unit)
    return figures
