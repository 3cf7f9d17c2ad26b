# SPDX-License-Identifier: GPL-2.0
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from outcome import FAILED, PASSED, SKIPPED, Outcome, read_junit, write_junit
from steps import Steps
from support import PROJECT


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path, tmp_path, deadline=time.monotonic() + 60, stop_s=1)


def is_running(process: Path) -> bool:
    try:
        return not (process / "stat").read_text().rsplit(") ", 1)[1].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_failing_command_is_a_failed_test_with_its_output(steps: Steps) -> None:
    assert steps.run("good", ["true"], 10)
    assert not steps.run("bad", ["sh", "-c", "echo why; exit 3"], 10)
    assert steps.outcomes == [Outcome("bad", FAILED, "exit status 3\nwhy")]


def test_a_hanging_command_is_killed_with_its_children(steps: Steps, tmp_path: Path) -> None:
    script = "trap '' INT; sleep 600 & echo $! > child; wait"
    assert not steps.run("hangs", ["bash", "-c", script], 3)
    assert steps.outcomes[0].detail.startswith("killed: not finished after 3 s")
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    wait_until(lambda: not is_running(child))


def test_an_interrupt_takes_the_command_along(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time; sys.path.insert(0, sys.argv[1]); from steps import Steps; "
        "here = pathlib.Path(sys.argv[2]); Steps(here, here, time.monotonic() + 60).run("
        "'sleeps', ['sh', '-c', 'echo $$ > child; exec sleep 600'], 60)"
    )
    command = [sys.executable, "-c", script, str(PROJECT / "scripts/lib"), str(tmp_path)]
    # A shell lets what it starts in the background ignore the signal.
    runner = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    pid_file = tmp_path / "child"
    wait_until(lambda: pid_file.exists() and pid_file.read_text() != "")
    runner.send_signal(signal.SIGINT)
    runner.wait(10)
    wait_until(lambda: not is_running(Path("/proc") / pid_file.read_text().strip()))


def test_steps_beside_others_count_and_give_way(steps: Steps, tmp_path: Path) -> None:
    def work() -> None:
        waits = "nice > nice; touch began; until [ -e end ]; do sleep 0.01; done"
        steps.run("nice", ["sh", "-c", waits], 30)
        steps.run("fails", ["false"], 30)
        steps.as_equal()
        steps.run("equal", ["sh", "-c", "nice > equal"], 30)

    with steps.beside(work):
        wait_until(lambda: (tmp_path / "began").exists())
        assert steps.run("in front", ["sh", "-c", "nice > front; touch end"], 30)
    assert [outcome.name for outcome in steps.outcomes] == ["fails"]
    assert set(steps.seconds) == {"nice", "in front", "fails", "equal"}
    assert (tmp_path / "nice").read_text() == "19\n"
    assert (tmp_path / "equal").read_text() == "0\n"
    assert int((tmp_path / "front").read_text()) == os.nice(0)


def test_an_error_ends_what_is_beside_it(steps: Steps, tmp_path: Path) -> None:
    pid_file = tmp_path / "child"

    def work() -> None:
        steps.run("sleeps", ["sh", "-c", "echo $$ > child; exec sleep 600"], 600)

    with pytest.raises(ZeroDivisionError):
        with steps.beside(work):
            wait_until(lambda: pid_file.exists() and pid_file.read_text() != "")
            raise ZeroDivisionError
    wait_until(lambda: not is_running(Path("/proc") / pid_file.read_text().strip()))


def test_an_error_beside_is_not_lost(steps: Steps) -> None:
    def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        with steps.beside(work):
            pass


def test_nothing_starts_after_the_deadline(tmp_path: Path) -> None:
    steps = Steps(tmp_path, tmp_path, deadline=time.monotonic())
    assert not steps.run("late", ["touch", "started"], 10)
    assert not (tmp_path / "started").exists()


def test_a_runner_that_dies_without_a_report_is_a_failure(steps: Steps, tmp_path: Path) -> None:
    steps.run_tests("runner", ["false"], tmp_path / "none.xml", 10)
    assert [outcome.status for outcome in steps.outcomes] == [FAILED]


def test_a_report_of_the_last_run_does_not_count(steps: Steps, tmp_path: Path) -> None:
    report = tmp_path / "old.xml"
    write_junit(report, [Outcome("old", PASSED)])
    steps.run_tests("runner", ["true"], report, 10)
    assert steps.outcomes == []


def test_junit_keeps_outcomes(tmp_path: Path) -> None:
    outcomes = [
        Outcome("a", PASSED),
        Outcome("b", FAILED, "because\nof this"),
        Outcome("c", SKIPPED, "no such device"),
    ]
    write_junit(tmp_path / "x.xml", outcomes)
    assert read_junit(tmp_path / "x.xml", "p") == [
        Outcome(f"p: {outcome.name}", outcome.status, outcome.detail) for outcome in outcomes
    ]


def test_ctest_report(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text(
        """<testsuite>
        <testcase name="a" classname="a" status="run"><system-out>fine</system-out></testcase>
        <testcase name="b" classname="b" status="fail">
          <failure message="Failed"/><system-out>1 != 2</system-out></testcase>
        <testcase name="c" classname="c" status="notrun">
          <skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
        </testsuite>"""
    )
    assert read_junit(tmp_path / "x.xml", "p") == [
        Outcome("p: a", PASSED),
        Outcome("p: b", FAILED, "Failed\n1 != 2"),
        Outcome("p: c", SKIPPED, "SKIP_REGULAR_EXPRESSION_MATCHED"),
    ]
