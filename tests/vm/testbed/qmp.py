# SPDX-License-Identifier: GPL-2.0
"""A client of QEMU's machine protocol."""

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from .errors import TestbedError


class QmpError(TestbedError):
    """QEMU refused a command."""


class Qmp:
    def __init__(self, connection: socket.socket, on_close: Callable[[], Exception]) -> None:
        self.events: list[dict[str, Any]] = []
        self._connection = connection
        self._on_close = on_close
        self._changed = threading.Condition()
        self._command_lock = threading.Lock()
        self._reply: dict[str, Any] | None = None
        self._error: Exception | None = None
        threading.Thread(target=self._read, daemon=True, name="qmp").start()

    def execute(
        self, command: str, arguments: dict[str, Any] | None = None, timeout: float = 60
    ) -> Any:
        """Returns what the command returns. ARGUMENTS is a dict because QMP's names have dashes."""
        message = {"execute": command} | ({"arguments": arguments} if arguments else {})
        with self._command_lock, self._changed:
            self._reply = None
            try:
                self._connection.sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                pass  # the reader sees it too, and knows why
            if not self._changed.wait_for(lambda: self._reply or self._error, timeout):
                raise QmpError(f"{command}: no answer from QEMU for {timeout} s")
            if self._reply is None:
                assert self._error
                raise self._error
            if "error" in self._reply:
                raise QmpError(f"{command}: {self._reply['error']['desc']}")
            return self._reply["return"]

    def wait_event(self, name: str, timeout: float, since: int = 0) -> dict[str, Any]:
        """The first event NAME, the first SINCE events aside."""

        def found() -> dict[str, Any] | None:
            return next((event for event in self.events[since:] if event["event"] == name), None)

        with self._changed:
            event = self._changed.wait_for(lambda: found() or self._error, timeout) and found()
            if event:
                return event
            raise self._error or QmpError(f"no event {name} for {timeout} s")

    def _read(self) -> None:
        try:
            for line in self._connection.makefile("rb"):
                message = json.loads(line)
                with self._changed:
                    if "event" in message:
                        self.events.append(message)
                    elif "QMP" not in message:
                        self._reply = message
                    self._changed.notify_all()
        except (OSError, ValueError):
            pass  # cut off in the middle: the machine is gone
        error = self._on_close()
        with self._changed:
            self._error = error
            self._changed.notify_all()
