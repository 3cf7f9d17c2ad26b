# SPDX-License-Identifier: GPL-2.0
"""Anonymous memory larger than the fast node, whose hot part moves."""

import json
from dataclasses import dataclass

from .tiered_host import Sample, TieredHost

BYTES, HOT_BYTES = "768M", "64M"
SHIFT_SECONDS = 30


@dataclass(frozen=True)
class Run:
    samples: list[Sample]
    accesses_per_s: float
    errors: int

    def fast_share_percent(self) -> float:
        """Of the whole run: a hot set that moves is never done with."""
        return sum(sample.fast_share_percent for sample in self.samples) / len(self.samples)


def run(host: TieredHost, seconds: int, interval_s: float = 5) -> Run:
    host.fresh_memory()
    load = host.start_in_tenant(
        f"hot-set --bytes {BYTES} --hot-bytes {HOT_BYTES} --hot-percent 90 --write-percent 30 "
        f"--shift-every-seconds {SHIFT_SECONDS} --seconds {seconds} --verify"
    )
    assert host.vm.agent.wait_for(lambda: bool(load.stdout) or load.status is not None, 600)
    # Verifying touches all memory once more: that is not the load.
    ran = '"event":"ran"'
    samples = host.watch(lambda: load.status is None and ran not in load.stdout, interval_s)
    lines = [json.loads(line) for line in load.wait(600, check=True).stdout.splitlines()]
    events = {line["event"]: line for line in lines}
    return Run(samples, events["ran"]["accesses_per_second"], events["done"]["errors"])
