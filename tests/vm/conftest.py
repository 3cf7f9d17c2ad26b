# SPDX-License-Identifier: GPL-2.0
"""Fixtures of tests that need a VM.

    @pytest.mark.machine("two-tier")
    def test_something(vm): ...

    @pytest.mark.kernels("6.12", "backports")
    def test_something_on_each_of_them(vm): ...

One boot serves all tests of a machine and kernel; one that dies is booted again for the next test.
What the kernel reports during a test fails it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from testbed import dsa, dsa_engine, kernels, machines, modules  # noqa: E402
from testbed.errors import TestbedError  # noqa: E402
from testbed.vm import Vm  # noqa: E402


class Booted:
    """At most one VM at a time: memory and CPUs are the host's, not a test's."""

    def __init__(self) -> None:
        self._vm: Vm | None = None
        self._booted = ("", "")  # machine and kernel of _vm
        self._unbootable: dict[tuple[str, str], Exception] = {}

    def get(self, machine: str, kernel: str | None) -> Vm:
        """KERNEL: None for the one that the machine's description names."""
        description = machines.load(machine).only_vm()
        wanted = (machine, kernel or description.kernel)
        if self._vm and self._vm.alive and self._booted == wanted:
            return self._vm
        self.stop()
        if wanted in self._unbootable:
            raise self._unbootable[wanted]
        try:
            self._vm = Vm(description, kernel)
        except TestbedError as error:
            self._unbootable[wanted] = error
            raise
        self._booted = wanted
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
    parser.addoption("--soak", type=int, help="run test_soak.py, for so many minutes")
    parser.addoption("--seed", type=int, default=1, help="of its first round")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "machine(name): the machine that the fixture vm boots")
    config.addinivalue_line(
        "markers", "kernels(name, ...): a test with each of these, unless there is --kernel"
    )
    if "s" not in config.option.reportchars:
        config.option.reportchars += "s"  # why a test was skipped


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What runs only when it is asked for is not even a skipped test otherwise."""
    return (collection_path.name == "test_soak.py" and not config.getoption("soak")) or None


def _machine(item: pytest.Item) -> str:
    marker = item.get_closest_marker("machine")
    return marker.args[0] if marker else ""


def _kernel(item: pytest.Item) -> str:
    return str(item.callspec.params.get("kernel", "")) if hasattr(item, "callspec") else ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("kernels")
    if marker:
        asked = metafunc.config.getoption("kernel")
        metafunc.parametrize("kernel", [asked] if asked else marker.args, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (_machine(item), _kernel(item)))


@pytest.fixture(scope="session")
def booted(pytestconfig: pytest.Config) -> Iterator[Booted]:
    kernel = pytestconfig.getoption("kernel")
    if kernel:
        modules.build(kernels.find(kernel))
    booted = Booted()
    yield booted
    booted.stop()


@pytest.fixture
def kernel(request: pytest.FixtureRequest) -> str | None:
    """Whose name is to be booted; None for the one that the machine's description names."""
    return getattr(request, "param", None) or request.config.getoption("kernel")


@pytest.fixture
def vm(request: pytest.FixtureRequest, booted: Booted, kernel: str | None) -> Vm:
    machine = _machine(request.node)
    assert machine, f"{request.node.nodeid} has no @pytest.mark.machine(...)"
    return booted.get(machine, kernel)


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


@pytest.fixture
def idxd(vm: Vm) -> Iterator[Vm]:
    """With the driver of DSA loaded, and nothing configured."""
    dsa.load_driver(vm)
    yield vm
    if vm.alive:
        dsa.unload_driver(vm)


@pytest.fixture
def engine(idxd: Vm) -> Iterator[dsa_engine.Engine]:
    """That of memsluice_dsa: two devices, two queues each."""
    idxd.run(
        f"""
        grep -qw ^memsluice /proc/modules || insmod {dsa.MODULES}/memsluice.ko
        insmod {dsa.MODULES}/memsluice_dsa.ko {dsa_engine.KNOBS_OF_TESTS}
        """
    )
    dsa_engine.configure_all(idxd)
    engine = dsa_engine.Engine(
        idxd, [idxd.dsa_of_guest(device) for device in range(dsa_engine.DEVICES)]
    )
    yield engine
    if idxd.alive:
        engine.forget()
        engine.release()
        # What is late still, if a test has failed, is reset with its device.
        idxd.run(f"rm -f {dsa_engine.WHILE}; accel-config disable-device dsa0 dsa1 || true")
        idxd.run("rmmod memsluice_dsa")
