# SPDX-License-Identifier: GPL-2.0
"""The host's side of the guest agent: commands over a virtio-serial port (guest/agent.cc)."""

import itertools
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from .errors import TestbedError

HEADER = struct.Struct("<III")
INPUT_WINDOW_BYTES = 256 << 10
FRAME_BYTES = 32 << 10
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "TERM": "linux",
}


class Kind(IntEnum):
    HELLO = 1
    READY = 2
    START = 3
    INPUT = 4
    INPUT_TAKEN = 5
    SIGNAL = 6
    RESIZE = 7
    OUTPUT = 8
    ERROR = 9
    EXIT = 10


class CommandFailed(TestbedError):
    """A command did not exit with 0."""


class CommandTimeout(TestbedError):
    """A command ran for too long; it was killed."""


@dataclass(frozen=True)
class Result:
    """STATUS is the exit status, or minus the signal that ended the command."""

    status: int
    stdout: str
    stderr: str
    seconds: float


def _tail(text: str, lines: int = 30) -> str:
    return "\n".join(text.splitlines()[-lines:])


def _shown(argv: Sequence[str]) -> str:
    return argv[2] if list(argv[:2]) == ["sh", "-c"] else " ".join(argv)


class Command:
    """A command that runs, or ran, in the guest."""

    def __init__(self, agent: "Agent", number: int, name: str) -> None:
        self.name = name
        self.on_output: Callable[[bytes, bool], None] | None = None
        self._agent = agent
        self._number = number
        self._started = time.monotonic()
        self._ended = 0.0
        self._output = {Kind.OUTPUT: bytearray(), Kind.ERROR: bytearray()}
        self._input_outstanding_bytes = 0
        self._status: int | None = None

    @property
    def status(self) -> int | None:
        return self._status

    @property
    def stdout_bytes(self) -> bytes:
        return bytes(self._output[Kind.OUTPUT])

    @property
    def stdout(self) -> str:
        """What the command has printed so far."""
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        return bytes(self._output[Kind.ERROR]).decode(errors="replace")

    def write(self, data: bytes, timeout: float | None = None) -> None:
        """Feeds standard input; waits while the command has not read what was sent before."""
        for start in range(0, len(data), FRAME_BYTES):
            piece = data[start : start + FRAME_BYTES]
            if not self._agent.wait_for(
                lambda: self._status is not None
                or self._input_outstanding_bytes + len(piece) <= INPUT_WINDOW_BYTES,
                timeout,
            ):
                raise self._timed_out(timeout)
            if self._status is not None:
                return
            self._input_outstanding_bytes += len(piece)
            self._agent.send(Kind.INPUT, self._number, piece)

    def close_stdin(self) -> None:
        self._agent.send(Kind.INPUT, self._number)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends a signal to the command and to what it has started."""
        self._agent.send(Kind.SIGNAL, self._number, struct.pack("<I", number))

    def resize(self, rows: int, columns: int) -> None:
        self._agent.send(Kind.RESIZE, self._number, struct.pack("<HH", rows, columns))

    def wait(self, timeout: float | None = None, check: bool = False) -> Result:
        """The result, once the command has ended; after TIMEOUT seconds it is killed instead."""
        if not self._agent.wait_for(lambda: self._status is not None, timeout):
            self.kill()
            raise self._timed_out(timeout)
        assert self._status is not None
        result = Result(self._status, self.stdout, self.stderr, self._ended - self._started)
        if check and result.status:
            output = f"{_tail(result.stdout)}\n{_tail(result.stderr)}"
            raise CommandFailed(f"{self.name}: status {result.status}\n{output}")
        return result

    def _timed_out(self, timeout: float | None) -> CommandTimeout:
        return CommandTimeout(
            f"{self.name}: not done after {timeout} s\n{_tail(self.stdout)}\n{_tail(self.stderr)}"
        )

    def receive(self, kind: Kind, payload: bytes) -> None:
        """Called by the agent's reader, with its lock held."""
        if kind in self._output:
            self._output[kind] += payload
            if self.on_output:
                self.on_output(payload, kind == Kind.ERROR)
        elif kind == Kind.INPUT_TAKEN:
            self._input_outstanding_bytes -= struct.unpack("<I", payload)[0]
        elif kind == Kind.EXIT:
            self._status = struct.unpack("<i", payload)[0]
            self._ended = time.monotonic()


class Agent:
    """One connection to an agent. Threads may share it."""

    def __init__(self, connection: socket.socket, on_close: Callable[[], Exception]) -> None:
        self._connection = connection
        self._on_close = on_close
        self._changed = threading.Condition()
        self._send_lock = threading.Lock()
        self._commands: dict[int, Command] = {}
        self._numbers = itertools.count(1)
        self._nonce = os.urandom(8)
        self._ready = False
        self._error: Exception | None = None
        threading.Thread(target=self._read, daemon=True, name="agent").start()

    def connect(self, timeout: float) -> None:
        """Waits until the agent answers."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            self.send(Kind.HELLO, 0, self._nonce)
            if self.wait_for(lambda: self._ready, 0.5):
                return
        raise TestbedError(f"the guest's agent has not answered for {timeout:.0f} s")

    def start(
        self,
        command: str | Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: str = "/root",
        user_id: int | None = None,
        terminal: bool = False,
        on_output: Callable[[bytes, bool], None] | None = None,
    ) -> Command:
        """Starts a program, or a string with the shell. Its standard input stays open.

        ON_OUTPUT gets each piece of output as it comes, and whether it is standard error.
        """
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        variables = [
            f"{key}={value}" for key, value in {**ENVIRONMENT, **(environment or {})}.items()
        ]
        user = "" if user_id is None else str(user_id)
        fields = [cwd, user, "terminal" if terminal else "", str(len(argv)), *argv, *variables]
        with self._changed:
            number = next(self._numbers)
            started = self._commands[number] = Command(self, number, _shown(argv))
            started.on_output = on_output
        payload = b"".join(field.encode() + b"\0" for field in fields)
        self.send(Kind.START, number, payload)
        return started

    def send(self, kind: Kind, number: int, payload: bytes = b"") -> None:
        self.check()
        with self._send_lock:
            try:
                self._connection.sendall(HEADER.pack(len(payload), number, kind) + payload)
            except OSError:
                pass  # the reader sees it too, and knows why
        self.check()

    def wait_for(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Waits for what the reader changes; fails at once when the machine is gone."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._error is not None, timeout)
            if not condition() and self._error:
                raise self._error
            return condition()

    def check(self) -> None:
        """Raises if the machine is gone."""
        if self._error:
            raise self._error

    def fail(self, error: Exception) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def _read(self) -> None:
        stream = self._connection.makefile("rb")
        try:
            while header := stream.read(HEADER.size):
                size, number, kind = HEADER.unpack(header)
                self._dispatch(Kind(kind), number, stream.read(size))
        except (OSError, struct.error, ValueError):
            pass  # cut off in the middle: the machine is gone
        self.fail(self._on_close())

    def _dispatch(self, kind: Kind, number: int, payload: bytes) -> None:
        with self._changed:
            if kind == Kind.READY:
                self._ready = self._ready or payload == self._nonce
            elif number in self._commands:
                self._commands[number].receive(kind, payload)
                if kind == Kind.EXIT:
                    del self._commands[number]
            self._changed.notify_all()
