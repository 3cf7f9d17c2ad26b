# SPDX-License-Identifier: GPL-2.0
"""memsluice engine: the command, the daemon and both modules, on emulated DSA devices."""

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testbed.agent import Command, Result
from testbed.daemon import start_daemon
from testbed.dsa import ENGINES, MEMMOVE, SUCCESS, configure
from testbed.dsa_engine import (
    DEADLINE_US,
    PATIENCE_SECONDS,
    PROGRAM,
    SHORT_DEADLINE_US,
    Engine,
)
from testbed.kernels import DEBIAN_KERNELS, DEFAULT
from testbed.vm import Vm

pytestmark = pytest.mark.machine("dsa")
# Where it matters how idxd resets devices and what it forgets then.
on_every_kernel = pytest.mark.kernels(*DEBIAN_KERNELS)
on_the_default_kernel = pytest.mark.kernels(DEFAULT)

SAVED = "/tmp/saved-dsa.conf"
NOBODY = 65534
# Who has the queues of the two devices. The second user of dsa0 is the kernel's own.
DRIVERS = (("memsluice", "dmaengine"), ("memsluice",))
QUEUES = {"dsa/wq0.0", "dsa/wq1.0"}


class Host:
    def __init__(self, engine: Engine) -> None:
        self.vm: Vm = engine.vm
        self.device = engine.devices[0]
        self.count = engine.count
        self._engine = engine
        self._daemon: Command | None = None

    def start_daemon(self) -> None:
        self.vm.run(f"rm -f {SAVED}")
        self._daemon = start_daemon(self.vm, f'[dsa]\nconfiguration = "{SAVED}"\n')

    def end_daemon(self) -> None:
        if self._daemon:
            self._daemon.kill(signal.SIGTERM)
            self._daemon.wait(timeout=PATIENCE_SECONDS)
        self._daemon = None

    @property
    def log(self) -> str:
        assert self._daemon
        return self._daemon.stderr

    def memsluice(self, arguments: str, **options: Any) -> Result:
        return self.vm.run(
            f"memsluice {arguments}", check=False, cwd="/", timeout=PATIENCE_SECONDS, **options
        )

    def engine(self) -> dict[str, Any]:
        result = self.memsluice("engine list --json")
        assert result.status == 0, result.stderr
        engines = json.loads(result.stdout)["engines"]
        return next(engine for engine in engines if engine["name"] == "dsa")

    def queues(self) -> dict[str, dict[str, Any]]:
        return {queue["name"]: queue for queue in self.engine()["queues"]}

    def finding(self) -> tuple[str, str]:
        """What doctor says of the engine, and advises."""
        findings = json.loads(self.memsluice("doctor --json").stdout)["findings"]
        finding = next(finding for finding in findings if finding["id"] == "dsa-engine")
        return finding["found"], finding["advice"]

    def copy(self) -> None:
        self.vm.run(f"{PROGRAM} --gtest_filter='Copies.*'", timeout=PATIENCE_SECONDS)

    def make_stuck(self) -> None:
        """The device does not end what a test gives it."""
        self._engine.set("deadline_us", SHORT_DEADLINE_US)
        for engine in range(ENGINES):
            self.device.ask("hold", engine=engine)
        result = self.memsluice("engine test wq0.0")
        self._engine.set("deadline_us", DEADLINE_US)
        assert (result.status, "did not end in time" in result.stdout) == (1, True), result
        assert self.queues()["wq0.0"]["state"] == "stuck"
        assert self.queues()["wq0.0"]["quarantined"] > 0

    def driver_of(self, queue: str) -> str:
        link = f"/sys/bus/dsa/devices/{queue}/driver"
        return self.vm.run(f"basename $(readlink {link})", check=False).stdout.strip()

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(0.1)


@pytest.fixture
def host(engine: Engine) -> Iterator[Host]:
    engine.vm.run("accel-config disable-device dsa0 dsa1")
    configure(engine.vm, *DRIVERS)
    host = Host(engine)
    host.start_daemon()
    yield host
    host.end_daemon()


@on_every_kernel
def test_list_shows_engines_and_queues(host: Host) -> None:
    host.copy()
    engine = host.engine()
    assert engine["batches"] > 0 and engine["bytes"] > 1 << 20
    queues = host.queues()
    assert set(queues) == {"wq0.0", "wq1.0"}, "those of others are not the engine's"
    for queue in queues.values():
        assert (queue["state"], queue["depth"], queue["quarantined"]) == ("up", 64, 0)
        assert queue["bytes"] > 12288
    text = host.memsluice("engine list").stdout
    assert re.search(r"^ENGINE +RANK", text) and re.search(r"^dsa/wq0\.0 .* up ", text, re.M)
    assert host.memsluice("engine list", user_id=NOBODY).status == 0
    assert host.memsluice("engine test", user_id=NOBODY).status == 3


