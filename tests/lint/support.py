# SPDX-License-Identifier: GPL-2.0
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
# Makes a git work tree from names and contents.
MakeTree = Callable[[dict[str, str]], Path]
