# SPDX-License-Identifier: GPL-2.0
"""Builds kernel modules inside the private root, from a copy of their sources."""

import shutil
import subprocess
from pathlib import Path

from . import host, root
from .errors import TestbedError
from .kernels import DEBUG_SOURCE_INSIDE, Kernel
from .paths import MODULES, PROJECT, locked

SOURCES = ("Kbuild", "kernel", "include", "tests/vm/engine", "tests/vm/dsa")
BUILT = (
    *("*.o", "*.ko", "*.mod", "*.mod.c", ".*.cmd", "Module.symvers", "modules.order", ".tmp_*"),
    "idxd_layout.h",
)
TESTBED_INSIDE = "/usr/share/testbed"  # where the private root sees this folder


def build(kernel: Kernel, directory: Path = PROJECT, arguments: tuple[str, ...] = ()) -> list[Path]:
    """Builds the modules of DIRECTORY; their files come to build/testbed/modules/VERSION."""
    directory = directory.resolve()
    if not (directory / "Kbuild").exists() and not (directory / "Makefile").exists():
        raise TestbedError(f"{directory}: neither a Kbuild nor a Makefile is there")
    root.ensure()
    host.require_packages(["rsync"])
    output = MODULES / kernel.version
    copy = output / ".build" / (directory.name if directory != PROJECT else "memsluice")
    with locked("modules"):
        copy.mkdir(parents=True, exist_ok=True)
        _copy_sources(directory, copy)
        _make(kernel, directory, copy, arguments)
        # make's own list: a module that is gone from the sources may still lie in the copy.
        order = copy / "modules.order"
        names = order.read_text().split() if order.exists() else []
        # Absolute or relative, by the kernel's version.
        modules = [copy / (directory / name).relative_to(directory) for name in names]
        return [_put(path.with_suffix(".ko"), output) for path in modules]


def _put(module: Path, directory: Path) -> Path:
    """At once: a machine that runs may be loading the one that is there."""
    target = directory / module.name
    return Path(shutil.copy2(module, directory / f".{module.name}")).replace(target)


def _copy_sources(directory: Path, copy: Path) -> None:
    names = SOURCES if directory == PROJECT else (".",)
    # What make left in the copy is protected, so that an unchanged file is not built again.
    excludes = [f"--exclude={pattern}" for pattern in BUILT]
    present = [f"{directory}/./{name}" for name in names if (directory / name).exists()]
    subprocess.run(["rsync", "-aR", "--delete", *excludes, *present, f"{copy}/"], check=True)


def _make(kernel: Kernel, directory: Path, copy: Path, arguments: tuple[str, ...]) -> None:
    # Mounted where the sources lie, so that the compiler's messages name the real files.
    mounts = {copy: str(directory), Path(__file__).parent: TESTBED_INSIDE}
    if kernel.source:
        mounts[kernel.source] = build_tree = DEBUG_SOURCE_INSIDE
    else:
        build_tree = f"/lib/modules/{kernel.version}/build"
    command = ["make", "-j2", "-C", build_tree, f"M={directory}"]
    # The headers' vmlinux is only a BTF section, and the tool that adds a module's crashes on it.
    command += ["CONFIG_DEBUG_INFO_BTF_MODULES=", "MEMSLUICE_TEST_MODULES=1"]
    command += [f"CF=-include {TESTBED_INSIDE}/sparse.h", *arguments]
    if root.run(command, mounts).returncode:
        raise TestbedError(f"{directory}: the modules do not build for kernel {kernel.version}")
