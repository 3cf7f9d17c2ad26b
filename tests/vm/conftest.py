# SPDX-License-Identifier: GPL-2.0
"""Fixtures of tests that need a VM.

    @pytest.mark.machine("two-tier")
    def test_something(vm): ...

One boot serves all tests of a machine; one that dies is booted again for the next test. What the
kernel reports during a test fails it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from testbed import kernels, machines, modules  # noqa: E402
from testbed.errors import TestbedError  # noqa: E402
from testbed.vm import Vm  # noqa: E402


class Booted:
    """At most one VM at a time: memory and CPUs are the host's, not a test's."""

    def __init__(self, kernel: str | None) -> None:
        self._kernel = kernel
        self._vm: Vm | None = None
        self._unbootable: dict[str, Exception] = {}

    def get(self, machine: str) -> Vm:
        if self._vm and self._vm.alive and self._vm.machine == machine:
            return self._vm
        self.stop()
        if machine in self._unbootable:
            raise self._unbootable[machine]
        try:
            self._vm = Vm(machines.load(machine).only_vm(), self._kernel)
        except TestbedError as error:
            self._unbootable[machine] = error
            raise
        print(f"{machine}: up after {self._vm.boot_seconds:.1f} s")
        return self._vm

    def stop(self) -> None:
        vm, self._vm = self._vm, None
        if vm:
            vm.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    names = ", ".join(kernels.KERNELS)
    parser.addoption(
        "--kernel", help=f"boot machines with this kernel, and build the module for it: {names}"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "machine(name): the machine that the fixture vm boots")
    if "s" not in config.option.reportchars:
        config.option.reportchars += "s"  # why a test was skipped


def _machine(item: pytest.Item) -> str:
    marker = item.get_closest_marker("machine")
    return marker.args[0] if marker else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_machine)


@pytest.fixture(scope="session")
def booted(pytestconfig: pytest.Config) -> Iterator[Booted]:
    kernel = pytestconfig.getoption("kernel")
    if kernel:
        modules.build(kernels.find(kernel))
    booted = Booted(kernel)
    yield booted
    booted.stop()


@pytest.fixture
def vm(request: pytest.FixtureRequest, booted: Booted) -> Vm:
    machine = _machine(request.node)
    assert machine, f"{request.node.nodeid} has no @pytest.mark.machine(...)"
    return booted.get(machine)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[None]:  # fmt: skip
    outcome = yield
    machine = getattr(item, "funcargs", {}).get("vm")
    if call.when != "call" or machine is None:
        return
    try:
        reports = machine.kernel_reports(item.name)
    except TestbedError as error:
        reports = [str(error)]
    if reports:
        report = outcome.get_result()
        report.outcome = "failed"
        report.longrepr = "\n\n".join(
            [f"the kernel reported (see {machine.log.path}):", *reports, str(report.longrepr or "")]
        )
