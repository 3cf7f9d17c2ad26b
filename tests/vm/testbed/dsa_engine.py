# SPDX-License-Identifier: GPL-2.0
"""The engine memsluice_dsa in a guest of the machine dsa: its counts, its knobs, its troubles."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from . import dsa
from .vm import Vm

KNOBS = "/sys/module/memsluice_dsa/parameters"
ENGINES_FILE = "/proc/memsluice/engines"
PROGRAM = "/opt/memsluice/release/tests/vm/module/module-test"
WHILE = "/tmp/copies-go-on"
DEVICES, QUEUES = 2, 2
PATIENCE_SECONDS = 240
# Of this machine, which may let a thread wait for long. Where a device is to be late, less.
DEADLINE_US, SHORT_DEADLINE_US = 5_000_000, 20_000
# What is measured here differs from run to run; what is measured at all is not copied by tests.
KNOBS_OF_TESTS = f"deadline_us={DEADLINE_US} least_bytes=32768"


@dataclass
class Engine:
    """The engine in a guest whose two devices have two queues each."""

    vm: Vm
    devices: list[dsa.Device]

    def text(self) -> str:
        return self.vm.run(f"cat {ENGINES_FILE}").stdout

    def count(self, name: str) -> int:
        found = re.search(rf"^{name} (\d+)$", self.text(), re.MULTILINE)
        assert found, name
        return int(found[1])

    def queues(self) -> dict[str, dict[str, str]]:
        """By name: `state`, and what else its line says."""
        queues = {}
        for line in self.text().splitlines():
            words = line.split()
            if words[0] == "queue":
                numbers = words[2:4] + words[5:]
                pairs = zip(numbers[::2], numbers[1::2], strict=True)
                queues[words[1]] = {"state": words[4], **dict(pairs)}
        return queues

    def states(self) -> set[str]:
        return {queue["state"] for queue in self.queues().values()}

    def by_status(self, status: int) -> int:
        found = re.findall(rf"^status \S+ 0x{status & 0x7F:02x} (\d+)$", self.text(), re.MULTILINE)
        return sum(map(int, found))

    def quarantined(self) -> int:
        return sum(int(queue["quarantined"]) for queue in self.queues().values())

    def set(self, knob: str, value: int | str) -> None:
        self.vm.run(f"echo {value} > {KNOBS}/{knob}")

    def inject(self, **rule: object) -> None:
        for device in self.devices:
            device.ask("inject", **rule)

    def forget(self) -> None:
        for device in self.devices:
            device.ask("forget")

    def hold(self, method: str = "hold") -> None:
        for device in self.devices:
            for engine in range(dsa.ENGINES):
                device.ask(method, engine=engine)

    def release(self) -> None:
        self.hold("release")

    def addresses(self, device: int) -> list[range]:
        """The memory of the node that the guest's device sits at."""
        block = int(self.vm.run("cat /sys/devices/system/memory/block_size_bytes").stdout, 16)
        node = self.vm.run(f"cat /sys/bus/dsa/devices/dsa{device}/numa_node").stdout.strip()
        names = self.vm.run(f"cd /sys/devices/system/node/node{node} && ls -d memory[0-9]*").stdout
        numbers = [int(name.removeprefix("memory")) for name in names.split()]
        return [range(number * block, (number + 1) * block) for number in numbers]

    def said(self, text: str) -> bool:
        return text in self.vm.run("dmesg").stdout

    @contextmanager
    def copying(self, movers: int = 1) -> Iterator[None]:
        """Pages move to and fro, and threads write to them; afterwards every word is right."""
        command = f"MEMSLUICE_COPIES_WHILE={WHILE} {PROGRAM} --gtest_filter='Copies.*'"
        self.vm.run(f"touch {WHILE}")
        moving = [self.vm.start(command) for _ in range(movers)]
        before = self.count("calls")
        self.wait_until(lambda: self.count("calls") > before)
        yield
        self.vm.run(f"rm {WHILE}")
        for mover in moving:
            result = mover.wait(PATIENCE_SECONDS)
            assert result.status == 0, result.stdout

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.text()


def configure_all(vm: Vm, drivers: Sequence[str] = ("memsluice",) * QUEUES) -> None:
    dsa.configure(vm, *[drivers] * DEVICES)
