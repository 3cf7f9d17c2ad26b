# SPDX-License-Identifier: GPL-2.0
"""A kernel that checks itself, built from Debian's source of the default kernel."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from . import root
from .apt import Apt, unpack
from .errors import TestbedError
from .kernels import DEBUG, DEBUG_SOURCE_INSIDE, DEFAULT
from .paths import DEBUG_KERNEL, locked

CONFIG = Path(__file__).with_name("debug.config")
SOURCE_PACKAGE = f"linux-source-{DEFAULT}"
NICENESS = "15"  # who else works on this machine should not have to wait for it
SYMBOL = re.compile(r"(?:# )?(CONFIG_\w+)[= ].*")


def ensure(update: bool = False) -> Path:
    """Builds the kernel, unless it is there for this configuration (and, with UPDATE, source)."""
    root.ensure()
    with locked("debug-kernel"):
        config_digest = hashlib.sha256(CONFIG.read_bytes()).hexdigest()
        stamp = DEBUG_KERNEL / "stamp"
        built = stamp.read_text().split() if stamp.exists() else ["", ""]
        if built[0] == config_digest and not update:
            return DEBUG.image()
        apt = Apt(root.RELEASE, (root.BACKPORTS,))
        apt.update()
        (source,) = (p for p in apt.plan([SOURCE_PACKAGE]) if p.name == SOURCE_PACKAGE)
        if built != [config_digest, source.version]:
            stamp.unlink(missing_ok=True)
            _unpack_source(apt.download([source]), source.version)
            _configure()
            _build()
            stamp.write_text(f"{config_digest} {source.version}\n")
    return DEBUG.image()


def _unpack_source(archives: list[Path], version: str) -> None:
    unpacked = DEBUG_KERNEL / "unpacked"
    if unpacked.exists() and unpacked.read_text() == version:
        return
    print("unpacking the kernel's source", flush=True)
    shutil.rmtree(DEBUG_KERNEL, ignore_errors=True)
    package = DEBUG_KERNEL / "package"
    package.mkdir(parents=True)
    unpack(archives, package)
    DEBUG.source.mkdir()
    tarball = package / "usr/src" / f"{SOURCE_PACKAGE}.tar.xz"
    command = ["tar", "-x", "--strip-components=1", "-f", tarball, "-C", DEBUG.source]
    if subprocess.run(command).returncode:
        raise TestbedError(f"{tarball}: cannot be unpacked; is the disk full?")
    shutil.rmtree(package)
    unpacked.write_text(version)


def _make(*arguments: str) -> None:
    command = ["nice", "-n", NICENESS, "make", "-j2", "-C", DEBUG_SOURCE_INSIDE]
    command += ["KBUILD_BUILD_USER=testbed", "KBUILD_BUILD_HOST=testbed", *arguments]
    mounts = {DEBUG.source: DEBUG_SOURCE_INSIDE, DEBUG.tree: "/mnt"}
    if root.run(command, mounts).returncode:
        raise TestbedError(f"debug kernel: make {' '.join(arguments)} failed")


def _configure() -> None:
    # What an interrupted build has installed is of no use; what it has compiled is.
    shutil.rmtree(DEBUG.tree, ignore_errors=True)
    DEBUG.tree.mkdir()
    _make("-s", "x86_64_defconfig")
    config = DEBUG.source / ".config"
    ours = _settings(CONFIG)
    config.write_text("\n".join((_settings(config) | ours).values()) + "\n")
    _make("-s", "olddefconfig")
    # A dependency that is not met turns an option off without a word.
    result = _settings(config)
    missing = [line for name, line in ours.items() if "=" in line and result.get(name) != line]
    if missing:
        raise TestbedError(f"debug kernel: these options did not take: {', '.join(missing)}")


def _settings(config: Path) -> dict[str, str]:
    """The lines that set an option or say that it is not set, by the option's name."""
    matches = map(SYMBOL.fullmatch, config.read_text().splitlines())
    return {match[1]: match[0] for match in matches if match}


def _build() -> None:
    print("building the debug kernel: twenty minutes on two idle CPUs", flush=True)
    _make("-s", "bzImage", "modules")
    _make("-s", "modules_install", "INSTALL_MOD_PATH=/mnt/usr", "INSTALL_MOD_STRIP=1")
    version = (DEBUG.source / "include/config/kernel.release").read_text().strip()
    (DEBUG.tree / f"kernel-{DEBUG.name}").write_text(version + "\n")
    boot = DEBUG.tree / "boot"
    boot.mkdir(exist_ok=True)
    shutil.copy(DEBUG.source / "arch/x86/boot/bzImage", boot / f"vmlinuz-{version}")
    # initramfs and guest look below usr, as in the private root.
    (DEBUG.tree / "lib").symlink_to("usr/lib")
    subprocess.run(["depmod", "-b", DEBUG.tree, version], check=True)
