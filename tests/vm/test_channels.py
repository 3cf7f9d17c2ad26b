# SPDX-License-Identifier: GPL-2.0
"""Channels that come and go: the Channels tests of tests/vm/module, and the command."""

import re

import pytest
from test_module import NAMES, run_in_guest
from test_module import module as module  # a fixture
from testbed.daemon import PATIENCE_SECONDS, start_daemon
from testbed.kernels import DEBIAN_KERNELS, DEFAULT
from testbed.vm import Vm

pytestmark = [pytest.mark.machine("withheld"), pytest.mark.kernels(*DEBIAN_KERNELS)]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("Channels.")])
def test_channels(module: Vm, name: str) -> None:
    run_in_guest(module, name)


def withheld(vm: Vm) -> list[tuple[int, int]]:
    """Start and length in MiB of what the kernel's command line withholds."""
    words = re.findall(r"memmap=(\d+)M\$(\d+)M", vm.run("cat /proc/cmdline").stdout)
    return [(int(start), int(length)) for length, start in words]


@pytest.mark.kernels(DEFAULT)
def test_channels_by_command(module: Vm) -> None:
    def memsluice(arguments: str, status: int = 0) -> str:
        result = module.run(f"memsluice {arguments}", check=False, cwd="/")
        assert result.status == status, result.stdout + result.stderr
        return result.stdout + result.stderr

    (start, length), (second, _) = withheld(module)
    memory = f"--start {start << 20:#x} --length {length}M"
    daemon = start_daemon(module, "")
    try:
        assert memsluice(f"channel add ch1 {memory} --group dram") == "channel ch1: node 1\n"
        assert "overlaps with a channel" in memsluice(f"channel add other {memory}", 5)
        assert "node 3 has memory already" in memsluice(
            f"channel add other --start {second << 20:#x} --length 128M --node 3", 5
        )
        assert "is in use" in memsluice("channel add other --start 0x8000000 --length 128M", 5)
        assert "whole memory blocks" in memsluice(
            f"channel add other --start {(second + 1) << 20:#x} --length 128M", 5
        )
        assert "was not possible at boot" in memsluice(
            f"channel add other --start {second << 20:#x} --length 128M --node 77", 5
        )
        assert memsluice("channel add there --node 3") == "channel there: node 3\n"
        table = memsluice("channel list")
        assert re.search(r"ch1 +dram +1 +online .* 2/2 +2 +module\n", table), table
        assert "is no channel" in memsluice("channel remove nobody", 4)

        module.run("mkdir -p /sys/fs/cgroup/on-ch1.slice")
        memsluice("tenant set /on-ch1.slice --tiering off --channels 1")
        assert "among the channels of /on-ch1.slice" in memsluice("channel remove ch1", 5)
        memsluice("tenant set /on-ch1.slice --channels none")

        # The next daemon finds what is there.
        daemon.kill()
        daemon.wait(timeout=PATIENCE_SECONDS, check=False)
        daemon = start_daemon(module, "")
        assert memsluice("channel list") == table
        removed = memsluice("channel remove ch1")
        assert re.fullmatch(r"channel ch1: gone, .* moved off node 1\n", removed), removed
        assert "there" in memsluice("channel remove there")
        assert memsluice("channel list") == "no channel\n"
        assert module.run("cat /sys/devices/system/node/has_memory").stdout == "0,3\n"
    finally:
        daemon.kill()
        daemon.wait(timeout=PATIENCE_SECONDS, check=False)
        module.run("rmdir /sys/fs/cgroup/on-ch1.slice", check=False)
