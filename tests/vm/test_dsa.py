# SPDX-License-Identifier: GPL-2.0
"""The emulated DSA under Linux' own driver, set up with accel-config as on real hardware."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from testbed.dsa import ENGINES, MODULES, Device, configure
from testbed.vm import Vm

pytestmark = [pytest.mark.machine("dsa"), pytest.mark.kernels("6.12", "backports")]

DEVICES = "/sys/bus/dsa/devices"
PARAMETERS = "/sys/module/memsluice_test_dma/parameters"
PAGE_BYTES = 4096
MEMMOVE, HARDWARE_ERROR, SUCCESS = "3", 0x21, "1"


@dataclass
class Dsa:
    """dsa0 of the guest, with a queue that the kernel copies through, and what emulates it."""

    vm: Vm
    device: Device

    def copy(self, pages: int) -> str:
        """What the kernel says of it: nothing, if all has arrived as it was."""
        copying = f"echo {pages} > {PARAMETERS}/copy"
        return self.vm.run(["bash", "-c", copying], check=False).stderr.strip()

    def bytes_copied(self) -> int:
        return int(self.device.ask("statistics")["bytes"])


@pytest.fixture
def dsa(idxd: Vm) -> Iterator[Dsa]:
    configure(idxd, ["dmaengine"])
    idxd.run(f"insmod {MODULES}/memsluice_test_dma.ko")
    device = idxd.dsa_of_guest(0)
    yield Dsa(idxd, device)
    device.ask("forget")
    idxd.run("rmmod memsluice_test_dma && accel-config disable-device dsa0")


def test_devices_sit_at_their_nodes(idxd: Vm) -> None:
    nodes = idxd.run(f"cat {DEVICES}/dsa*/numa_node").stdout.split()
    assert sorted(nodes) == ["0", "1"]


def test_the_driver_sees_what_the_device_has(idxd: Vm) -> None:
    attributes = "max_engines max_groups max_work_queues max_work_queues_size max_batch_size"
    values = idxd.run(f"cd {DEVICES}/dsa0 && cat {attributes} max_transfer_size version").stdout
    assert values.split() == ["4", "4", "8", "128", "1024", "2147483648", "0x100"]


def test_copies_arrive_whole(dsa: Dsa) -> None:
    before = dsa.bytes_copied()
    assert [dsa.copy(pages) for pages in (1, 16, 512)] == [""] * 3
    assert dsa.bytes_copied() - before == 529 * PAGE_BYTES
    statistics = dsa.device.ask("statistics")
    assert statistics["descriptors_by_opcode"][MEMMOVE] >= 3
    assert statistics["interrupts"] >= 3


def test_the_trace_has_each_descriptor(dsa: Dsa) -> None:
    dsa.device.ask("trace", entries=100)
    assert dsa.copy(2) == ""
    (entry,) = dsa.device.ask("read-trace")
    dsa.device.ask("trace", entries=0)
    assert (entry["opcode"], entry["size"], entry["status"]) == (3, 2 * PAGE_BYTES, 1)
    assert entry["bytes_completed"] == 2 * PAGE_BYTES
    assert entry["ended_ns"] >= entry["began_ns"]


@pytest.mark.parametrize("status", [0x03, 0x13, 0x20, HARDWARE_ERROR, 0x83])
def test_a_descriptor_that_fails_is_told_and_the_next_is_copied(dsa: Dsa, status: int) -> None:
    dsa.device.ask("inject", do="status", status=status, completed_bytes=PAGE_BYTES)
    assert "Input/output error" in dsa.copy(4)
    assert dsa.device.ask("statistics")["descriptors_by_status"][str(status)] >= 1
    assert dsa.copy(4) == ""


def test_an_interrupt_that_is_lost_is_missed(dsa: Dsa) -> None:
    dsa.device.ask("inject", do="drop-interrupt")
    dsa.vm.run(f"echo 1000 > {PARAMETERS}/timeout_ms")
    assert "Connection timed out" in dsa.copy(1)
    dsa.vm.run(f"echo 60000 > {PARAMETERS}/timeout_ms")
    assert dsa.device.ask("statistics")["interrupts_dropped"] >= 1
    # The next one tells of both.
    assert dsa.copy(1) == ""


def test_engines_that_are_held_go_on_when_released(dsa: Dsa) -> None:
    for engine in range(ENGINES):
        dsa.device.ask("hold", engine=engine)
    copying = dsa.vm.start(f"echo 512 > {PARAMETERS}/copy")
    while not dsa.device.ask("status")["queues"][0]["waiting"]:
        pass
    before = dsa.bytes_copied()
    assert all(engine["held"] for engine in dsa.device.ask("status")["engines"])
    for engine in range(ENGINES):
        dsa.device.ask("release", engine=engine)
    assert copying.wait(120, check=True).stderr == ""
    assert dsa.bytes_copied() - before == 512 * PAGE_BYTES


def test_a_queue_that_is_disabled_first_copies_what_it_has(dsa: Dsa) -> None:
    assert dsa.copy(1) == ""
    dsa.vm.run("rmmod memsluice_test_dma && accel-config disable-wq dsa0/wq0.0")
    assert not dsa.device.ask("status")["queues"][0]["enabled"]
    assert dsa.device.ask("status")["state"] == "enabled"
    # The driver forgets what a queue was like.
    dsa.vm.run(
        "accel-config config-wq dsa0/wq0.0 --group-id=0 --mode=dedicated --type=kernel "
        "--name=again --driver-name=dmaengine --priority=10 --max-transfer-size=2097152 && "
        "accel-config enable-wq dsa0/wq0.0 && "
        f"insmod {MODULES}/memsluice_test_dma.ko"
    )
    assert dsa.copy(1) == ""


def test_a_halted_device_works_again_after_a_reset(idxd: Vm) -> None:
    device = idxd.dsa_of_guest(0)
    function = idxd.run(f"dirname $(readlink -f {DEVICES}/dsa0)").stdout.strip()
    device.ask("halt", reset="flr")
    # Newer kernels reset it themselves, and may have by now.
    assert device.ask("status")["state"] in ("halted", "disabled")
    # A driver that meets a halted device does not survive it: first the reset.
    idxd.run(f"rmmod idxd && echo 1 > {function}/reset && modprobe idxd")
    assert device.ask("status")["state"] == "disabled"
    assert idxd.run(f"cat {DEVICES}/dsa0/state").stdout == "disabled\n"
