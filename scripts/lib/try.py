# SPDX-License-Identifier: GPL-2.0
"""The command scripts/try."""

import argparse
import sys
import time
from typing import Any

from guest_programs import ROOT, build

sys.path[:0] = [str(ROOT / "tests/vm"), str(ROOT / "tests")]

from bench import redis  # noqa: E402
from bench.tiered_host import TENANT, TieredHost  # noqa: E402
from testbed.errors import TestbedError  # noqa: E402

BEFORE_S, AFTER_S = 20, 50


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/try",
        description="Shows memsluice at work: builds it, boots a VM with a fast and a slow memory "
        "node, and runs a Redis in it whose data does not fit into the fast one, first without "
        "and then with memsluice. Under ten minutes the first time, under three from then on.",
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the machine running, to look around in it"
    )
    return parser.parse_args()


class Clock:
    def __init__(self) -> None:
        self._begun = time.monotonic()

    def say(self, what: str) -> None:
        print(f"{time.monotonic() - self._begun:5.0f} s  {what}", flush=True)


def table(
    before: redis.Run, after: redis.Run, tenant: dict[str, Any], wrong: int, latency: str
) -> str:
    refused = {why: pages for why, pages in tenant["refused_pages"].items() if pages}
    reasons = ", ".join(f"{why} {pages}" for why, pages in sorted(refused.items())) or "none"
    errors = before.errors + after.errors + wrong
    return "\n".join(
        [
            "",
            f"  {'(last half of each load)':36}{'without':>10}{'with memsluice':>16}",
            f"  {'memory traffic from the fast node':36}{before.fast_share_percent():>8.1f} %"
            f"{after.fast_share_percent():>14.1f} %   exact, counted by the emulator",
            f"  {'requests per second':36}{before.requests_per_s():>10.0f}"
            f"{after.requests_per_s():>16.0f}   emulated: {latency}",
            "",
            f"  pages promoted {tenant['promoted_pages']}, demoted {tenant['demoted_pages']}; "
            f"refused: {reasons}",
            f"  {redis.KEYS} keys verified byte for byte while pages moved and after: "
            + ("all as written" if errors == 0 else f"{errors} WRONG"),
            "",
        ]
    )


def show(host: TieredHost, clock: Clock) -> int:
    clock.say(f"filling Redis: {redis.describe()}")
    server = redis.Redis(host)
    clock.say(f"load for {BEFORE_S} s, nothing moves pages")
    before = server.run(BEFORE_S)
    clock.say(f"module loaded, memsluiced started, {TENANT} is a tenant; load for {AFTER_S} s")
    host.memsluice()
    after = server.run(AFTER_S)
    tenant = host.tenant()
    if tenant is None:
        sys.exit("try: the daemon has lost its tenant")
    print(host.vm.run(["memsluice", "top", "--once"]).stdout, flush=True)
    clock.say("verifying all keys")
    wrong = server.verify()
    print(table(before, after, tenant, wrong, host.latencies))
    reports = host.vm.kernel_reports()
    if reports:
        print("the kernel has something to report:\n" + "\n".join(reports))
    return 1 if reports or wrong or before.errors or after.errors else 0


def keep(host: TieredHost) -> None:
    print(
        f"The machine keeps running until Ctrl-C. In another terminal:\n"
        f"  scripts/testbed attach {host.vm.directory.name}\n"
        f"and there: memsluice status, memsluice top, memsluice doctor"
    )
    try:
        while host.vm.alive:
            time.sleep(1)
    except KeyboardInterrupt:
        print()


def main() -> int:
    options = arguments()
    clock = Clock()
    clock.say("building (the first time: downloading QEMU, a kernel and a Debian root, too)")
    build(ROOT / "build/try.log")
    clock.say("booting")
    try:
        with TieredHost() as host:
            status = show(host, clock)
            if options.keep:
                keep(host)
            return status
    except TestbedError as error:
        sys.exit(f"try: {error}")
    except KeyboardInterrupt:
        sys.exit("try: interrupted")


if __name__ == "__main__":
    sys.exit(main())