@on_every_kernel
def test_every_queue_passes_its_test(host: Host) -> None:
    before = host.queues()
    result = host.memsluice("engine test")
    assert result.status == 0, result.stdout + result.stderr
    assert set(result.stdout.splitlines()) == {f"{queue}: passed" for queue in QUEUES}
    for name, queue in host.queues().items():
        assert queue["descriptors"] > before[name]["descriptors"]


@on_the_default_kernel
def test_a_copy_that_fails_fails_the_test(host: Host) -> None:
    host.device.ask("inject", do="status", status=0x20, opcode=MEMMOVE, count=0)
    result = host.memsluice("engine test wq0.0 dsa/wq1.0")
    assert result.status == 1
    failed, passed = result.stdout.splitlines()
    assert failed.startswith("wq0.0: failed: a copy failed")
    assert passed == "dsa/wq1.0: passed"


@on_the_default_kernel
def test_a_copy_that_lies_fails_the_test(host: Host) -> None:
    host.device.ask(
        "inject", do="status", status=SUCCESS, opcode=MEMMOVE, completed_bytes=0, count=0
    )
    result = host.memsluice("engine test wq0.0")
    assert result.status == 1
    assert "differs from its source" in result.stdout


@on_every_kernel
def test_a_drained_queue_copies_nothing_until_it_passes_a_test(host: Host) -> None:
    result = host.memsluice("engine drain wq0.0 wq1.0")
    assert result.status == 0, result.stdout
    assert set(result.stdout.splitlines()) == {f"{queue}: drained" for queue in QUEUES}
    assert {queue["state"] for queue in host.queues().values()} == {"drained"}
    declined, calls = host.count("declined_no_queue"), host.count("calls")
    host.copy()
    assert host.count("declined_no_queue") > declined
    assert host.count("calls") == calls
    assert host.memsluice("engine test").status == 0
    assert {queue["state"] for queue in host.queues().values()} == {"up"}
    host.copy()
    assert host.count("calls") > calls


@on_every_kernel
def test_a_stuck_device_is_reset_for_all_who_use_it(host: Host) -> None:
    host.make_stuck()
    result = host.memsluice("engine test wq0.0")
    assert (result.status, "descriptors that are late" in result.stdout) == (5, True), result
    result = host.memsluice("engine drain wq0.0")
    assert result.status == 5
    assert "memsluice engine reset dsa0" in result.stdout
    assert host.finding() == ("stuck: wq0.0", "memsluice engine reset dsa0")
    refused = host.memsluice("engine reset dsa0")
    assert (refused.status, "--yes" in refused.stderr) == (2, True), "there is no terminal"

    result = host.memsluice("engine reset dsa0 --yes")
    assert result.status == 0, result.stderr
    assert result.stdout == (
        "dsa0: reset, has its configuration again; queues enabled: wq0.0, wq0.1\n"
    )
    assert host.driver_of("wq0.1") == "dmaengine"
    queue = host.queues()["wq0.0"]
    assert (queue["state"], queue["quarantined"], queue["depth"]) == ("up", 0, 64)
    assert host.memsluice("engine test").status == 0
    assert host.finding() == ("loaded", "")
    calls = host.count("calls")
    host.copy()
    assert host.count("calls") > calls
    assert 'to be put back: [{"dev":"dsa0"' in host.log


@on_the_default_kernel
def test_others_are_served_while_a_device_is_reset(host: Host) -> None:
    host.make_stuck()
    resetting = host.vm.start("memsluice engine reset dsa0 --yes")
    host.wait_until(lambda: "to be put back" in host.log, "the reset begins")
    while resetting.status is None:
        assert host.memsluice("status").status == 0
    assert resetting.status == 0, resetting.stderr


@on_every_kernel
def test_a_device_that_has_lost_its_configuration_gets_the_saved_one(host: Host) -> None:
    host.vm.run(f"accel-config save-config -s {SAVED}")
    host.vm.run("accel-config disable-device dsa0", timeout=PATIENCE_SECONDS)
    assert set(host.queues()) == {"wq1.0"}
    result = host.memsluice("engine reset dsa0 --yes")
    assert result.status == 0, result.stderr
    assert "has the configuration that was saved" in result.stdout
    assert host.memsluice("engine test wq0.0").status == 0
    assert host.driver_of("wq0.1") == "dmaengine"


@on_the_default_kernel
def test_what_is_wrong_is_named(host: Host) -> None:
    for arguments, status, about in (
        ("test wq7.0", 4, "wq7.0"),
        ("drain other/wq0.0", 4, "wq0.0"),
        ("reset dsa7 --yes", 4, "dsa7"),
    ):
        result = host.memsluice(f"engine {arguments}")
        assert result.status == status, result
        assert about in result.stdout + result.stderr
    host.vm.run("accel-config disable-device dsa0", timeout=PATIENCE_SECONDS)
    result = host.memsluice("engine reset dsa0 --yes")
    assert result.status == 5
    assert SAVED in result.stderr and "is not configured" in result.stderr
