# SPDX-License-Identifier: GPL-2.0
"""Tenants on channels: the Placement tests of tests/vm/module, the command, and reloading."""

import re

import pytest
from test_module import IN_GUEST, MODULE, NAMES, RELOAD_SECONDS, run_in_guest
from test_module import module as module  # a fixture
from testbed.daemon import PATIENCE_SECONDS, start_daemon
from testbed.kernels import DEBIAN_KERNELS, DEFAULT
from testbed.vm import Vm

pytestmark = [pytest.mark.machine("channels"), pytest.mark.kernels(*DEBIAN_KERNELS)]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("Placement.")])
def test_placement(module: Vm, name: str) -> None:
    run_in_guest(module, name)


def test_the_module_leaves_while_pages_are_placed(module: Vm) -> None:
    """What sleeps in an allocation may look at the policy that it was given long after."""
    module.run(
        f"""
        mkdir -p /sys/fs/cgroup/reload
        load() {{
          echo 0 > /sys/fs/cgroup/reload/cgroup.procs
          while [ ! -e /tmp/reload-stop ]; do
            dd if=/dev/zero of=/dev/null bs=8M count=3
          done
        }}
        rm -f /tmp/reload-stop
        (load) > /dev/null 2>&1 &
        for i in $(seq 10); do
          {IN_GUEST} --gtest_filter=Placement.BasePagesLieByWeight > /dev/null || exit 1
          rmmod memsluice || exit 2
          insmod {MODULE} || exit 3
        done
        touch /tmp/reload-stop
        wait
        rmdir /sys/fs/cgroup/reload
        """,
        timeout=RELOAD_SECONDS,
    )


# Fills so many MiB, and shows where all of its pages lie.
FILLER = """
import sys
memory = bytearray(b"x") * (int(sys.argv[1]) << 20)
print(open("/proc/self/numa_maps").read())
"""
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
CONFIG = """
[[tenant]]
cgroup = "/configured.slice"
channels = "1:3,2:1"
granule = "4K"
"""


@pytest.mark.kernels(DEFAULT)
def test_channels_by_command_and_by_configuration(module: Vm) -> None:
    cgroups = "/sys/fs/cgroup/configured.slice /sys/fs/cgroup/by-hand.slice"
    module.run(f"mkdir -p {cgroups}")
    before = re.findall(r"\[(\w+)\]", module.run(f"cat {HUGE_PAGES}").stdout)[0]
    module.run(f"echo never > {HUGE_PAGES}")
    daemon = start_daemon(module, CONFIG)

    def anonymous_pages(line: str) -> int:
        return int((re.findall(r" anon=(\d+)", line) or [0])[0])

    def filled(cgroup: str, mib: int) -> dict[int, int]:
        enter = f"echo $$ > /sys/fs/cgroup/{cgroup}/cgroup.procs"
        maps = module.run(f"{enter}; python3 -c '{FILLER}' {mib}").stdout
        line = max(maps.splitlines(), key=anonymous_pages)
        return {int(node): int(pages) for node, pages in re.findall(r" N(\d+)=(\d+)", line)}

    def memsluice(arguments: str, status: int = 0) -> str:
        result = module.run(f"memsluice {arguments}", check=False, cwd="/")
        assert result.status == status, result.stdout + result.stderr
        return result.stdout + result.stderr

    try:
        where = filled("configured.slice", 16)
        # The heap around it has holes; Placement.BasePagesLieByWeight counts exactly.
        assert set(where) == {1, 2} and abs(where[1] - 3 * where[2]) < 100, where
        assert "channels 1:3,2:1, granule 4.0 KiB" in memsluice("tenant show /configured.slice")
        memsluice("tenant set /by-hand.slice --tiering off --channels 3,2:0")
        where = filled("by-hand.slice", 8)
        assert set(where) == {3}, where
        refused = memsluice("tenant set /by-hand.slice --channels 9 --tiering on", status=2)
        assert "a node among them has no memory" in refused
        text = memsluice("tenant show /by-hand.slice")
        assert "tiering off" in text and "channels 3:1,2:0, granule 2.0 MiB" in text
        memsluice("tenant set /by-hand.slice --channels none")
        where = filled("by-hand.slice", 8)
        assert set(where) == {0}, where
    finally:
        daemon.kill()
        daemon.wait(timeout=PATIENCE_SECONDS, check=False)
        module.run(f"echo {before} > {HUGE_PAGES}; rmdir {cgroups}")
