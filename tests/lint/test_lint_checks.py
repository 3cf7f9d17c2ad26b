# SPDX-License-Identifier: GPL-2.0
"""Each check finds the fault that it is there for, and nothing in what is right."""

from collections.abc import Callable

import pytest
from lint import abi, clang, documents, sources, tools
from lint.tree import NotApplicable, Tree
from support import MakeTree

LICENCE = "// SPDX-License-Identifier: GPL-2.0\n"
SYSFS_ENTRY = """\
What:		/sys/kernel/memsluice/scan_interval_ms
Date:		November 2026
KernelVersion:	6.12
Contact:	somebody
Description:	Between two scans.
"""
PROCFS_CODE = 'proc_create_single("scan_interval_ms", 0444, directory, show);\n'
PROCFS_PAGE = "Tables.\n\n" + SYSFS_ENTRY
PROJECT_1 = "project(memsluice VERSION 1.0)\n"
TRACE_CODE = 'TRACE_EVENT(memsluice_a,\n\tTP_printk("node=%d")\n);\n'
SYSFS_CODE = "&scan_interval_ms_attribute.attr,\n"
CASES: list[tuple[Callable[[Tree], list[str]], dict[str, str], dict[str, str]]] = [
    (sources.licence_lines, {"a.cc": LICENCE}, {"a.cc": "int a;\n"}),
    (sources.private_paths, {"a.txt": "in /home of it"}, {"a.txt": "x = /home/" + "me/a"}),
    (sources.generated_files, {"a.c": ""}, {"a.ko": ""}),
    (tools.shell, {"a.sh": '#!/bin/sh\necho "$1"\n'}, {"a.sh": "#!/bin/sh\necho $1\n"}),
    (tools.python, {"a.py": "def f(a: int) -> int: ...\n"}, {"a.py": "def f(a): ...\n"}),
    (tools.python, {"a.py": "a = 1\n"}, {"a.py": "a = (\n"}),
    (documents.links, {"a.md": "[b](#c-d)\n# C, d\n"}, {"a.md": "[b](#c)\n# D\n"}),
    (documents.links, {"a.md": "[b](b.md)\n", "b.md": ""}, {"a.md": "[b](c.md)\n"}),
    (
        documents.man_pages,
        {"a.scd": "a(1)\n\n# NAME\n\na - is *bold*\n"},
        {"a.scd": "a\n\n# NAME\n"},
    ),
    (
        abi.sysfs,
        {abi.SYSFS_CODE: SYSFS_CODE, abi.SYSFS_PAGE: SYSFS_ENTRY},
        {abi.SYSFS_CODE: "&other_attribute.attr,\n", abi.SYSFS_PAGE: SYSFS_ENTRY},
    ),
    (
        abi.sysfs,
        {abi.SYSFS_CODE: SYSFS_CODE, abi.SYSFS_PAGE: SYSFS_ENTRY},
        {
            abi.SYSFS_CODE: SYSFS_CODE,
            abi.SYSFS_PAGE: SYSFS_ENTRY.replace("Contact:", "C:"),
        },
    ),
    (
        abi.dsa_knobs,
        {
            abi.DSA_CODE: "module_param_named(scan_interval_ms, a, bool, 0644);\n",
            abi.DSA_PAGE: SYSFS_ENTRY,
        },
        {abi.DSA_CODE: "MEMSLUICE_DSA_KNOB(other, a, 1, 2);\n", abi.DSA_PAGE: SYSFS_ENTRY},
    ),
    (
        abi.procfs,
        {abi.PROCFS_CODE: PROCFS_CODE, abi.PROCFS_PAGE: PROCFS_PAGE},
        {abi.PROCFS_CODE: "", abi.PROCFS_PAGE: PROCFS_PAGE},
    ),
    (
        abi.ioctl,
        {abi.IOCTL_CODE: "#define MEMSLUICE_IOC_A _IO(1, 2)\n", abi.IOCTL_PAGE: "MEMSLUICE_IOC_A"},
        {abi.IOCTL_CODE: "#define MEMSLUICE_IOC_A _IO(1, 2)\n", abi.IOCTL_PAGE: "MEMSLUICE_IOC_B"},
    ),
    (
        abi.tracepoints,
        {
            abi.TRACE_CODE: TRACE_CODE,
            abi.DSA_TRACE_CODE: "",
            abi.TRACE_PAGE: "memsluice_a\tof what\n\t\tnode\n",
        },
        {
            abi.TRACE_CODE: TRACE_CODE,
            abi.DSA_TRACE_CODE: "",
            abi.TRACE_PAGE: "memsluice_a\tof what\n",
        },
    ),
    (
        abi.release,
        {"CMakeLists.txt": PROJECT_1, abi.RELEASE_CODE: '#define MEMSLUICE_RELEASE "1.0"\n'},
        {"CMakeLists.txt": PROJECT_1, abi.RELEASE_CODE: '#define MEMSLUICE_RELEASE "1.1"\n'},
    ),
    (
        clang.format_,
        {".clang-format": "BasedOnStyle: Google\n", "a.cc": "int a;\n"},
        {".clang-format": "BasedOnStyle: Google\n", "a.cc": "int  a;\n"},
    ),
]
NAMES = [case[0].__name__ for case in CASES]


@pytest.mark.parametrize("check, good, bad", CASES, ids=NAMES)
def test_finds_the_fault(
    make_tree: MakeTree,
    check: Callable[[Tree], list[str]],
    good: dict[str, str],
    bad: dict[str, str],
) -> None:
    assert check(Tree(make_tree(good))) == []
    assert check(Tree(make_tree(bad))) != []


def test_says_when_there_is_nothing_to_check(make_tree: MakeTree) -> None:
    with pytest.raises(NotApplicable, match="there is no kernel/abi/sysfs.c"):
        abi.sysfs(Tree(make_tree({})))
