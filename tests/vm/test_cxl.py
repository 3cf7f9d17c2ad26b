# SPDX-License-Identifier: GPL-2.0
"""CXL memory devices as channels: a smoke test.

No process gets memory on them: QEMU emulates each access to it as one to a device, and has ended by
SIGSEGV when stacks and heaps lay there.
"""

import json
from collections.abc import Iterator

import pytest
from test_module import module as module  # a fixture
from testbed.daemon import PATIENCE_SECONDS, start_daemon
from testbed.kernels import DEBIAN_KERNELS
from testbed.vm import Vm

pytestmark = [pytest.mark.machine("cxl"), pytest.mark.kernels(*DEBIAN_KERNELS)]

# Makes a region of volatile memory in each window, of the device that is behind its host bridge:
# what does not belong there is refused. From regions come DAX devices, from these nodes.
MAKE_REGIONS = """
modprobe -a cxl_acpi cxl_pci cxl_mem dax_cxl device_dax kmem || exit 1
cd /sys/bus/cxl/devices
make_region() {
  region=$(cat "$1/create_ram_region")
  echo "$region" > "$1/create_ram_region" || return 1
  size=$(($(cat "$1/size")))
  echo 256 > "$region/interleave_granularity"
  echo 1 > "$region/interleave_ways"
  echo "$size" > "$region/size"
  for path in endpoint*/decoder*.0; do
    decoder=${path#*/}
    [ $(($(cat "$decoder/dpa_size"))) = 0 ] || continue
    echo ram > "$decoder/mode"
    echo "$size" > "$decoder/dpa_size"
    if echo "$decoder" > "$region/target0"; then
      echo 1 > "$region/commit" || return 1
      echo "$region" > /sys/bus/cxl/drivers/cxl_region/bind
      return
    fi
    echo 0 > "$decoder/dpa_size"
  done
  return 1
}
for window in decoder0.*; do
  make_region "$window" || exit 2
done
"""
@pytest.fixture
def nodes(module: Vm) -> Iterator[list[int]]:
    """The nodes that CXL windows have become, online."""
    if not module.run("ls /sys/bus/dax/devices 2> /dev/null", check=False).stdout:
        module.run(MAKE_REGIONS)
    online = "cat /sys/devices/system/node/has_memory"
    assert module.agent.wait_for(lambda: module.run(online).stdout == "0-2\n", 60)
    yield [1, 2]


def test_each_window_is_a_channel(module: Vm, nodes: list[int]) -> None:
    daemon = start_daemon(module, "")

    def memsluice(arguments: str) -> str:
        return module.run(f"memsluice {arguments}", cwd="/").stdout

    try:
        for node in nodes:
            memsluice(f"channel add cxl{node} --node {node} --group cxl")
        channels = json.loads(memsluice("channel list --json"))["channels"]
        assert [channel["node"] for channel in channels] == nodes
        assert {channel["group"] for channel in channels} == {"cxl"}
        assert all(channel["movable_blocks"] == channel["blocks"] == 2 for channel in channels)

        for node in nodes:
            lines = json.loads(memsluice(f"census --node {node} --json"))["census"]
            assert sum(line["pages"]["free"] for line in lines) > 0

        for node in nodes:
            assert f"cxl{node}: gone" in memsluice(f"channel remove cxl{node}")
        assert module.run("cat /sys/devices/system/node/has_memory").stdout == "0-2\n"
    finally:
        daemon.kill()
        daemon.wait(timeout=PATIENCE_SECONDS, check=False)
