# SPDX-License-Identifier: GPL-2.0
"""The guest's file system: Debian packages of the host's release; our programs run in it."""

import filecmp
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import host
from .apt import Apt, Package, host_release, make_tree
from .errors import TestbedError
from .paths import GUEST_ROOT, GUEST_SOURCES, RELEASE, locked

AGENT_FLAGS = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-static"]


def entries(file: Path) -> list[str]:
    """The lines of a list, comments aside."""
    lines = (line.split("#", 1)[0].strip() for line in file.read_text().splitlines())
    return [line for line in lines if line]


def ensure(update: bool = False) -> Path:
    packages = entries(GUEST_SOURCES / "packages")
    release = host_release()

    def plan() -> tuple[Apt, list[Package]]:
        apt = Apt(release)
        apt.update()
        return apt, apt.plan(packages)

    make_tree(GUEST_ROOT, (release, packages), plan, _finish, update)
    with locked("guest-files"):
        _install_agent()
        _install_binaries()
    return GUEST_ROOT


def make_accounts(root: Path) -> None:
    masters = root / "usr/share/base-passwd"
    shutil.copy(masters / "passwd.master", root / "etc/passwd")
    shutil.copy(masters / "group.master", root / "etc/group")


def _finish(root: Path, _packages: list[Package]) -> None:
    make_accounts(root)
    (root / "etc/hosts").write_text("127.0.0.1 localhost memsluice\n")
    for directory in ("release", "modules"):
        (root / "opt/memsluice" / directory).mkdir(parents=True)
    for link in ("sbin/init", "sbin/poweroff"):
        (root / link).unlink(missing_ok=True)
        (root / link).symlink_to("/bin/busybox")
    (root / "usr/lib/modules").mkdir(exist_ok=True)
    (root / "root").chmod(0o700)


def _install(source: Path, target: Path) -> None:
    """Replaces TARGET in one step when it differs: a running machine may be using it."""
    if target.exists() and filecmp.cmp(source, target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(target.name + ".new")
    shutil.copy2(source, fresh)
    fresh.replace(target)


def _install_agent() -> None:
    host.require_packages(["g++"])
    source = GUEST_SOURCES / "agent.cc"
    directory = GUEST_ROOT / "usr/local/lib/testbed"
    agent = directory / "agent"
    directory.mkdir(parents=True, exist_ok=True)
    _install(GUEST_SOURCES / "inittab", GUEST_ROOT / "etc/inittab")
    if agent.exists() and agent.stat().st_mtime >= source.stat().st_mtime:
        return
    fresh = agent.with_name("agent.new")
    if subprocess.run(["g++", *AGENT_FLAGS, source, "-o", fresh]).returncode:
        raise TestbedError(f"{source} does not compile")
    fresh.replace(agent)


def _install_binaries() -> None:
    """Links our programs into the guest's path, and brings the libraries they need."""
    for name in entries(GUEST_SOURCES / "binaries"):
        link = GUEST_ROOT / "usr/local/bin" / Path(name).name
        link.unlink(missing_ok=True)
        if (RELEASE / name).exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"/opt/memsluice/release/{name}")
            for library in _libraries(RELEASE / name):
                _install(library, GUEST_ROOT / str(library).lstrip("/"))


def _libraries(binary: Path) -> list[Path]:
    output = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    paths = re.findall(r"=> (/\S+)", output)
    # Where the guest has its own, that one fits: it is of the same release.
    return [Path(path) for path in paths if not os.path.lexists(GUEST_ROOT / path.lstrip("/"))]
