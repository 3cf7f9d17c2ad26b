# SPDX-License-Identifier: GPL-2.0
"""The command scripts/bench."""

import argparse
import sys

from guest_programs import ROOT, build, build_programs

sys.path[:0] = [str(ROOT / "tests/vm"), str(ROOT / "tests")]

from bench import copy, isolation, migrate, nic, placement, redistribute, tiering  # noqa: E402
from testbed.errors import TestbedError  # noqa: E402

BENCHMARKS = {
    "copy": copy.run,
    "isolation": isolation.run,
    "migrate": migrate.run,
    "nic": nic.run,
    "placement": placement.run,
    "redistribute": redistribute.run,
    "tiering": tiering.run,
}
# Those that need no machine, with what they run.
ON_THE_HOST = {"nic": ["nic-bench"]}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures, and prints `name: median unit (lowest to highest, rounds)`. A name "
        "ends in what kind of figure it is: measured on hardware, measured on an emulation, or "
        "modelled. What is compared is measured in turn within one run.",
    )
    parser.add_argument("name", choices=sorted(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=3, help="how often all is measured (3)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    return options


def main() -> int:
    options = arguments()
    log = ROOT / "build/bench.log"
    if options.name in ON_THE_HOST:
        build_programs(log, ON_THE_HOST[options.name])
    else:
        build(log, also=["memsluice-dsa"])
    try:
        figures = BENCHMARKS[options.name](
            options.rounds, lambda what: print(what, file=sys.stderr, flush=True)
        )
    except (TestbedError, RuntimeError) as error:
        sys.exit(f"bench: {error}")
    print(figures.as_json() if options.json else "\n".join(figures.lines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
