# SPDX-License-Identifier: GPL-2.0
"""Emulated DSA devices beside a VM: the program tools/memsluice-dsa, one process for each."""

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import TestbedError
from .host import ENDS_WITH_ITS_PARENT
from .machines import Dsa
from .paths import RELEASE

if TYPE_CHECKING:
    from .vm import Vm

PROGRAM = RELEASE / "tools/memsluice-dsa/memsluice-dsa"
START_SECONDS = 20
MODULES = "/opt/memsluice/modules"  # in the guest
# Of the specification: operations, and a status.
MEMMOVE, BATCH = 3, 1
SUCCESS = 1
ENGINES = 4  # of a device, if nothing else is said
QUEUE_ENTRIES = 64
ASK_SECONDS = 60


def load_driver(vm: "Vm") -> None:
    """With the instruction that emulated CPUs lack."""
    vm.run(f"insmod {MODULES}/memsluice_test_movdir64b.ko && modprobe idxd")


def unload_driver(vm: "Vm") -> None:
    vm.run("rmmod idxd memsluice_test_movdir64b")


def configure(vm: "Vm", *drivers: Sequence[str]) -> None:
    """Enables the guest's devices, each with a dedicated queue for each of its DRIVERS."""
    devices = [_configuration(device, names) for device, names in enumerate(drivers)]
    vm.put(json.dumps(devices).encode(), "/tmp/dsa.conf")
    vm.run("accel-config load-config -c /tmp/dsa.conf -e")


def _configuration(device: int, drivers: Sequence[str]) -> dict[str, Any]:
    """What an administrator saves with accel-config save-config, and loads at boot."""
    return {
        "dev": f"dsa{device}",
        "groups": [
            {
                "dev": f"group{device}.0",
                "grouped_workqueues": [
                    {
                        "dev": f"wq{device}.{queue}",
                        "mode": "dedicated",
                        "size": QUEUE_ENTRIES,
                        "group_id": 0,
                        "priority": 10,
                        "max_batch_size": 1024,
                        "max_transfer_size": 2097152,
                        "type": "kernel",
                        "name": "copies",
                        "driver_name": driver,
                    }
                    for queue, driver in enumerate(drivers)
                ],
                "grouped_engines": [
                    {"dev": f"engine{device}.{engine}", "group_id": 0} for engine in range(ENGINES)
                ],
            }
        ],
    }


def socket(number: int) -> str:
    """Relative to the run's folder: a socket's path has to be short."""
    return f"dsa{number}"


class Device:
    """Waits in DIRECTORY for a VM to plug it in. Ends with this process, however that ends."""

    def __init__(self, directory: Path, number: int, description: Dsa) -> None:
        if not PROGRAM.exists():
            raise TestbedError(
                f"{PROGRAM} is not built; do: cmake --preset release && "
                "cmake --build --preset release --target programs"
            )
        self._directory = directory
        self._control = f"{socket(number)}-control"
        serve = [PROGRAM, "serve", socket(number), "--control", self._control, "--verbose"]
        self.log = directory / f"dsa{number}.log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [*ENDS_WITH_ITS_PARENT, *serve, *description.arguments],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._wait_for(directory / self._control)

    def ask(self, method: str, **parameters: Any) -> Any:
        """What the device answers: docs/memsluice-dsa.md."""
        asked = subprocess.run(
            [PROGRAM, "ask", self._control, method, json.dumps(parameters)],
            cwd=self._directory,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
        )
        if asked.returncode:
            raise TestbedError(f"dsa: {method}: {asked.stderr.strip()}")
        return json.loads(asked.stdout)

    def kill(self) -> None:
        """Ends it as a fault would: the VM finds a device that does not answer."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _wait_for(self, path: Path) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not path.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise TestbedError(f"the emulated DSA did not start:\n{self.log.read_text()}")
            time.sleep(0.01)
