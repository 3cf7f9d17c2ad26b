# SPDX-License-Identifier: GPL-2.0
"""The command scripts/lint."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from outcome import FAILED, PASSED, SKIPPED, Outcome, write_junit

from . import abi, clang, documents, sources, tools
from .tree import NotApplicable, Tree

ROOT = Path(__file__).resolve().parents[3]

CHECKS: dict[str, Callable[[Tree], list[str]]] = {
    "licence-lines": sources.licence_lines,
    "private-paths": sources.private_paths,
    "generated-files": sources.generated_files,
    "include-directions": tools.include_directions,
    "shell": tools.shell,
    "python": tools.python,
    "links": documents.links,
    "man-pages": documents.man_pages,
    "abi-sysfs": abi.sysfs,
    "abi-dsa-knobs": abi.dsa_knobs,
    "abi-procfs": abi.procfs,
    "abi-ioctl": abi.ioctl,
    "abi-tracepoints": abi.tracepoints,
    "release": abi.release,
    "clang-format": clang.format_,
    "clang-tidy": clang.tidy,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/lint", description="Checks the sources.")
    parser.add_argument("pattern", nargs="?", default="", help=f"one of: {', '.join(CHECKS)}")
    parser.add_argument("--junitxml", type=Path, metavar="FILE", help="write the results there too")
    return parser.parse_args()


def check(name: str, function: Callable[[Tree], list[str]], tree: Tree) -> Outcome:
    begin = time.monotonic()
    try:
        findings = function(tree)
        outcome = Outcome(name, FAILED if findings else PASSED, "\n".join(findings))
    except NotApplicable as reason:
        outcome = Outcome(name, SKIPPED, str(reason))
    print(f"{outcome.status:8}{time.monotonic() - begin:5.1f} s  {name}", flush=True)
    if outcome.detail:
        print(outcome.detail, flush=True)
    return outcome


def main() -> int:
    options = arguments()
    chosen = {name: function for name, function in CHECKS.items() if options.pattern in name}
    tree = Tree(ROOT)
    outcomes = [check(name, function, tree) for name, function in chosen.items()]
    if options.junitxml:
        write_junit(options.junitxml, outcomes)
    return int(any(outcome.status == FAILED for outcome in outcomes))
