# SPDX-License-Identifier: GPL-2.0
import subprocess
from functools import cached_property
from pathlib import Path

CXX = (".c", ".cc", ".h")


class NotApplicable(Exception):
    """Why a check has nothing to look at, in words for the reader of the results."""


class Tree:
    """The files of the project: those that git has and those that it would add."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.build = root / "build"

    @cached_property
    def files(self) -> list[Path]:
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, check=True).stdout
        paths = {self.root / name for name in names.decode().split("\0") if name}
        return sorted(path for path in paths if path.is_file())

    def with_suffix(self, *suffixes: str) -> list[Path]:
        return [path for path in self.files if path.suffix in suffixes]

    def below(self, folder: str) -> list[Path]:
        return [path for path in self.files if path.is_relative_to(self.root / folder)]

    def name(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def run(self, *command: str | Path) -> list[str]:
        """The lines that COMMAND prints if it fails."""
        result = subprocess.run(
            command, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if result.returncode == 0:
            return []
        return result.stdout.splitlines() or [f"{command[0]}: exit status {result.returncode}"]


def first_line(path: Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline()


def interpreter(path: Path) -> str:
    """The program that a script names in its first line, without its folder."""
    line = first_line(path)
    return line[2:].split()[0].rsplit("/", 1)[-1] if line.startswith("#!/") else ""
