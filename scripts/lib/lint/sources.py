# SPDX-License-Identifier: GPL-2.0
import re

from .tree import CXX, Tree, interpreter

LICENSED = (*CXX, ".py", ".sh", ".cmake")
LICENSED_NAMES = ("CMakeLists.txt", "Kbuild", "Makefile")
LICENCE_LINE = re.compile(r"(//|/\*|#) SPDX-License-Identifier: GPL-2\.0\b")
GENERATED = re.compile(r"\.(a|deb|gz|ko|log|mod|mod\.c|o|orig|pyc|rej|so)$|__pycache__/")


def licence_lines(tree: Tree) -> list[str]:
    """In the first line, or in the second of a script."""
    findings = []
    for path in tree.files:
        script = interpreter(path)
        if not (path.suffix in LICENSED or path.name in LICENSED_NAMES or script):
            continue
        lines = path.read_text(errors="replace").splitlines()[: 2 if script else 1]
        if not any(LICENCE_LINE.match(line) for line in lines):
            findings.append(f"{tree.name(path)}: no SPDX-License-Identifier line at the top")
    return findings


def private_paths(tree: Tree) -> list[str]:
    """Paths that exist on the writer's machine only."""
    here = re.escape(f"{tree.root}/")
    private = re.compile(rf"(?<![\w./-])(/home/\w|{here})")
    return [
        f"{tree.name(path)}:{number}: {line.strip()}"
        for path in tree.files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if private.search(line)
    ]


def generated_files(tree: Tree) -> list[str]:
    names = [tree.name(path) for path in tree.files]
    generated = [name for name in names if GENERATED.search(name)]
    return [f"{name}: is generated, and does not belong in git" for name in generated]
