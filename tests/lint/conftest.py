# SPDX-License-Identifier: GPL-2.0
import subprocess
import sys
from pathlib import Path

import pytest
from support import PROJECT, MakeTree

sys.path.insert(0, str(PROJECT / "scripts/lib"))


@pytest.fixture
def make_tree(tmp_path: Path) -> MakeTree:
    def make(files: dict[str, str]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        return tmp_path

    return make
