# SPDX-License-Identifier: GPL-2.0
"""The kernels that modules are built for and machines boot."""

from dataclasses import dataclass
from pathlib import Path

from .errors import TestbedError
from .paths import ROOT


@dataclass(frozen=True)
class Kernel:
    name: str
    suite: str
    packages: tuple[str, ...]

    @property
    def version(self) -> str:
        """The release string, as uname -r prints it."""
        return (ROOT / f"kernel-{self.name}").read_text().strip()

    @property
    def image(self) -> Path:
        return ROOT / "boot" / f"vmlinuz-{self.version}"

    @property
    def modules(self) -> Path:
        return ROOT / "usr/lib/modules" / self.version


KERNELS = {
    kernel.name: kernel
    for kernel in (Kernel("6.12", "trixie", ("linux-image-amd64", "linux-headers-amd64")),)
}
DEFAULT = "6.12"


def find(name: str) -> Kernel:
    if name not in KERNELS:
        raise TestbedError(f"no kernel named {name}; there are: {', '.join(KERNELS)}")
    return KERNELS[name]
