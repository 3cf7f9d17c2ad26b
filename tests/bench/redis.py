# SPDX-License-Identifier: GPL-2.0
"""A Redis whose data does not fit into the fast node, under a skewed load."""

import json
import statistics
from dataclasses import dataclass
from typing import Any

from testbed.agent import Command

from .tiered_host import Sample, TieredHost

KEYS = 112_000
VALUE_BYTES = 4000
HOT_FRACTION, HOT_SHARE = 0.05, 0.9
SOCKET = "/run/redis.sock"
# Filled in order, so the first keys are on the fast node. The popular ones begin at 75 %.
FIRST_SHIFT = 15
LOAD = f"redis-load --unix {SOCKET} --json"


@dataclass(frozen=True)
class Run:
    """Means are of the last half: what is left once whoever tiers has had its time."""

    samples: list[Sample]
    requests_by_second: list[float]
    errors: int

    def fast_share_percent(self) -> float:
        return _mean_of_last_half([sample.fast_share_percent for sample in self.samples])

    def requests_per_s(self) -> float:
        return _mean_of_last_half(self.requests_by_second)


def _mean_of_last_half(values: list[float]) -> float:
    return statistics.fmean(values[len(values) // 2 :])


class Redis:
    """Started in the tenant and filled."""

    def __init__(self, host: TieredHost) -> None:
        self._host = host
        host.fresh_memory()
        self._server: Command = host.start_in_tenant(
            f"redis-server --port 0 --unixsocket {SOCKET} --save '' --appendonly no "
            "--daemonize no --activedefrag no"
        )
        ping = f"redis-cli -s {SOCKET} ping 2>/dev/null | grep -q PONG"
        host.vm.run(f"until {ping}; do sleep 0.1; done")
        self._load(f"fill --keys {KEYS} --value-bytes {VALUE_BYTES}")

    def run(self, seconds: int, interval_s: float = 5) -> Run:
        load = self._host.vm.start(
            f"{LOAD} run --seconds {seconds} --skew hot:{HOT_FRACTION}:{HOT_SHARE} "
            f"--first-shift {FIRST_SHIFT} --clients 2 --pipeline 16 --write-percent 10"
        )
        samples = self._host.watch(lambda: load.status is None, interval_s)
        report = json.loads(load.wait(60, check=True).stdout)
        return Run(samples, report["requests_per_second_by_second"], _errors(report))

    def verify(self) -> int:
        """Keys that do not hold what was last written to them."""
        return _errors(self._load("verify"))

    def stop(self) -> None:
        self._server.kill()
        self._server.wait(60)

    def _load(self, arguments: str) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(
            self._host.vm.run(f"{LOAD} {arguments}", timeout=600).stdout
        )
        return report


def _errors(report: dict[str, Any]) -> int:
    return int(sum(report["errors"].values()))


def describe() -> str:
    return (
        f"{KEYS} keys of {VALUE_BYTES} bytes; {HOT_FRACTION:.0%} of the keys get "
        f"{HOT_SHARE:.0%} of the requests"
    )
