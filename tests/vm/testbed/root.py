# SPDX-License-Identifier: GPL-2.0
"""The private Debian 13 root: QEMU, the kernels, and what builds modules for them.

Unpacked, never installed: a Debian 12 host is too old for this QEMU and for these kernels'
build tools, and a host should not have to change for a test.
"""

import hashlib
import shutil
from pathlib import Path

from . import apt, host
from .errors import TestbedError
from .kernels import KERNELS, Kernel
from .paths import ROOT, locked

# (suite, packages): closures are resolved one suite at a time.
TOOLS = [
    (
        apt.RELEASE,
        [
            "base-files", "bash", "bc", "binutils", "bison", "bpftool", "bsdextrautils", "coreutils",
            "cpio", "dash", "diffutils", "dwarves", "findutils", "flex", "gawk", "gcc", "gcc-14",
            "grep", "gzip", "kmod", "libc6-dev", "libelf-dev", "libssl-dev", "make", "mawk", "perl",
            "python3-minimal", "rsync", "sed", "sparse", "tar", "xz-utils", "zstd",
        ],
    ),
    (f"{apt.RELEASE}-backports", ["qemu-system-x86"]),
]  # fmt: skip
MERGED_USR = ("bin", "sbin", "lib", "lib64")


def _wanted() -> str:
    """What the root is made from, without asking the network."""
    return repr((TOOLS, [(k.name, k.suite, k.packages) for k in KERNELS.values()]))


def ready() -> bool:
    stamp = ROOT / "stamp"
    return stamp.exists() and stamp.read_text().splitlines()[0] == _digest(_wanted())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def ensure(update: bool = False) -> Path:
    """Makes the root if there is none for this list; with UPDATE, if Debian has newer packages."""
    if ready() and not update:
        return ROOT
    with locked("root"):
        if not ready() or update:
            _make()
    return ROOT


def _make() -> None:
    host.require_packages(["xz-utils", "zstd"])
    print("reading Debian's package lists", flush=True)
    apt.update()
    tools = [package for suite, names in TOOLS for package in apt.plan(names, suite)]
    kernels = {kernel.name: _kernel_packages(kernel) for kernel in KERNELS.values()}
    packages = list(dict.fromkeys(tools + [p for plan in kernels.values() for p in plan]))
    versions = "".join(f"{p.name} {p.version}\n" for p in packages)
    if ready() and (ROOT / "stamp").read_text().split("\n", 1)[1] == versions:
        return
    archives = apt.download(packages)
    print(f"unpacking {len(archives)} packages", flush=True)
    fresh = ROOT.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    _unpack(archives, fresh)
    for name, plan in kernels.items():
        (fresh / f"kernel-{name}").write_text(_release(name, plan) + "\n")
    (fresh / "stamp").write_text(f"{_digest(_wanted())}\n{versions}")
    shutil.rmtree(ROOT, ignore_errors=True)
    fresh.rename(ROOT)


def _kernel_packages(kernel: Kernel) -> list[apt.Package]:
    # Of the closure only the kernel's own parts: the boot machinery of a real host is not needed.
    plan = apt.plan(list(kernel.packages), kernel.suite)
    return [package for package in plan if package.name.startswith("linux-")]


def _release(name: str, plan: list[apt.Package]) -> str:
    images = [
        package.name.removeprefix("linux-image-")
        for package in plan
        if package.name.startswith("linux-image-") and package.name not in KERNELS[name].packages
    ]
    if len(images) != 1:
        raise TestbedError(f"kernel {name}: expected one linux-image package, found {images}")
    return images[0]


def _unpack(archives: list[Path], target: Path) -> None:
    for directory in MERGED_USR:
        (target / "usr" / directory).mkdir(parents=True)
        (target / directory).symlink_to(f"usr/{directory}")
    for directory in ("dev", "proc", "sys", "tmp"):
        (target / directory).mkdir()
    apt.unpack(archives, target)
    # Packages leave these to their maintainer scripts, which do not run here.
    awk = target / "usr/bin/awk"
    if not awk.exists():
        awk.symlink_to("gawk")
