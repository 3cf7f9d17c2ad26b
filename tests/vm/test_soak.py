# SPDX-License-Identifier: GPL-2.0
"""Everything at once, and the module's tests in random order: scripts/test --soak MINUTES."""

import time

import pytest
from testbed.kernels import DEBIAN_KERNELS
from testbed.vm import Vm

pytestmark = [pytest.mark.machine("two-tier"), pytest.mark.kernels(*DEBIAN_KERNELS)]
MODULE = "/opt/memsluice/modules/memsluice.ko"
PROGRAM = "/opt/memsluice/release/tests/vm/module/module-test"
SEEDS = 99999  # what --gtest_random_seed takes
LONGEST_AT_ONCE_SECONDS = 1800  # in each round of all tests


def test_in_any_order(vm: Vm, pytestconfig: pytest.Config) -> None:
    minutes, seed = pytestconfig.getoption("soak"), pytestconfig.getoption("seed")
    end = time.monotonic() + minutes * 60
    at_once = {"MEMSLUICE_SOAK_SECONDS": str(min(minutes * 30, LONGEST_AT_ONCE_SECONDS))}
    vm.run(["insmod", MODULE], timeout=None)
    while time.monotonic() < end:
        order = [PROGRAM, "--gtest_shuffle", f"--gtest_random_seed={seed}"]
        result = vm.run(order, check=False, timeout=None, environment=at_once)
        assert result.status == 0, f"--seed {seed}\n{result.stdout[-20000:]}{result.stderr[-2000:]}"
        seed = seed % SEEDS + 1
    vm.run(["rmmod", "memsluice"])
