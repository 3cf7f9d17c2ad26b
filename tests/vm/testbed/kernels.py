# SPDX-License-Identifier: GPL-2.0
"""The kernels that modules are built for and machines boot."""

import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .errors import TestbedError
from .paths import BUILD, DEBUG_KERNEL, ROOT, locked

# Of the boot protocol's header (Documentation/arch/x86/boot.rst).
SETUP_SECTORS_OFFSET = 0x1F1
PAYLOAD_OFFSET = 0x248
SECTOR_BYTES = 512
SIZE_BYTES = 4  # after the compressed kernel stands its size when uncompressed
DECOMPRESSORS = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz"}


@dataclass(frozen=True)
class Kernel:
    name: str
    suite: str
    packages: tuple[str, ...]
    tree: Path = field(default=ROOT, repr=False)  # where its packages are unpacked
    source: Path | None = field(default=None, repr=False)  # of a kernel that is built here
    cpu_options: str = field(default="", repr=False)
    own_mib: int = 0  # what the first node gets beside its size, for the kernel's own use

    @property
    def version(self) -> str:
        """The release string, as uname -r prints it."""
        file = self.tree / f"kernel-{self.name}"
        if self.source and not file.exists():
            raise TestbedError(f"kernel {self.name} is not built; do: scripts/testbed debug-kernel")
        return file.read_text().strip()

    @property
    def modules(self) -> Path:
        return self.tree / "usr/lib/modules" / self.version

    def image(self) -> Path:
        """An ELF file, which QEMU starts by its PVH entry: no guest has to decompress it."""
        if self.source:
            # Its PVH entry would run instrumented code before there is what KASAN looks at.
            return self.tree / "boot" / f"vmlinuz-{self.version}"
        packed = self.modules / "vmlinuz"
        if not packed.exists():  # Debian's older kernels
            packed = self.tree / "boot" / f"vmlinuz-{self.version}"
        elf = BUILD / f"vmlinux-{self.version}"
        with locked("kernels"):
            if not elf.exists() or elf.stat().st_mtime < packed.stat().st_mtime:
                fresh = elf.with_name(elf.name + ".new")
                fresh.write_bytes(_decompress(packed))
                fresh.replace(elf)
        return elf


DEFAULT = "6.12"
BACKPORTS = "backports"  # the newest that Debian 13 offers, which is another one every few months
PACKAGES = ("linux-image-amd64", "linux-headers-amd64")
DEBIAN_KERNELS = {
    DEFAULT: Kernel(DEFAULT, "trixie", PACKAGES),
    BACKPORTS: Kernel(BACKPORTS, "trixie-backports", PACKAGES),
}
DEBUG_SOURCE_INSIDE = "/usr/src/linux-debug"  # where the private root sees it
DEBUG = Kernel(
    "debug",
    "",
    (),
    tree=DEBUG_KERNEL / "root",
    source=DEBUG_KERNEL / "source",
    # With five levels and several nodes KASAN stumbles over the kernel's own CPU identification.
    cpu_options=",la57=off",
    # KASAN's shadow of all memory and its quarantine, page owners, kmemleak's records.
    own_mib=512,
)
KERNELS = DEBIAN_KERNELS | {DEBUG.name: DEBUG}


def find(name: str) -> Kernel:
    if name not in KERNELS:
        raise TestbedError(f"no kernel named {name}; there are: {', '.join(KERNELS)}")
    return KERNELS[name]


def _decompress(vmlinuz: Path) -> bytes:
    """The ELF file inside a bzImage."""
    data = vmlinuz.read_bytes()
    offset, size = struct.unpack_from("<II", data, PAYLOAD_OFFSET)
    start = (data[SETUP_SECTORS_OFFSET] + 1) * SECTOR_BYTES + offset
    payload = data[start : start + size - SIZE_BYTES]
    for magic, program in DECOMPRESSORS.items():
        if payload.startswith(magic):
            command = [program, "-dc"]
            return subprocess.run(command, input=payload, stdout=subprocess.PIPE, check=True).stdout
    raise TestbedError(f"{vmlinuz}: compressed in a way that is not known: {payload[:4].hex()}")
