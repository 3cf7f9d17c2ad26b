# SPDX-License-Identifier: GPL-2.0
"""The module in a guest: each test of tests/vm/module, and what needs loading and unloading."""

import os
import re
import subprocess
from collections.abc import Iterator

import pytest
from testbed.kernels import DEBIAN_KERNELS, DEFAULT
from testbed.paths import RELEASE
from testbed.vm import Vm

pytestmark = pytest.mark.machine("two-tier")
on_every_kernel = pytest.mark.kernels(*DEBIAN_KERNELS)
on_the_default_kernel = pytest.mark.kernels(DEFAULT)
PROGRAM = "tests/vm/module/module-test"
IN_GUEST = "/tmp/module-test"  # from where it is shared, the debug kernel reads it for seconds
MODULE = "/opt/memsluice/modules/memsluice.ko"
# On the debug kernel; elsewhere some minutes, after which pytest ends them.
TEST_SECONDS, RELOAD_SECONDS = 2 * 3600, 3 * 3600
# How long fuzz tests run, and from where they start.
HANDED_ON = ("MEMSLUICE_FUZZ_SECONDS", "MEMSLUICE_FUZZ_SEED")
SKIPPED = re.compile(r": Skipped\n(.*)")
# More than twenty seconds each. They run on one kernel, on others only if --kernel asks for it.
SLOW = {
    "Events.CompactionAndBalancingMoveToo",
    "Events.CountersAreWhatTheyWere",
    "Events.DamonMovesToo",
    "Events.PagesAreDroppedInTheMiddle",
    "Faults.TheModuleLeavesInTheMiddle",
    "Migrate.RefusesWhenTheTargetIsFull",
    "PageKinds.PagesOfFilesCleanDirtyAndUnderWriteback",
    "PageKinds.PagesOnTheirWayOutAndIn",
}


def _names() -> list[str]:
    """The tests that the program has, as Suite.Name."""
    if not (RELEASE / PROGRAM).exists():
        return ["(module-test is not built)"]
    output = subprocess.run(
        [RELEASE / PROGRAM, "--gtest_list_tests"], capture_output=True, text=True, check=True
    ).stdout
    names: list[str] = []
    suite = ""
    for line in output.splitlines():
        if line.startswith("  "):
            names.append(suite + line.split()[0])
        elif line.endswith("."):
            suite = line
    return names


@pytest.fixture
def module(vm: Vm) -> Iterator[Vm]:
    vm.run(
        f"""
        grep -qw ^memsluice /proc/modules || insmod {MODULE}
        [ -e {IN_GUEST} ] || cp /opt/memsluice/release/{PROGRAM} {IN_GUEST}
        """,
        timeout=TEST_SECONDS,
    )
    yield vm


NAMES = _names()
# Those of test_channels.py and test_placement.py need other machines.
PLACED = ("Placement.", "Redistribute.")
ELSEWHERE = ("Channels.", *PLACED)
HERE = [name for name in NAMES if name not in SLOW and not name.startswith(ELSEWHERE)]


def run_in_guest(module: Vm, name: str) -> None:
    command = [IN_GUEST, f"--gtest_filter={name}"]
    environment = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
    result = module.run(command, check=False, timeout=TEST_SECONDS, environment=environment)
    assert result.status == 0, result.stdout[-6000:] + result.stderr[-2000:]
    if skipped := SKIPPED.search(result.stdout):
        pytest.skip(skipped[1])
    assert "[  PASSED  ] 1 test." in result.stdout


@on_every_kernel
@pytest.mark.parametrize("name", HERE)
def test_module(module: Vm, name: str) -> None:
    run_in_guest(module, name)


@on_the_default_kernel
@pytest.mark.parametrize("name", [name for name in NAMES if name in SLOW])
def test_module_for_long(module: Vm, name: str) -> None:
    run_in_guest(module, name)


@on_every_kernel
def test_features_are_on(module: Vm) -> None:
    status = module.run("cat /proc/memsluice/status").stdout
    assert "features 0xfff\n" in status
    symbols = [line for line in status.splitlines() if line.startswith("symbol ")]
    assert symbols and all(line.endswith(" bound") for line in symbols), status
    assert "node 0 fast" in status and "node 1 slow" in status


@on_the_default_kernel
def test_a_hundred_reloads_under_load(module: Vm) -> None:
    """Tenants, scans, migrations and cgroups go on while the module comes and goes."""
    module.run(
        """
        mkdir -p /sys/fs/cgroup/reload
        load() {
          echo 0 > /sys/fs/cgroup/reload/cgroup.procs
          while [ ! -e /tmp/reload-stop ]; do
            numactl -m 1 dd if=/dev/zero of=/dev/null bs=8M count=3
          done
        }
        rm -f /tmp/reload-stop
        (load) > /dev/null 2>&1 &
        for i in $(seq 100); do
          echo "reload $i"
          rmmod memsluice || exit 1
          insmod %s || exit 2
          echo 10 > /sys/kernel/memsluice/scan_period_ms
          echo 100 > /sys/kernel/memsluice/scan_cpu_percent
          echo 10 > /sys/kernel/memsluice/tier_period_ms
          %s --gtest_filter=Tenant.ReadsBackWhatWasSet > /dev/null || exit 3
        done
        touch /tmp/reload-stop
        wait
        rmdir /sys/fs/cgroup/reload
        """
        % (MODULE, IN_GUEST),
        timeout=RELOAD_SECONDS,
    )


@on_every_kernel
def test_a_module_in_use_stays(module: Vm) -> None:
    held = module.start("exec 3< /dev/memsluice; echo open; read line")
    assert module.agent.wait_for(lambda: "open" in held.stdout, 30)
    result = module.run("rmmod memsluice", check=False)
    assert result.status != 0 and "in use" in result.stderr
    held.kill()
    held.wait(timeout=30, check=False)
    module.run("rmmod memsluice")


@on_the_default_kernel
def test_nothing_is_left_after_unloading(module: Vm) -> None:
    kmemleak = "/sys/kernel/debug/kmemleak"
    if module.run(f"test -e {kmemleak}", check=False).status:
        pytest.skip("only the debug kernel (--debug-kernel) has kmemleak")
    module.run("rmmod memsluice")
    # What the kernel itself has left behind so far is not ours; objects count after five seconds.
    scan = f"sleep 6; echo scan > {kmemleak}"
    module.run(f"{scan}; echo clear > {kmemleak}", timeout=TEST_SECONDS)
    module.run(f"insmod {MODULE}")
    run_in_guest(module, "Migrate.MovesARangeOfBasePages")
    run_in_guest(module, "Migrate.AnAsynchronousRequestPollsAndReports")
    run_in_guest(module, "Tiering.HugePagesStayHuge")
    module.run("rmmod memsluice")
    module.run(f"{scan}; echo scan > {kmemleak}", timeout=TEST_SECONDS)
    assert not module.run(f"cat {kmemleak}").stdout
