# SPDX-License-Identifier: GPL-2.0
"""The private Debian 13 root: QEMU, the kernels, and what builds modules for them.

Unpacked, never installed: a Debian 12 host is too old for this QEMU and for these kernels'
build tools, and a host should not have to change for a test.
"""

import re
import subprocess
from pathlib import Path

from . import host
from .apt import Apt, Package, make_tree
from .errors import TestbedError
from .kernels import DEBIAN_KERNELS, Kernel
from .paths import ROOT

RELEASE = "trixie"
BACKPORTS = f"{RELEASE}-backports"
# By suite: closures are resolved one suite at a time.
TOOLS = {
    RELEASE: [
        "base-files", "bash", "bc", "binutils", "bison", "bpftool", "bsdextrautils", "coreutils",
        "cpio", "dash", "diffutils", "dwarves", "findutils", "flex", "gcc", "gcc-14", "grep",
        "gzip", "kmod", "libc6-dev", "libelf-dev", "libssl-dev", "make", "mawk", "perl",
        "python3-minimal", "rsync", "sed", "sparse", "tar", "xz-utils", "zstd",
    ],
    BACKPORTS: ["qemu-system-x86"],
}  # fmt: skip


def ensure(update: bool = False) -> Path:
    releases: dict[str, str] = {}  # by the kernel's name, as uname -r prints them

    def plan() -> tuple[Apt, list[Package]]:
        host.require_packages(["xz-utils", "zstd", "kmod"])
        print("reading Debian's package lists", flush=True)
        apt = Apt(RELEASE, (BACKPORTS,))
        apt.update()
        packages = [package for suite, names in TOOLS.items() for package in apt.plan(names, suite)]
        for kernel in DEBIAN_KERNELS.values():
            parts = _parts(kernel, apt)
            releases[kernel.name] = _release(kernel, parts)
            packages += parts
        return apt, list(dict.fromkeys(packages))

    def finish(root: Path, _packages: list[Package]) -> None:
        for name, release in releases.items():
            (root / f"kernel-{name}").write_text(release + "\n")
            subprocess.run(["depmod", "-b", root, release], check=True)
            _let_sparse_run(root / "usr/lib/modules" / release / "build/scripts")

    return make_tree(ROOT, (TOOLS, DEBIAN_KERNELS), plan, finish, update)


def _parts(kernel: Kernel, apt: Apt) -> list[Package]:
    """What is named after its release: the boot machinery of a real host is not needed, and those
    without a version are in one another's way when several kernels lie in one root."""
    closure = apt.plan(list(kernel.packages), kernel.suite)
    return [package for package in closure if re.match(r"linux-[a-z]+-\d", package.name)]


def _release(kernel: Kernel, parts: list[Package]) -> str:
    """Of the kernel on which linux-image-amd64 depends in the kernel's suite."""
    images = [part.name for part in parts if re.match(r"linux-image-\d", part.name)]
    if len(images) != 1:
        raise TestbedError(
            f"kernel {kernel.name}: expected one linux-image package, found {images}"
        )
    return images[0].removeprefix("linux-image-")


def _let_sparse_run(scripts: Path) -> None:
    """Debian leaves out the script that newer kernels ask whether sparse works."""
    script = scripts / "checker-valid.sh"
    if not script.exists():
        script.write_text("#!/bin/sh\necho 1\n")
        script.chmod(0o755)


# Mounts are the child's own, so they end with it. $1 is the root, then pairs, then "--".
_ENTER = """
root=$1 && shift && mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" || exit
while [ "$1" != -- ]; do
  mkdir -p "$root$2" && mount --bind "$1" "$root$2" && shift 2 || exit
done
shift
exec env -i PATH=/usr/bin:/usr/sbin LC_ALL=C chroot "$root" "$@"
"""


def run(command: list[str], mounts: dict[Path, str]) -> subprocess.CompletedProcess[bytes]:
    """Runs a command inside the root, where each path of MOUNTS appears at its value."""
    pairs = [str(side) for mount in mounts.items() for side in mount]
    enter = ["unshare", "-m", "sh", "-c", _ENTER, "enter", str(ROOT), *pairs, "--"]
    return subprocess.run([*enter, *command], stdin=subprocess.DEVNULL)
