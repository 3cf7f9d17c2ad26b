# SPDX-License-Identifier: GPL-2.0
"""The command scripts/test."""

import argparse
import re
import sys
import time
from pathlib import Path

from outcome import FAILED, PASSED, SKIPPED, Outcome
from steps import Steps

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build/test"
PYTHON = "/usr/bin/python3"
ALL_MINUTES = 85  # CI kills at 90, and says less
DEBUG_MINUTES = 8 * 60
DEBUG_TEST_SECONDS = 3 * 3600  # everything takes some ten times as long there
BUILD_SECONDS = 4500  # beside the machines, at the least priority
TEST_SECONDS = 900  # the first test of a machine makes and boots it
FUZZ_SECONDS, LONG_FUZZ_SECONDS = 5, 600
OUR_WARNING = re.compile(
    rf"({re.escape(str(ROOT))}/|kernel/|include/uapi/|tests/vm/).*: (warning|error): "
    r"|WARNING: modpost: "
)
KERNELS = ("6.12", "backports")  # of scripts/testbed
NO_TESTS = 5  # pytest's exit status when the pattern names none of its tests
# Take minutes, and make their machines themselves: they run beside the others, after all else.
LONG_VM_TESTS = ("tests/vm/test_try.py", "tests/vm/test_install.py")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Installs what is missing, builds everything and runs every test. The last "
        "line counts them; the exit status is 0 if none failed and at least one ran. "
        "Logs are kept in build/test.",
    )
    parser.add_argument("pattern", nargs="?", default="", help="only tests with this in their name")
    parser.add_argument("--quick", action="store_true", help="without VMs and sanitizers")
    parser.add_argument(
        "--debug-kernel",
        action="store_true",
        help="only the module's tests, on a kernel that checks itself; some hours. With --soak: "
        "that, on this kernel",
    )
    parser.add_argument(
        "--long-fuzz",
        action="store_true",
        help=f"let every fuzz test run for {LONG_FUZZ_SECONDS} s instead of {FUZZ_SECONDS} s",
    )
    parser.add_argument(
        "--soak",
        type=int,
        metavar="MINUTES",
        help="only the module's tests: everything at once and at random, and all in random order, "
        "again and again for that long",
    )
    parser.add_argument(
        "--seed", type=int, help="of the first round of --soak, as a run before has printed it"
    )
    options = parser.parse_args()
    if options.soak is not None and options.soak < 1:
        parser.error("--soak: at least 1 minute")
    if options.seed is not None and options.soak is None:
        parser.error("--seed is for --soak")
    return options


def configure(steps: Steps, preset: str, fuzz_seconds: int) -> bool:
    command = ["cmake", "--preset", preset, f"-DMEMSLUICE_FUZZ_SECONDS={fuzz_seconds}"]
    return steps.run(f"configure {preset}", command, 300)


def build(steps: Steps, preset: str, fuzz_seconds: int, target: str = "all") -> bool:
    """TARGET: if empty, those that the preset names."""
    command = ["cmake", "--build", "--preset", preset]
    if target:
        command += ["--target", target]
    return configure(steps, preset, fuzz_seconds) and steps.run(
        f"build {preset}", command, BUILD_SECONDS
    )


def unit_tests(steps: Steps, preset: str, pattern: str, fuzz_seconds: int) -> None:
    junit = LOGS / f"{preset}.xml"
    command = ["ctest", "--preset", preset, "-j2", "--output-junit", junit]
    # Fuzz tests know their own time; the limit is for those that hang.
    command += ["--timeout", str(TEST_SECONDS + fuzz_seconds)]
    if pattern:
        command += ["-R", re.escape(pattern)]
    steps.run_tests(preset, command, junit, 3600)


def pytest(
    steps: Steps, name: str, where: list[str], pattern: str, limit_s: int, longest_test_s: int = 0
) -> None:
    junit = LOGS / f"{name}.xml"
    timeout = f"--timeout={TEST_SECONDS + longest_test_s}"
    command = [PYTHON, "-m", "pytest", "-v", timeout, "--durations=20", f"--junitxml={junit}"]
    if pattern:
        command += ["-k", pattern]
    steps.run_tests(name, command + where, junit, limit_s, stream=True, also_good=[NO_TESTS])


def lint(steps: Steps, pattern: str) -> None:
    junit = LOGS / "lint.xml"
    command = ["scripts/lint", "--junitxml", str(junit)]
    steps.run_tests("lint", command + ([pattern] if pattern else []), junit, 1800)


def build_module(steps: Steps, kernel: str) -> None:
    """With every warning that the kernel's build knows; one in our files is a failed test."""
    command = ["scripts/testbed", "build-module", "--kernel", kernel]
    # What is already built would be silent about its warnings.
    clean = [*command, "clean"]
    name = f"module build {kernel}"
    if not steps.run(f"module clean {kernel}", clean, 1800) or not steps.run(
        name, [*command, "W=1", "C=1"], 600
    ):
        return
    log = steps.log(name).read_text(errors="replace").splitlines()
    warnings = [line for line in log if OUR_WARNING.match(line)]
    status = FAILED if warnings else PASSED
    steps.outcomes.append(Outcome(f"module for {kernel}: no warnings", status, "\n".join(warnings)))


