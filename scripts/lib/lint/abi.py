# SPDX-License-Identifier: GPL-2.0
"""What the module shows to the outside is documented in docs/abi, and the other way round."""

import re

from .tree import NotApplicable, Tree

SYSFS_CODE = "kernel/abi/sysfs.c"
SYSFS_PAGE = "docs/abi/sysfs-kernel-memsluice"
PROCFS_CODE = "kernel/abi/procfs.c"
PROCFS_PAGE = "docs/abi/procfs-memsluice"
DSA_CODE = "kernel/dsa/driver.c"
DSA_PAGE = "docs/abi/sysfs-module-memsluice_dsa"
FIELDS = ("What", "Date", "KernelVersion", "Contact", "Description")
PROJECT_FILE = "CMakeLists.txt"
RELEASE_CODE = "kernel/abi/abi.h"
IOCTL_CODE = "include/uapi/memsluice.h"
IOCTL_PAGE = "docs/abi/ioctl-memsluice"
TRACE_CODE = "kernel/abi/trace.h"
DSA_TRACE_CODE = "kernel/dsa/trace.h"
TRACE_CODES = "kernel/*/trace.h"
TRACE_PAGE = "docs/abi/tracepoints-memsluice"


def _read(tree: Tree, name: str) -> str:
    path = tree.root / name
    if not path.exists():
        raise NotApplicable(f"there is no {name}")
    return path.read_text()


def _differences(code: set[str], page: set[str], code_name: str, page_name: str) -> list[str]:
    missing = [f"{page_name}: {name} is not documented" for name in sorted(code - page)]
    stale = [f"{code_name}: has no {name}, which is documented" for name in sorted(page - code)]
    return missing + stale


def _files(tree: Tree, code_name: str, declaration: str, page_name: str) -> list[str]:
    """Compares DECLARATION's matches in the code with the entries of a page in the ABI format."""
    code = set(re.findall(declaration, _read(tree, code_name), re.M))
    page = _read(tree, page_name)
    entries = [entry for entry in re.split(r"^(?=What:)", page, flags=re.M) if entry[:5] == "What:"]
    incomplete = [
        f"{page_name}: {entry.splitlines()[0]}: no line {field}:"
        for entry in entries
        for field in FIELDS
        if not re.search(rf"^{field}:\s*\S", entry, re.M)
    ]
    documented = {entry.splitlines()[0].rsplit("/", 1)[-1] for entry in entries}
    return incomplete + _differences(code, documented, code_name, page_name)


def sysfs(tree: Tree) -> list[str]:
    return _files(tree, SYSFS_CODE, r"&(\w+)_attribute\.attr,", SYSFS_PAGE)


def dsa_knobs(tree: Tree) -> list[str]:
    return _files(tree, DSA_CODE, r"^(?:MEMSLUICE_DSA_KNOB|module_param\w*)\((\w+),", DSA_PAGE)


def procfs(tree: Tree) -> list[str]:
    return _files(tree, PROCFS_CODE, r'proc_create\w*\("(\w+)"', PROCFS_PAGE)


def ioctl(tree: Tree) -> list[str]:
    code = set(re.findall(r"^#define (MEMSLUICE_IOC_\w+) _IO", _read(tree, IOCTL_CODE), re.M))
    page = set(re.findall(r"MEMSLUICE_IOC_\w+", _read(tree, IOCTL_PAGE)))
    return _differences(code, page, IOCTL_CODE, IOCTL_PAGE)


def tracepoints(tree: Tree) -> list[str]:
    """Each event with each of its fields, as its format prints them."""
    code = _read(tree, TRACE_CODE) + _read(tree, DSA_TRACE_CODE)
    page = _read(tree, TRACE_PAGE)
    events = re.findall(r"TRACE_EVENT\((\w+),(.*?)^\);", code, re.M | re.S)
    entries = dict(re.findall(r"^(memsluice_\w+)\t(.*(?:\n\t.*)*)", page, re.M))
    problems = _differences({name for name, _ in events}, set(entries), TRACE_CODES, TRACE_PAGE)
    for name, body in events:
        for field in re.findall(r"(\w+)=%", body):
            if name in entries and not re.search(rf"\b{field}\b", entries[name]):
                problems.append(f"{TRACE_PAGE}: {name}: {field} is not documented")
    return problems


def release(tree: Tree) -> list[str]:
    """The module says the version that CMakeLists.txt says."""
    project = re.search(r"^project\(memsluice VERSION ([\d.]+)", _read(tree, PROJECT_FILE), re.M)
    module = re.search(r'#define MEMSLUICE_RELEASE "(.*)"', _read(tree, RELEASE_CODE))
    if project and module and project[1] == module[1]:
        return []
    return [f"{RELEASE_CODE}: MEMSLUICE_RELEASE is not the version in CMakeLists.txt"]
