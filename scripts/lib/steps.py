# SPDX-License-Identifier: GPL-2.0
"""Runs the commands that make up a test run, each with a time limit, and keeps what they say."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import BinaryIO

from outcome import FAILED, Outcome, read_junit

TAIL_LINES = 60
POLL_SECONDS = 0.1
LEAST_PRIORITY = 19


@dataclass
class Steps:
    root: Path
    logs: Path
    deadline: float  # of all steps together, by time.monotonic()
    _: KW_ONLY
    stop_s: float = 20  # from being asked to stop to being killed
    environment: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _interrupted: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def beside(self, work: Callable[[], None]) -> Iterator[None]:
        """WORK, with what the body leaves of the CPUs; leaving the body waits for its end.

        An exception in the body ends the commands of WORK, too. WORK may call as_equal().
        """

        def last_of_all() -> None:
            # Of this thread, and so of what it starts.
            os.setpriority(os.PRIO_PROCESS, 0, LEAST_PRIORITY)
            work()

        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(last_of_all)
            try:
                yield
                working.result()
            except BaseException:
                self._interrupted.set()
                raise

    @staticmethod
    def as_equal() -> None:
        """What this thread starts from here on yields to nothing. For root only."""
        os.setpriority(os.PRIO_PROCESS, 0, 0)

    def run(
        self, name: str, command: Sequence[str | Path], limit_s: int, *, stream: bool = False
    ) -> bool:
        """Runs COMMAND; when it fails, that is a failed test called NAME."""
        status, log = self._run(name, command, limit_s, stream)
        if status != "":
            self.outcomes.append(Outcome(name, FAILED, f"{status}\n{_tail(log)}"))
        return status == ""

    def run_tests(
        self,
        name: str,
        command: Sequence[str | Path],
        junit: Path,
        limit_s: int,
        *,
        stream: bool = False,
        also_good: Sequence[int] = (),
    ) -> None:
        """Runs a test runner, whose tests are read from JUNIT."""
        junit.unlink(missing_ok=True)
        status, log = self._run(name, command, limit_s, stream, also_good)
        found = read_junit(junit, name) if junit.exists() else []
        self.outcomes += found
        if status != "" and not any(outcome.status == FAILED for outcome in found):
            self.outcomes.append(Outcome(name, FAILED, f"{status}\n{_tail(log)}"))

    def log(self, name: str) -> Path:
        return self.logs / f"{name.replace(' ', '-')}.log"

    def _run(
        self,
        name: str,
        command: Sequence[str | Path],
        limit_s: int,
        stream: bool,
        also_good: Sequence[int] = (),
    ) -> tuple[str, Path]:
        log = self.log(name)
        limit_s = min(limit_s, int(self.deadline - time.monotonic()))
        print(f"== {name}: {' '.join(map(str, command))}", flush=True)
        if limit_s <= 0:
            log.write_text("")
            return "not started: the time for all tests is over", log
        begin = time.monotonic()
        status = self._execute(command, log, limit_s, stream)
        self.seconds[name] = time.monotonic() - begin
        print(f"   {status or 'ended'} after {self.seconds[name]:.0f} s", flush=True)
        return ("" if status in {f"exit status {code}" for code in also_good} else status), log

    def _execute(
        self, command: Sequence[str | Path], log: Path, limit_s: int, stream: bool
    ) -> str:
        # A file, not a pipe: a process that outlives the command must not keep us waiting.
        with open(log, "wb") as output, open(log, "rb") as follower:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            end = time.monotonic() + limit_s
            try:
                while (
                    process.poll() is None
                    and time.monotonic() < end
                    and not self._interrupted.is_set()
                ):
                    time.sleep(POLL_SECONDS)
                    if stream:
                        _copy(follower)
            finally:  # also when somebody interrupts us
                killed = process.poll() is None
                if killed:
                    _stop(process, self.stop_s)
            if stream:
                _copy(follower)
        if killed:
            return f"killed: not finished after {limit_s} s"
        return f"exit status {process.returncode}" if process.returncode else ""


def _copy(follower: BinaryIO) -> None:
    sys.stdout.buffer.write(follower.read())
    sys.stdout.buffer.flush()


def _stop(process: subprocess.Popen[bytes], patience_s: float) -> None:
    # An interrupt lets pytest take its machines down; what is left then dies.
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
