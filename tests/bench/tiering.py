# SPDX-License-Identifier: GPL-2.0
"""The benchmark `tiering`: nobody, the kernel and memsluice tier the memory of two loads; memsluice
with pages that the CPU copies, and with pages that DSA copies.
"""

from collections.abc import Callable

from . import redis, shift
from .measure import Figures
from .tiered_host import MACHINE_WITH_DSA, Sample, TieredHost

REDIS_SECONDS = 60
SHIFT_SECONDS = 4 * shift.SHIFT_SECONDS
UNVERIFIED = "data was not as written: the figures of this run mean nothing"

Who = Callable[[TieredHost], None]
WHO: dict[str, Who] = {
    "none": TieredHost.nobody,
    "kernel": TieredHost.kernel,
    "ours": TieredHost.memsluice,
    "ours_dsa": TieredHost.memsluice_with_dsa,
}


def _course(samples: list[Sample]) -> list[tuple[float, float]]:
    return [(round(sample.seconds, 1), round(sample.fast_share_percent, 2)) for sample in samples]


def _redis(host: TieredHost, who: str, figures: Figures) -> None:
    host.nobody()
    server = redis.Redis(host)
    WHO[who](host)
    run = server.run(REDIS_SECONDS)
    wrong = server.verify()
    server.stop()
    if run.errors or wrong:
        raise RuntimeError(f"redis, {who}: {UNVERIFIED}")
    share = f"tiering.redis.fast_share_percent.{who}.emulated"
    figures.add(share, run.fast_share_percent(), "%")
    figures.add_series(share, _course(run.samples))
    figures.add(f"tiering.redis.requests_per_s.{who}.emulated", run.requests_per_s(), "1/s")
    _count_dsa(host, "redis", who, figures)


def _shift(host: TieredHost, who: str, figures: Figures) -> None:
    WHO[who](host)
    run = shift.run(host, SHIFT_SECONDS)
    if run.errors:
        raise RuntimeError(f"shift, {who}: {UNVERIFIED}")
    share = f"tiering.shift.fast_share_percent.{who}.emulated"
    figures.add(share, run.fast_share_percent(), "%")
    figures.add_series(share, _course(run.samples))
    figures.add(f"tiering.shift.accesses_per_s.{who}.emulated", run.accesses_per_s, "1/s")
    _count_dsa(host, "shift", who, figures)


def _count_dsa(host: TieredHost, load: str, who: str, figures: Figures) -> None:
    if who == "ours_dsa":
        copied_mib = host.copied_by_dsa_bytes() / (1 << 20)
        figures.add(f"tiering.{load}.copied_by_dsa_mib.emulated", copied_mib, "MiB")


def run(rounds: int, say: Callable[[str], None]) -> Figures:
    """Every round measures all of them in turn, beginning with another one each time."""
    figures = Figures()
    names = list(WHO)
    with TieredHost(MACHINE_WITH_DSA) as host:
        say(f"redis: {redis.describe()}; emulated: {host.latencies}")
        for number in range(rounds):
            first = number % len(names)
            for who in names[first:] + names[:first]:
                say(f"round {number + 1} of {rounds}: redis, {who}")
                _redis(host, who, figures)
                say(f"round {number + 1} of {rounds}: moving hot set, {who}")
                _shift(host, who, figures)
        reports = host.vm.kernel_reports()
    if reports:
        raise RuntimeError("the guest's kernel reported:\n" + "\n".join(reports))
    return figures
