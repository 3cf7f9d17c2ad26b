# SPDX-License-Identifier: GPL-2.0
"""Copies of the kernel's own migrations, made by the engine."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from testbed.agent import Command
from testbed.dsa import MODULES
from testbed.dsa_engine import PATIENCE_SECONDS, SHORT_DEADLINE_US, Engine
from testbed.kernels import DEBIAN_KERNELS, DEFAULT
from testbed.vm import Vm

pytestmark = pytest.mark.machine("dsa")
on_every_kernel = pytest.mark.kernels(*DEBIAN_KERNELS)
on_the_default_kernel = pytest.mark.kernels(DEFAULT)

KNOB = "/sys/kernel/memsluice/assist"
CGROUP = "/sys/fs/cgroup/assist"
HOT_SET = "/opt/memsluice/release/tests/vm/guest/hot-set/hot-set"


def assisted(vm: Vm, reason: str) -> int:
    text = vm.run("cat /proc/memsluice/migration").stdout
    found = re.search(rf"^assisted {reason} folios (\d+) bytes (\d+)$", text, re.MULTILINE)
    if not found:
        return 0
    assert int(found[2]) >= int(found[1]) * 4096
    return int(found[1])


@contextmanager
def hot_set(vm: Vm) -> Iterator[Command]:
    """Huge pages on node 0, in a cgroup; every access is verified, and all lines at the end."""
    vm.run(f"mkdir -p {CGROUP}")
    started = vm.start(
        f"echo 0 > {CGROUP}/cgroup.procs && echo $$ > /tmp/hot-set && "
        f"exec numactl -m 0 {HOT_SET} --bytes 32M --hot-bytes 1M --hot-percent 99"
        " --huge always --verify"
    )
    vm.agent.wait_for(lambda: "interval" in started.stdout or started.status is not None, 60)
    yield started
    vm.run("kill $(cat /tmp/hot-set)")
    result = started.wait(PATIENCE_SECONDS)
    assert result.status == 0 and '"errors":0' in result.stdout.replace(" ", ""), result
    vm.run(f"rmdir {CGROUP}")


@contextmanager
def to_and_fro(vm: Vm) -> Iterator[None]:
    """Its pages move by the kernel's own means meanwhile."""
    vm.run("touch /tmp/to-and-fro")
    moving = vm.start(
        "while [ -e /tmp/to-and-fro ]; do"
        " migratepages $(cat /tmp/hot-set) 0 1; migratepages $(cat /tmp/hot-set) 1 0; done"
    )
    yield
    vm.run("rm /tmp/to-and-fro")
    assert moving.wait(PATIENCE_SECONDS).status == 0


@on_every_kernel
def test_the_kernels_own_migrations_are_copied_by_dsa(engine: Engine) -> None:
    vm = engine.vm
    engine.set("verify", 1)
    vm.run(f"echo syscall_or_cpuset > {KNOB}")
    with hot_set(vm), to_and_fro(vm):
        engine.wait_until(lambda: assisted(vm, "syscall_or_cpuset") >= 64)
    vm.run(f"echo none > {KNOB}")
    assert engine.count("bytes") >= 64 * (2 << 20)
    assert (engine.count("failed_folios"), engine.count("differing_folios")) == (0, 0)


@on_the_default_kernel
def test_only_for_the_reasons_that_are_named(engine: Engine) -> None:
    """Reclaim demotes; nobody has asked for the copies of system calls."""
    vm = engine.vm
    before = assisted(vm, "syscall_or_cpuset")
    vm.run(f"echo demotion > {KNOB}; echo 1 > /sys/kernel/mm/numa/demotion_enabled")
    with hot_set(vm):
        vm.run("migratepages $(cat /tmp/hot-set) 0 1; migratepages $(cat /tmp/hot-set) 1 0")
        # What is accessed is not demoted.
        vm.run("kill -STOP $(cat /tmp/hot-set)")
        vm.run(f"echo 16M > {CGROUP}/memory.reclaim", check=False)
        vm.run("kill -CONT $(cat /tmp/hot-set)")
    vm.run(f"echo 0 > /sys/kernel/mm/numa/demotion_enabled; echo none > {KNOB}")
    assert assisted(vm, "demotion") > 0
    assert assisted(vm, "syscall_or_cpuset") == before


@on_the_default_kernel
def test_a_late_copy_costs_a_migration_and_no_data(engine: Engine) -> None:
    vm = engine.vm
    vm.run(f"echo syscall_or_cpuset > {KNOB}")
    engine.set("deadline_us", SHORT_DEADLINE_US)
    with hot_set(vm), to_and_fro(vm):
        engine.wait_until(lambda: engine.count("calls") > 0)
        engine.hold()
        engine.wait_until(lambda: engine.quarantined() > 0)
        engine.release()
        engine.wait_until(lambda: engine.quarantined() == 0)
    vm.run(f"echo none > {KNOB}")


@on_every_kernel
def test_it_comes_and_goes_under_load(engine: Engine) -> None:
    """And with it the module, whose code runs in the kernel's own migrations."""
    vm = engine.vm
    with hot_set(vm), to_and_fro(vm):
        for _ in range(5):
            vm.run(f"echo 'syscall_or_cpuset compaction' > {KNOB}; sleep 0.2; echo none > {KNOB}")
        vm.run(f"echo syscall_or_cpuset > {KNOB}")
        vm.run("accel-config disable-device dsa0 dsa1")
        vm.run("rmmod memsluice_dsa && sleep 0.2 && rmmod memsluice")
    # As the fixture leaves it.
    vm.run(f"insmod {MODULES}/memsluice.ko && insmod {MODULES}/memsluice_dsa.ko")


@on_the_default_kernel
def test_the_knob_reads_back_and_refuses_what_is_no_reason(engine: Engine) -> None:
    vm = engine.vm

    def written(text: str) -> str:
        vm.run(f"echo '{text}' > {KNOB}")
        return vm.run(f"cat {KNOB}").stdout

    assert vm.run(f"cat {KNOB}").stdout == "none\n"
    assert written("demotion,compaction") == "compaction demotion\n"
    for bad in ("fun", "demotion fun", "DEMOTION"):
        refused = vm.run(["bash", "-c", f"echo '{bad}' > {KNOB}"], check=False)
        assert "Invalid argument" in refused.stderr
        assert vm.run(f"cat {KNOB}").stdout == "compaction demotion\n"
    assert written("none") == "none\n"
    assert written("") == "none\n"
