# SPDX-License-Identifier: GPL-2.0
import hashlib
import json
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .tree import CXX, NotApplicable, Tree

JOBS = 2
# TRACE_EVENT() has a layout of its own.
UNFORMATTED = ("kernel/abi/trace.h", "kernel/dsa/trace.h")
UNITY_SOURCE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
FORMAT_FINDING = re.compile(r"(.*?):(\d+):\d+: error: ")


def format_(tree: Tree) -> list[str]:
    """Each file by the .clang-format of its folder or the nearest one above."""
    files = [path for path in tree.with_suffix(*CXX) if tree.name(path) not in UNFORMATTED]
    report = tree.run("clang-format", "--dry-run", "--Werror", *files) if files else []
    places = [match for line in report if (match := FORMAT_FINDING.match(line))]
    lines = Counter((match[1], match[2]) for match in places)
    files_found = Counter(file for file, _ in lines)
    return [
        f"{tree.name(Path(file))}: {count} lines; clang-format -i mends them"
        for file, count in files_found.items()
    ]


def tidy(tree: Tree) -> list[str]:
    """What was clean stays so until it, what it includes, its flags or the rules change."""
    # Its files are compiled many at once: what they all include is looked at once.
    debug = tree.build / "debug"
    database = debug / "compile_commands.json"
    if not database.exists():
        raise NotApplicable("not configured: cmake --preset debug")
    ours = set(tree.files)
    # Without the module, whose pure parts tests compile: it has the kernel's customs, and sparse.
    # Without what is for guests, which this build leaves out.
    checked = ours - set(tree.below("kernel")) - set(tree.below("tests"))
    # A file that several targets compile is checked once.
    by_file = {unit["file"]: unit for unit in json.loads(database.read_text())}
    units = [unit for file, unit in by_file.items() if checked & set(_sources(Path(file)))]
    clean = tree.build / "lint/tidy"
    clean.mkdir(parents=True, exist_ok=True)
    headers = _included_headers(debug, ours)
    keys = {unit["file"]: _key(tree, unit, headers) for unit in units}
    due = [file for file, key in keys.items() if not (clean / key).exists()]

    def run(file: str) -> list[str]:
        findings = _tidy_one(tree, debug, file)
        if not findings:
            (clean / keys[file]).touch()
        return findings

    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(run, due))
    # A header's findings come once for each file that includes it.
    return list(dict.fromkeys(line for findings in results for line in findings))


def _sources(unit: Path) -> list[Path]:
    """What CMake compiles together, or the one file."""
    if "Unity" not in unit.parts:
        return [unit]
    return [Path(path) for path in UNITY_SOURCE.findall(unit.read_text())]


def _tidy_one(tree: Tree, build: Path, file: str) -> list[str]:
    rules = f"--config-file={tree.root / '.clang-tidy'}"
    command = ["clang-tidy", "--quiet", "-p", str(build), rules, file]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode and not result.stdout:
        return [f"{file}: {result.stderr.strip()}"]
    return result.stdout.replace(f"{tree.root}/", "").splitlines()


def _included_headers(build: Path, ours: set[Path]) -> dict[str, list[Path]]:
    """By object file, as the last build saw it; a file that was never built has none."""
    output = subprocess.run(
        ["ninja", "-C", build, "-t", "deps"], stdout=subprocess.PIPE, text=True
    ).stdout
    headers: dict[str, list[Path]] = {}
    for block in output.split("\n\n"):
        lines = block.splitlines()
        if match := re.match(r"(\S+): #deps", lines[0] if lines else ""):
            paths = [(build / line.strip()).resolve() for line in lines[1:]]
            headers[match[1]] = [path for path in paths if path in ours]
    return headers


def _key(tree: Tree, unit: dict[str, str], headers: dict[str, list[Path]]) -> str:
    digest = hashlib.sha256(unit["command"].encode())
    files = [tree.root / ".clang-tidy", *_sources(Path(unit["file"]))]
    for file in files + sorted(headers.get(unit.get("output", ""), [])):
        digest.update(file.read_bytes())
    return digest.hexdigest()
