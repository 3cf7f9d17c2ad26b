# SPDX-License-Identifier: GPL-2.0
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

from .tree import NotApplicable, Tree

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def links(tree: Tree) -> list[str]:
    """Links of Markdown files to files and headings of the project."""
    findings = []
    for path in tree.with_suffix(".md"):
        for target in LINK.findall(CODE.sub("", path.read_text())):
            if ELSEWHERE.match(target):
                continue
            name, _, anchor = unquote(target).partition("#")
            file = path.parent / name if name else path
            if not file.exists():
                findings.append(f"{tree.name(path)}: {target}: no such file")
            elif anchor and file.suffix == ".md" and anchor not in _anchors(file):
                findings.append(f"{tree.name(path)}: {target}: no such heading")
    return findings


def _anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.*?) *$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def man_pages(tree: Tree) -> list[str]:
    pages = tree.with_suffix(".scd")
    if not pages:
        raise NotApplicable("there are no man pages")
    output = tree.build / "lint/man"
    output.mkdir(parents=True, exist_ok=True)
    return [finding for page in pages for finding in _man_page(tree, page, output / page.stem)]


def _man_page(tree: Tree, page: Path, roff: Path) -> list[str]:
    with open(page) as source, open(roff, "w") as target:
        made = subprocess.run("scdoc", stdin=source, stdout=target, stderr=subprocess.PIPE)
    if made.returncode:
        return [f"{tree.name(page)}: {made.stderr.decode().strip()}"]
    command = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(roff)]
    shown = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return [f"{tree.name(page)}: {line}" for line in shown.stderr.splitlines()]