def build_debug_kernel(steps: Steps) -> bool:
    testbed = "scripts/testbed"
    return steps.run("debug kernel", [testbed, "debug-kernel"], 3600) and steps.run(
        "module build", [testbed, "build-module", "--kernel", "debug"], 600
    )


def debug_kernel(steps: Steps, pattern: str) -> None:
    where = ["tests/vm/test_module.py", "--kernel=debug"]
    pytest(steps, "vm", where, pattern, DEBUG_MINUTES * 60, longest_test_s=DEBUG_TEST_SECONDS)


def soak(steps: Steps, minutes: int, seed: int, debug: bool) -> None:
    print(f"begins with --seed {seed}", flush=True)
    where = ["tests/vm/test_soak.py", f"--soak={minutes}", f"--seed={seed}"]
    if debug:
        where.append("--kernel=debug")
    # A round of all tests is not interrupted.
    longest_s = minutes * 60 + (DEBUG_TEST_SECONDS if debug else TEST_SECONDS)
    pytest(steps, "soak", where, "", len(KERNELS) * longest_s, longest_s)


def module_tests(steps: Steps, options: argparse.Namespace) -> None:
    """What takes hours."""
    if options.debug_kernel and not build_debug_kernel(steps):
        return
    if not options.soak:
        debug_kernel(steps, options.pattern)
        return
    for kernel in () if options.debug_kernel else KERNELS:
        build_module(steps, kernel)
    seed = options.seed or int(time.time()) % 99999 + 1
    soak(steps, options.soak, seed, options.debug_kernel)


def report(steps: Steps) -> int:
    for name, seconds in steps.seconds.items():
        print(f"{seconds:7.0f} s  {name}")
    by_status = {
        status: [outcome for outcome in steps.outcomes if outcome.status == status]
        for status in (PASSED, FAILED, SKIPPED)
    }
    for outcome in by_status[SKIPPED]:
        print(f"SKIPPED {outcome.name}: {outcome.detail}")
    for outcome in by_status[FAILED]:
        print(f"FAILED {outcome.name}\n    " + outcome.detail.replace("\n", "\n    "))
    for outcome in by_status[FAILED]:
        print(f"FAILED {outcome.name}")
    print(", ".join(f"{len(outcomes)} {status}" for status, outcomes in by_status.items()))
    return 0 if by_status[PASSED] and not by_status[FAILED] else 1


def run(steps: Steps, options: argparse.Namespace, fuzz_seconds: int) -> None:
    if not steps.run("setup", ["scripts/setup"], 1200):
        return
    if options.soak or options.debug_kernel:
        if build(steps, "release", fuzz_seconds, "programs"):
            module_tests(steps, options)
        return
    # Unit tests run with sanitizers; what runs in VMs is linked statically, which excludes them.
    preset = "release" if options.quick else "debug"

    def on_the_host() -> None:
        if build(steps, preset, fuzz_seconds):
            unit_tests(steps, preset, options.pattern, fuzz_seconds)
        if options.quick:
            configure(steps, "debug", fuzz_seconds)  # for clang-tidy
        elif build(steps, "threads", fuzz_seconds, target=""):
            unit_tests(steps, "threads", options.pattern, fuzz_seconds)
        lint(steps, options.pattern)
        if not options.quick and programs:
            steps.as_equal()
            pytest(steps, "vm-long", list(LONG_VM_TESTS), options.pattern, 3600)

    pytest(steps, "host", ["tests", "--ignore=tests/vm"], options.pattern, 600)
    programs = build(steps, "release", fuzz_seconds, "programs")
    if options.quick or not programs:
        on_the_host()
        return
    # An emulated machine mostly keeps one CPU busy; there are two.
    with steps.beside(on_the_host):
        for kernel in KERNELS:
            build_module(steps, kernel)
        others = [f"--ignore={test}" for test in LONG_VM_TESTS]
        pytest(steps, "vm", ["tests/vm", *others], options.pattern, 3600)


def main() -> int:
    options = arguments()
    LOGS.mkdir(parents=True, exist_ok=True)
    fuzz_seconds = LONG_FUZZ_SECONDS if options.long_fuzz else FUZZ_SECONDS
    for_long = options.long_fuzz or options.soak or options.debug_kernel
    deadline = time.monotonic() + (24 * 60 if for_long else ALL_MINUTES) * 60
    environment = {"MEMSLUICE_FUZZ_SECONDS": str(fuzz_seconds)}
    steps = Steps(ROOT, LOGS, deadline, environment=environment)
    run(steps, options, fuzz_seconds)
    return report(steps)


if __name__ == "__main__":
    sys.exit(main())
