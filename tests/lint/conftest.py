# SPDX-License-Identifier: GPL-2.0
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts/lib"))

MakeTree = Callable[[dict[str, str]], Path]


@pytest.fixture
def make_tree(tmp_path: Path) -> MakeTree:
    """Makes a git work tree from names and contents."""

    def make(files: dict[str, str]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        return tmp_path

    return make
