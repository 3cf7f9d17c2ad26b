# SPDX-License-Identifier: GPL-2.0
import subprocess
from pathlib import Path

import pytest
from support import PROJECT, MakeTree

GOOD = {
    "include/uapi/memsluice.h": "",
    "kernel/module.c": '#include "kernel/abi/chardev.h"\n',
    "kernel/abi/chardev.h": "#include <uapi/memsluice.h>\n#include <linux/fs.h>\n",
    "kernel/abi/chardev.c": '#include "chardev.h"\n#include "kernel/tier/threads.h"\n',
    "kernel/tier/threads.h": "",
    "kernel/tier/threads.c": '#include "kernel/hotness/scan.h"\n',
    "kernel/hotness/scan.h": '#include "kernel/tenant/tenant.h"\n',
    "kernel/hotness/histogram.h": "",
    "kernel/tenant/tenant.h": '#include "kernel/hotness/histogram.h"\n',
    "daemon/main.cc": '#include "daemon/api/server.h"\n',
    "daemon/api/server.h": '#include "daemon/base/result.h"\n',
    "daemon/base/result.h": "#include <string>\n",
    "tools/memsluice/main.cc": '#include "daemon/base/result.h"\n#include "top.h"\n',
    "tools/memsluice/top.h": "",
    "tests/unit/all_test.cc": '#include "daemon/api/server.h"\n#include "kernel/hotness/scan.h"\n',
}


def check(root: Path) -> tuple[int, list[str]]:
    command = [PROJECT / "scripts/check-includes", root]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return result.returncode, result.stdout.splitlines()


def test_a_tree_that_keeps_the_directions(make_tree: MakeTree) -> None:
    assert check(make_tree(GOOD)) == (0, [])


@pytest.mark.parametrize(
    "name, include, finding",
    [
        ("kernel/tier/threads.h", "kernel/abi/chardev.h", "is in a higher layer"),
        ("kernel/compat/symbols.h", "kernel/hotness/scan.h", "is in a higher layer"),
        ("kernel/hotness/histogram.h", "kernel/tenant/tenant.h", "is in a higher layer"),
        ("kernel/tier/threads.h", "daemon/base/result.h", "is not for kernel/"),
        ("daemon/base/log.h", "daemon/api/server.h", "is in a higher layer"),
        ("daemon/base/log.h", "kernel/hotness/scan.h", "is not for daemon/"),
        ("daemon/base/log.h", "tests/unit/fake.h", "is not for daemon/"),
        ("tools/memsluice/top.h", "daemon/api/server.h", "is not for tools/"),
        ("daemon/newcomer/a.h", "daemon/base/result.h", "its folder is in no layer"),
    ],
)
def test_one_wrong_include(make_tree: MakeTree, name: str, include: str, finding: str) -> None:
    root = make_tree({"tests/unit/fake.h": "", **GOOD, name: f'\n#include "{include}"\n'})
    status, findings = check(root)
    assert status == 1
    assert any(line.startswith(f"{name}:2: ") and finding in line for line in findings), findings


def test_neighbours_that_include_each_other(make_tree: MakeTree) -> None:
    back = {"kernel/hotness/scan.h": '#include "../tier/threads.h"\n'}
    assert check(make_tree(GOOD | back)) == (1, ["cycle of parts: kernel/hotness, kernel/tier"])
