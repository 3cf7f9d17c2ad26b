# SPDX-License-Identifier: GPL-2.0
"""scripts/testbed, as a person uses it."""

import os
import pty
import subprocess
from pathlib import Path

import pytest
from testbed.paths import PROJECT
from testbed.vm import Vm

pytestmark = pytest.mark.machine("two-tier")
TESTBED = PROJECT / "scripts/testbed"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TESTBED, *arguments], capture_output=True, text=True, timeout=300)


def test_help_names_every_command() -> None:
    text = run("--help").stdout
    for name in ("root", "build-module", "machines", "shell", "run", "boot", "attach", "clean"):
        assert f"\n    {name}" in text
        assert run(name, "--help").returncode == 0


def test_machines_are_listed_with_their_nodes() -> None:
    assert "two-tier: node 1: 1536 MiB, 250 ns" in run("machines").stdout


@pytest.mark.parametrize(
    "arguments", [["run", "none", "--kernel", "6.12", "--", "ls", "--help"], ["attach", "none"]]
)
def test_what_is_not_there_is_named(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.returncode == 1
    assert result.stderr.startswith("testbed: no machine n")
    assert "Traceback" not in result.stderr


def test_a_command_in_a_running_machine(vm: Vm) -> None:
    result = run("attach", vm.directory.name, "--", "echo out; echo error >&2; exit 6")
    assert (result.returncode, result.stdout, result.stderr) == (6, "out\n", "error\n")


def test_a_shell_in_a_running_machine(vm: Vm) -> None:
    terminal, theirs = pty.openpty()
    command = [TESTBED, "attach", vm.directory.name]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as shell:
        os.close(theirs)
        os.write(terminal, b"echo $((6 * 7)); tty; exit 3\r")
        output = b""
        while b"/dev/pts/" not in output:
            output += os.read(terminal, 4096)
        assert shell.wait(60) == 3
    os.close(terminal)
    assert b"42\r\n/dev/pts/" in output


def test_a_module_is_built_outside_its_sources(tmp_path: Path) -> None:
    (tmp_path / "Kbuild").write_text("obj-m := small.o\n")
    source = tmp_path / "small.c"
    source.write_text('#include <linux/module.h>\nMODULE_LICENSE("GPL");\n')
    built = run("build-module", tmp_path, "W=1")
    assert built.returncode == 0, built.stderr
    assert built.stdout.splitlines()[-1].endswith("/small.ko")
    assert "missing MODULE_DESCRIPTION" in built.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Kbuild", "small.c"]
    source.write_text("syntax error\n")
    failed = run("build-module", tmp_path)
    assert failed.returncode == 1
    assert f"{source}:1:" in failed.stderr
