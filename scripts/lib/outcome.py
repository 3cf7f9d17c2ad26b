# SPDX-License-Identifier: GPL-2.0
"""What became of one test, and JUnit files as the common form of all test runners."""

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Outcome:
    name: str
    status: str
    detail: str = ""


def read_junit(path: Path, prefix: str) -> list[Outcome]:
    return [_outcome(case, prefix) for case in ElementTree.parse(path).iter("testcase")]


def _outcome(case: ElementTree.Element, prefix: str) -> Outcome:
    group, name = case.get("classname") or "", case.get("name") or ""
    if group not in ("", name):  # ctest repeats the name
        name = f"{group}.{name}"
    name = f"{prefix}: {name}"
    for failure in (case.find("failure"), case.find("error")):
        if failure is not None:
            output = [failure.get("message"), failure.text, case.findtext("system-out")]
            return Outcome(name, FAILED, "\n".join(text.strip() for text in output if text))
    skip = case.find("skipped")
    if skip is not None:
        return Outcome(name, SKIPPED, skip.get("message") or skip.text or "no reason given")
    return Outcome(name, PASSED)


def write_junit(path: Path, outcomes: list[Outcome]) -> None:
    suite = ElementTree.Element("testsuite")
    for outcome in outcomes:
        case = ElementTree.SubElement(suite, "testcase", name=outcome.name)
        if outcome.status == FAILED:
            ElementTree.SubElement(case, "failure").text = outcome.detail
        elif outcome.status == SKIPPED:
            ElementTree.SubElement(case, "skipped", message=outcome.detail)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path)
