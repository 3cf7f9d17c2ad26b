# SPDX-License-Identifier: GPL-2.0
"""A small initramfs: busybox, and the modules without which the guest root cannot be mounted."""

import lzma
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import host
from .kernels import Kernel
from .paths import BUILD, GUEST_ROOT, GUEST_SOURCES, locked

COMMANDS = (
    "dmesg", "grep", "hostname", "insmod", "ip", "mkdir", "mount", "poweroff",
    "switch_root", "uname",
)  # fmt: skip
MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")


def ensure(kernel: Kernel) -> Path:
    image = BUILD / f"initramfs-{kernel.version}"
    sources = [
        GUEST_SOURCES / "init",
        GUEST_ROOT / "bin/busybox",
        kernel.modules / "modules.dep",
        Path(__file__),
    ]
    with locked("initramfs"):
        if not image.exists() or image.stat().st_mtime < max(s.stat().st_mtime for s in sources):
            _make(kernel, image)
    return image


def _make(kernel: Kernel, image: Path) -> None:
    host.require_packages(["cpio", "kmod"])
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        tree = Path(name)
        for directory in ("bin", "dev", "lower", "modules", "proc", "root", "sys", "writable"):
            (tree / directory).mkdir()
        shutil.copy(GUEST_ROOT / "bin/busybox", tree / "bin")
        for command in COMMANDS:
            (tree / "bin" / command).symlink_to("busybox")
        shutil.copy(GUEST_SOURCES / "init", tree / "init")
        (tree / "init").chmod(0o755)
        order = _insertion_order(kernel)
        for module in order:
            (tree / "modules" / _plain_name(module)).write_bytes(_content(module))
        (tree / "modules/order").write_text("".join(f"{_plain_name(m)}\n" for m in order))
        # Not compressed: to copy is quicker than to unpack when the guest is emulated.
        script = f"find . | cpio --quiet -o -H newc -R 0:0 > {image}.new"
        subprocess.run(["sh", "-c", script], cwd=tree, check=True)
    image.with_name(image.name + ".new").replace(image)


def _insertion_order(kernel: Kernel) -> list[Path]:
    command = ["modprobe", "-d", kernel.tree, "-S", kernel.version, "-a", "--show-depends"]
    command += MODULES
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Other lines say "builtin NAME".
    paths = [line.split()[1] for line in output.splitlines() if line.startswith("insmod ")]
    return [Path(path) for path in dict.fromkeys(paths)]


def _plain_name(module: Path) -> str:
    return module.name.removesuffix(".xz")


def _content(module: Path) -> bytes:
    data = module.read_bytes()
    return lzma.decompress(data) if module.suffix == ".xz" else data
