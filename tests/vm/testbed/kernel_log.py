# SPDX-License-Identifier: GPL-2.0
"""Finds the kernel's reports of trouble in the console's log."""

import re
from pathlib import Path

# With the time in front that printk puts there: programs write to the console too.
LINE = re.compile(r"^\[ *(\d+\.\d+)\](?:\[[^]]*\])? ?(.*)$")
STARTS = re.compile(
    r"WARNING: |BUG: |kernel BUG at |Oops|Kernel panic|UBSAN: |KASAN: |general protection fault"
    r"|INFO: task .* blocked for more than|INFO: .*detected.* stall|INFO: possible recursive"
    r"|INFO: trying to register non-static key|kmemleak: \d+ new suspected|unreferenced object"
    r"|list_(add|del) corruption|divide error|stack segment|invalid opcode|Bad page state"
)
ENDS = re.compile(r"---\[ end |^=+$")
GAP_SECONDS = 0.5
MOST_LINES = 120


def reports(text: str) -> list[str]:
    """The reports in a log, each with the lines that belong to it."""
    found: list[list[str]] = []
    previous = -1.0
    inside = False
    for line in text.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        seconds, message = float(match[1]), match[2]
        if inside and (seconds - previous > GAP_SECONDS or len(found[-1]) >= MOST_LINES):
            inside = False
        if inside:
            found[-1].append(line)
        elif STARTS.search(message):
            found.append([line])
            inside = True
        if inside and ENDS.search(message):
            inside = False
        previous = seconds
    return ["\n".join(lines) for lines in found]


class KernelLog:
    """Reads a console's log file piece by piece."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = 0

    def text(self) -> str:
        return self.path.read_text(errors="replace") if self.path.exists() else ""

    def tail(self, lines: int = 60) -> str:
        return "\n".join(self.text().splitlines()[-lines:])

    def new_reports(self) -> list[str]:
        """The reports that came since the last call."""
        with self.path.open("rb") as file:
            file.seek(self._position)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._position += len(whole)
        return reports(whole.decode(errors="replace"))
