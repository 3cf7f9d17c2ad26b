# SPDX-License-Identifier: GPL-2.0
"""A running VM: commands in it, its kernel's reports, its QEMU."""

import fcntl
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from . import dsa, guest_root, host, initramfs, installed_root, kernels, qemu, root
from .agent import Agent, Command, Result
from .errors import TestbedError
from .kernel_log import KernelLog
from .machines import VmDescription
from .paths import RUN
from .qmp import Qmp

BOOT_SECONDS = 300
SHUTDOWN_SECONDS = 20
BOOTS = 3  # before a machine is given up
STALE_BREAKPOINT = re.compile(r"Oops: int3\b|\] int3: ")


class VmDied(TestbedError):
    """The VM is gone; whatever waited for it fails."""


class Vm:
    """Boots on construction. A context manager: leaving it shuts the VM down."""

    def __init__(
        self, description: VmDescription, kernel: str | None = None, early_initrd: bytes = b""
    ) -> None:
        """EARLY_INITRD is put in front of the initramfs, as a boot loader does it."""
        self.description = description
        root.ensure()
        guest_root.ensure()
        if description.installed:  # with the kernel that its packages bring
            self.kernel = installed_root.ensure()
        else:
            self.kernel = kernels.find(kernel or description.kernel)
        image = initramfs.ensure(self.kernel)
        host.require_packages(["util-linux"])
        self.directory, self._lock = _claim_directory(description.name)
        self._stopping = False
        self._marks = itertools.count(1)
        if early_initrd:
            combined = self.directory / "initrd"
            combined.write_bytes(early_initrd + image.read_bytes())
            image = combined
        started = time.monotonic()
        try:
            self._boot_to_the_end(image)
        except Exception:
            self._lock.close()
            raise
        self.boot_seconds = time.monotonic() - started

    def __enter__(self) -> "Vm":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def machine(self) -> str:
        return self.description.machine

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def traffic_file(self) -> Path:
        """The counters of the traffic plugin, as the host sees them."""
        return self.directory / "traffic"

    def run(
        self,
        command: str | Sequence[str],
        *,
        check: bool = True,
        timeout: float | None = 120,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        cwd: str = "/root",
        user_id: int | None = None,
    ) -> Result:
        """Runs a program, or a string with the shell, to its end.

        A process left in the background keeps running, but what it prints later is lost.
        """
        started = self.start(command, environment=environment, cwd=cwd, user_id=user_id)
        started.write(stdin, timeout)
        started.close_stdin()
        return started.wait(timeout, check)

    def start(self, command: str | Sequence[str], **options: Any) -> Command:
        """Starts a program and returns at once; OPTIONS as for Agent.start."""
        return self.agent.start(command, **options)

    def dsa_of_guest(self, number: int) -> dsa.Device:
        """What emulates the guest's dsaNUMBER, once its driver is loaded.

        Guest and host count devices in different orders; both know the node.
        """
        node = int(self.run(f"cat /sys/bus/dsa/devices/dsa{number}/numa_node").stdout)
        found = zip(self.dsa, self.description.dsa, strict=True)
        return next(device for device, description in found if description.node == node)

    def put(self, source: Path | bytes, target: str, mode: int = 0o644) -> None:
        data = source if isinstance(source, bytes) else source.read_bytes()
        script = 'mkdir -p "$(dirname "$0")" && cat > "$0" && chmod "$1" "$0"'
        self.run(["sh", "-c", script, target, f"{mode:o}"], stdin=data, timeout=600)

    def get(self, source: str) -> bytes:
        started = self.start(["cat", "--", source])
        started.wait(timeout=600, check=True)
        return started.stdout_bytes

    def kernel_reports(self, mark: str = "reports read") -> list[str]:
        """The kernel's WARN, BUG, oops, ... reports since the last call, with their text.

        Leaves MARK in the kernel's log, and waits until the console has printed that far.
        """
        if self.alive:
            line = f"testbed: {mark} #{next(self._marks)}"
            self.run(["sh", "-c", 'echo "$0" > /dev/kmsg', line])
            deadline = time.monotonic() + 10
            while self.alive and time.monotonic() < deadline and line not in self.log.tail(1000):
                time.sleep(0.02)
        return self.log.new_reports()

    def stop(self) -> None:
        """Shuts the guest's kernel down, and QEMU with it."""
        self._stopping = True
        if self.alive:
            try:
                self.start(["poweroff", "-f"])
                self._process.wait(SHUTDOWN_SECONDS)
            except (TestbedError, subprocess.TimeoutExpired):
                pass
        self.kill()

    def kill(self) -> None:
        """Ends QEMU as a power cut would."""
        self._stopping = True
        self._end()
        self._lock.close()

    def _end(self) -> None:
        if self.alive:
            self._process.kill()
        self._process.wait()
        for device in self.dsa:
            device.kill()

    def _boot_to_the_end(self, image: Path) -> None:
        """QEMU's emulated CPUs rarely run a breakpoint that the kernel has already taken out of its
        code (it patches most of its code while it boots). What dies of that is booted again.
        """
        for boots_left in reversed(range(BOOTS)):
            try:
                return self._boot(image)
            except VmDied:
                if not boots_left or not self._emulator_erred():
                    raise
            warnings.warn(
                f"{self.description.name}: QEMU ran old code while the kernel patched it; "
                "booted again",
                stacklevel=3,
            )

    def _emulator_erred(self) -> bool:
        return self._emulated and STALE_BREAKPOINT.search(self.log.text()) is not None

    def _boot(self, image: Path) -> None:
        """Until the agent answers."""
        self.dsa = [
            dsa.Device(self.directory, i, device) for i, device in enumerate(self.description.dsa)
        ]
        self._process, agent_socket, qmp_socket = self._launch(image)
        self.log = KernelLog(self.directory / "console.log")
        self.agent = Agent(agent_socket, self._death)
        self.qmp = Qmp(qmp_socket, self._death)
        try:
            self.agent.connect(BOOT_SECONDS)
            self.qmp.execute("qmp_capabilities")
        except Exception as error:
            self._end()
            if isinstance(error, VmDied):
                raise
            raise TestbedError(f"{self.description.name}: {error}\n{self.log.tail()}") from error

    def _launch(self, image: Path) -> tuple[subprocess.Popen[bytes], socket.socket, socket.socket]:
        agent_socket, agent_end = socket.socketpair()
        qmp_socket, qmp_end = socket.socketpair()
        files = qemu.Files(self.directory, image, agent_end.fileno(), qmp_end.fileno())
        command = qemu.command_line(self.description, self.kernel, files)
        self._emulated = not qemu.uses_kvm(command)
        with agent_end, qmp_end, (self.directory / "qemu.log").open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=qemu.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(agent_end.fileno(), qmp_end.fileno()),
                start_new_session=True,  # a Ctrl-C in the terminal is for the command, not for QEMU
            )
        return process, agent_socket, qmp_socket

    def _death(self) -> VmDied:
        """Why the connections have closed. Called from the threads that see it first."""
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            return VmDied(
                f"{self.description.name}: QEMU has closed the connection\n{self.log.tail()}"
            )
        if self._stopping:
            return VmDied(f"{self.description.name}: was shut down")
        status = self._process.returncode
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        output = (self.directory / "qemu.log").read_text(errors="replace").strip()
        return VmDied(
            f"{self.description.name}: QEMU ended {how}\n{output}\n"
            f"The last lines of {self.log.path}:\n{self.log.tail()}"
        )


def connect(run: str) -> Agent:
    """A second way into a VM that another process has booted: RUN is its folder's name."""
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(RUN, os.O_PATH)
    try:
        # By descriptor: a socket's path has to be short.
        connection.connect(f"/proc/self/fd/{folder}/{run}/attach")
    except OSError as error:
        raise TestbedError(f"no machine {run} runs here: {error.strerror}") from None
    finally:
        os.close(folder)
    agent = Agent(connection, lambda: VmDied(f"{run}: the machine is gone"))
    agent.connect(10)
    return agent


def _claim_directory(name: str) -> tuple[Path, IO[str]]:
    """An empty folder for this run; each of several at once gets its own."""
    RUN.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        directory = RUN / (name if number == 1 else f"{name}.{number}")
        lock = (RUN / f".{directory.name}.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        return directory, lock
    raise AssertionError("there is always a next number")
