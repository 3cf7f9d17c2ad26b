# SPDX-License-Identifier: GPL-2.0
"""Tenants on channels: their tests of tests/vm/module, the command, and reloading."""

import re
import time

import pytest
from test_module import IN_GUEST, MODULE, NAMES, PLACED, RELOAD_SECONDS, run_in_guest
from test_module import module as module  # a fixture
from testbed.agent import Command
from testbed.daemon import PATIENCE_SECONDS, start_daemon
from testbed.kernels import DEBIAN_KERNELS, DEFAULT
from testbed.vm import Vm

pytestmark = [pytest.mark.machine("channels"), pytest.mark.kernels(*DEBIAN_KERNELS)]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(PLACED)])
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


# Fills so many MiB, writes to them when it is asked to, and ends when its input does.
KEEPER = """
import sys
memory = bytearray(b"x") * (int(sys.argv[1]) << 20)
print("filled", flush=True)
for line in sys.stdin:
    memory[::4096] = b"y" * (len(memory) // 4096)
    print("written", flush=True)
"""


def test_channels_change_while_the_tenant_runs(module: Vm) -> None:
    """By command: at once, when touched, and by the daemon alone."""
    cgroup = "/sys/fs/cgroup/moving.slice"
    module.run(f"mkdir -p {cgroup}; mkfifo /tmp/ask")
    daemon = start_daemon(module, "[channels]\nupkeep_s = 1\nupkeep_mib_per_s = 1024\n")

    def memsluice(arguments: str, status: int = 0) -> str:
        result = module.run(f"memsluice {arguments}", check=False, cwd="/", timeout=120)
        assert result.status == status, result.stdout + result.stderr
        return result.stdout + result.stderr

    def mib_by_node() -> dict[int, int]:
        text = module.run(f"grep ^anon {cgroup}/memory.numa_stat").stdout
        return {int(n): int(b) >> 20 for n, b in re.findall(r"N(\d+)=(\d+)", text)}

    def come_to(node: int) -> None:
        for _ in range(120):
            where = mib_by_node()
            # The kernel adds up its counts now and then only.
            if where[node] >= 38:
                return
            time.sleep(0.5)
        pytest.fail(f"the pages do not come to node {node}: {where}")

    try:
        memsluice("tenant set /moving.slice --channels 1")
        module.run(
            f"""
            (echo 0 > {cgroup}/cgroup.procs
             exec python3 -c '{KEEPER}' 40 < /tmp/ask > /tmp/answer) &
            exec 9> /tmp/ask
            sleep 1000000 9>&9 > /dev/null 2>&1 &
            echo $! > /tmp/ask-holder
            while ! grep -q filled /tmp/answer; do sleep 0.1; done
            """,
            timeout=60,
        )
        come_to(1)
        text = memsluice("tenant channels /moving.slice --add 2 --remove 1")
        assert "to its channels: done" in text and "on node" not in text, text
        come_to(2)
        refused = memsluice("tenant channels /moving.slice --remove 3", status=2)
        assert "node 3 is none of its channels\n  they are 2:1" in refused

        text = memsluice("tenant channels /moving.slice --set 3 --lazily")
        assert "to its channels, when touched: done" in text and "on node 2 " in text, text
        come_to(2)
        module.run("echo > /tmp/ask; while ! grep -q written /tmp/answer; do sleep 0.1; done")
        come_to(3)

        # Nobody asks: only new pages are to lie there, and the daemon brings the others.
        daemon.kill()
        daemon.wait(timeout=PATIENCE_SECONDS, check=False)
        daemon = start_daemon(module, "[channels]\nupkeep_s = 1\nupkeep_mib_per_s = 1024\n")
        memsluice("tenant set /moving.slice --channels 1")
        come_to(1)
        assert "1:1" in memsluice("tenant show /moving.slice")
    finally:
        daemon.kill()
        daemon.wait(timeout=PATIENCE_SECONDS, check=False)
        module.run(
            f"""
            kill $(cat /tmp/ask-holder) $(cat {cgroup}/cgroup.procs)
            while [ -n "$(cat {cgroup}/cgroup.procs)" ]; do sleep 0.1; done
            rmdir {cgroup}; rm -f /tmp/ask /tmp/answer
            """,
            check=False,
        )


def test_others_are_kept_off_exclusive_channels(module: Vm) -> None:
    """From a daemon to the next, and given back in the end."""
    root = "/sys/fs/cgroup"
    module.run(
        f"""
        mkdir -p {root}/own.slice {root}/beside.slice {root}/above.slice
        echo +memory > {root}/above.slice/cgroup.subtree_control
        mkdir -p {root}/above.slice/own {root}/above.slice/other
        echo +cpuset > {root}/cgroup.subtree_control
        echo 0-1 > {root}/beside.slice/cpuset.mems
        """
    )

    def run_daemon(config: str) -> Command:
        return start_daemon(module, "[channels]\nupkeep_s = 0\n" + config)

    def stop(daemon: Command) -> None:
        daemon.kill()
        daemon.wait(timeout=PATIENCE_SECONDS, check=False)

    def mems(cgroup: str, which: str = "cpuset.mems") -> str:
        """Nothing also where the daemon has yet to turn the controller on."""
        return module.run(f"cat {root}/{cgroup}/{which}", check=False).stdout.strip()

    def become(wanted: dict[str, str]) -> None:
        for _ in range(60):
            now = {cgroup: mems(cgroup) for cgroup in wanted}
            if now == wanted:
                return
            time.sleep(0.2)
        pytest.fail(f"{now}, not {wanted}")

    daemon = run_daemon('exclusive = "1,2"\n')
    try:
        for cgroup, channels in {"own.slice": "1", "above.slice/own": "2:1,1:0"}.items():
            module.run(f"memsluice tenant set /{cgroup} --channels {channels}", cwd="/")
        kept = {"own.slice": "0-1,3", "beside.slice": "0", "above.slice/other": "0,3"}
        become(kept)
        assert mems("above.slice/own", "cpuset.mems.effective") == "0-3"
        # What somebody changes is changed back, also by the next daemon, and new cgroups are told.
        stop(daemon)
        module.run(f"echo 1 > {root}/beside.slice/cpuset.mems; mkdir {root}/new.slice")
        daemon = run_daemon('exclusive = "1,2"\n')
        become(kept | {"beside.slice": "0,3", "new.slice": "0,3"})
        enter = f"echo $$ > {root}/new.slice/cgroup.procs"
        maps = module.run(f"{enter}; python3 -c '{FILLER}' 8").stdout
        assert " N0=" in maps and " N1=" not in maps and " N2=" not in maps
        module.run("memsluice tenant channels /own.slice --add 2", cwd="/")
        become({"own.slice": ""})
        stop(daemon)
        daemon = run_daemon("")
        become({"own.slice": "", "beside.slice": "1", "above.slice/other": "", "new.slice": ""})
    finally:
        stop(daemon)
        module.run(
            f"cd {root} && rmdir new.slice own.slice beside.slice above.slice/* above.slice",
            check=False,
        )
