# SPDX-License-Identifier: GPL-2.0
"""A guest whose pages are copied by emulated DSA, or by the CPU."""

import re

from testbed.dsa import MODULES, configure, load_driver
from testbed.vm import Vm

MACHINE, COUNTED_MACHINE = "dsa-four", "dsa-counted"
STATISTICS = ["/proc/memsluice/migration", "/proc/memsluice/engines"]
KNOBS = "/sys/module/memsluice_dsa/parameters"
# Of the emulation, which may let a thread wait for long.
DEADLINE_US = 10_000_000
# Long enough for every list to be one batch.
STALL_US = 1_000_000
DEVICES = 4
ENGINES = {"dsa": 0, "cpu": 1 << 30}  # and from how many bytes on DSA copies then


def counters(vm: Vm) -> dict[str, int]:
    """Those of the batches, and of what copies them."""
    text = vm.run(["cat", *STATISTICS]).stdout
    return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}


class Host:
    """Of its devices, as many queues are given to memsluice as are asked for."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        load_driver(vm)
        vm.run(
            f"""
            insmod {MODULES}/memsluice.ko
            echo {STALL_US} > /sys/kernel/memsluice/batch_stall_us
            insmod {MODULES}/memsluice_dsa.ko deadline_us={DEADLINE_US} least_bytes=0
            """
        )
        self._configured = 0

    def configure(self, queues: int) -> None:
        devices = min(queues, DEVICES)
        for device in range(self._configured):
            self.vm.run(f"accel-config disable-device dsa{device}")
        configure(self.vm, *[["memsluice"] * (queues // devices)] * devices)
        self._configured = devices

    def copy_from(self, least_bytes: int) -> None:
        """DSA copies lists of so many bytes and more."""
        self.vm.run(f"echo {least_bytes} > {KNOBS}/least_bytes")
