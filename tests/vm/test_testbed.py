# SPDX-License-Identifier: GPL-2.0
"""The test bed itself."""

import hashlib
import os
import re
import signal
import time
import warnings
from typing import Any

import pytest
from testbed import machines, qemu
from testbed.agent import CommandFailed, CommandTimeout
from testbed.errors import TestbedError
from testbed.vm import Vm, VmDied, connect

pytestmark = pytest.mark.machine("two-tier")
MEGABYTE = 1 << 20


def test_status_and_streams_are_the_commands_own(vm: Vm) -> None:
    result = vm.run("echo out; echo error >&2; exit 7", check=False)
    assert (result.status, result.stdout, result.stderr) == (7, "out\n", "error\n")
    with pytest.raises(CommandFailed, match="exit 3.*status 3\n.*some words"):
        vm.run("echo some words; exit 3")


def test_a_signal_shows_as_a_negative_status(vm: Vm) -> None:
    assert vm.run("kill -SEGV $$", check=False).status == -signal.SIGSEGV


def test_a_program_that_is_not_there(vm: Vm) -> None:
    result = vm.run(["/no/such/program"], check=False)
    assert result.status == 127
    assert "/no/such/program: No such file" in result.stderr


def test_environment_folder_and_user(vm: Vm) -> None:
    script = 'echo "$WORD $(pwd) $(id -u) $(id -G)"'
    result = vm.run(script, environment={"WORD": "a b"}, cwd="/tmp", user_id=65534)
    assert result.stdout == "a b /tmp 65534 65534\n"


def test_arguments_are_passed_as_they_are(vm: Vm) -> None:
    arguments = ["", "a b", "$HOME", "'\"", "ä"]
    assert vm.run(["printf", "<%s>", *arguments]).stdout == "<><a b><$HOME><'\"><ä>"


def test_megabytes_pass_in_both_directions_at_once(vm: Vm) -> None:
    data = os.urandom(4 * MEGABYTE)
    started = vm.start("cat; echo done >&2")
    started.write(data)
    started.close_stdin()
    assert started.wait(120).stderr == "done\n"
    assert started.stdout_bytes == data


def test_input_that_nobody_reads_does_not_block(vm: Vm) -> None:
    assert vm.run("exit 5", stdin=bytes(2 * MEGABYTE), check=False).status == 5
    result = vm.run("exec <&-; sleep 1; echo still here", stdin=bytes(2 * MEGABYTE))
    assert result.stdout == "still here\n"


def test_standard_input_ends(vm: Vm) -> None:
    assert vm.run("wc -c", stdin=b"12345").stdout == "5\n"
    assert vm.run("wc -c").stdout == "0\n"


def test_commands_run_side_by_side(vm: Vm) -> None:
    # Each waits for the next one to start: only together can they end.
    vm.run("rm -f /tmp/side-*")
    script = "touch /tmp/side-$0; until [ -e /tmp/side-$1 ]; do sleep 0.1; done; echo $0"
    started = [vm.start(["sh", "-c", script, str(i), str((i + 1) % 4)]) for i in range(4)]
    assert [command.wait(60).stdout for command in started] == ["0\n", "1\n", "2\n", "3\n"]


def test_kill_ends_a_command_and_its_children(vm: Vm) -> None:
    started = vm.start("sleep 1234 & sleep 1234; echo not reached")
    vm.agent.wait_for(lambda: False, 0.5)
    started.kill(signal.SIGTERM)
    assert started.wait(30).status == -signal.SIGTERM
    assert vm.run("pgrep -fx 'sleep 1234'", check=False).status == 1


def test_a_command_that_takes_too_long_is_killed(vm: Vm) -> None:
    with pytest.raises(CommandTimeout, match="(?s)sleep 4321.*not done after 1 s.*so far"):
        vm.run("echo so far; sleep 4321", timeout=1)
    vm.run("until ! pgrep -fx 'sleep 4321'; do sleep 0.1; done", timeout=30)


def test_a_process_left_in_the_background_does_not_hold_the_command(vm: Vm) -> None:
    result = vm.run("sleep 60 & echo started", timeout=30)
    assert result.stdout == "started\n"
    vm.run("pkill -x sleep")


def test_files_come_and_go_unchanged(vm: Vm) -> None:
    data = os.urandom(3 * MEGABYTE)
    vm.put(data, "/tmp/new folder/file", mode=0o755)
    assert vm.run(["stat", "-c", "%a %s", "/tmp/new folder/file"]).stdout == f"755 {len(data)}\n"
    assert vm.run(["md5sum", "/tmp/new folder/file"]).stdout.split()[0] == (
        hashlib.md5(data).hexdigest()
    )
    assert vm.get("/tmp/new folder/file") == data


def test_a_terminal_is_one_and_has_the_size_it_is_given(vm: Vm) -> None:
    shell = vm.start(["sh"], terminal=True)
    shell.resize(33, 111)
    shell.write(b"test -t 0 && stty size; exit 9\n")
    result = shell.wait(30)
    assert result.status == 9
    assert "33 111" in result.stdout


def test_a_second_way_into_a_running_machine(vm: Vm) -> None:
    agent = connect(vm.directory.name)
    command = agent.start(["hostname"])
    assert command.wait(30).stdout == "memsluice\n"


def test_nodes_and_tiers_are_as_described(vm: Vm) -> None:
    described = vm.description.nodes
    for i, node in enumerate(described):
        total = vm.run(f"awk '/MemTotal/ {{print $4}}' /sys/devices/system/node/node{i}/meminfo")
        # The kernel keeps a part for itself.
        assert 0.85 * node.size_mib < int(total.stdout) / 1024 <= node.size_mib
        cpus = vm.run(f"ls -d /sys/devices/system/node/node{i}/cpu[0-9]*", check=False).stdout
        assert len(cpus.splitlines()) == node.cpus
        access = f"/sys/devices/system/node/node{i}/access0/initiators"
        values = vm.run(f"cat {access}/read_latency {access}/read_bandwidth").stdout.split()
        assert [int(value) for value in values] == [node.latency_ns, node.bandwidth_mib_per_s]
    tiers = vm.run("cat /sys/devices/virtual/memory_tiering/memory_tier*/nodelist").stdout.split()
    assert sorted(tiers) == ["0", "1"]
    log = vm.run("dmesg").stdout
    assert "Demotion targets for Node 0: preferred: 1" in log


def test_cgroups_and_tracing_are_mounted(vm: Vm) -> None:
    controllers = vm.run("cat /sys/fs/cgroup/cgroup.subtree_control").stdout.split()
    assert set(controllers) >= {"cpuset", "cpu", "io", "memory"}
    vm.run("test -d /sys/kernel/debug/sched && test -e /sys/kernel/tracing/trace")


def test_boot_leaves_the_fast_node_free(vm: Vm) -> None:
    free = vm.run("awk '/MemFree/ {print $4}' /sys/devices/system/node/node0/meminfo").stdout
    assert int(free) / 1024 > 0.75 * vm.description.nodes[0].size_mib


def test_what_the_kernel_reports_is_seen_once(vm: Vm) -> None:
    assert vm.kernel_reports() == []
    vm.run("echo 'WARNING: CPU: 0 PID: 1 at some/file.c:1 some_function' > /dev/kmsg")
    (report,) = vm.kernel_reports()
    assert "some_function" in report
    assert vm.kernel_reports() == []


def test_qmp_commands_and_errors(vm: Vm) -> None:
    assert vm.qmp.execute("query-status")["status"] == "running"
    with pytest.raises(Exception, match="no-such-command"):
        vm.qmp.execute("no-such-command")
    seen = len(vm.qmp.events)
    vm.qmp.execute("stop")
    vm.qmp.execute("cont")
    assert vm.qmp.wait_event("RESUME", timeout=10, since=seen)


def test_the_death_of_a_machine_ends_what_waits_for_it_at_once(vm: Vm) -> None:
    other = Vm(machines.load("plain").only_vm())
    assert other.directory != vm.directory
    command = other.start("sleep 1000")
    began = time.monotonic()
    other.qmp.execute("quit")
    with pytest.raises(VmDied, match="QEMU ended with status 0"):
        command.wait(60)
    assert time.monotonic() - began < 10
    with pytest.raises(VmDied):
        other.run("true")
    other.stop()
    assert not other.alive
    with pytest.raises(TestbedError, match="no machine plain.* runs here"):
        connect(other.directory.name)


def test_a_panic_is_told_with_the_end_of_the_log() -> None:
    other = Vm(machines.load("plain").only_vm())
    with pytest.raises(VmDied, match="(?s)sysrq triggered crash"):
        other.run("echo c > /proc/sysrq-trigger")
    assert any("Kernel panic" in report for report in other.kernel_reports())
    other.stop()


def boots_that_die(monkeypatch: pytest.MonkeyPatch, last_words: str, dead: int) -> list[int]:
    """The first DEAD boots end with LAST_WORDS on the console; the list grows with each boot."""
    boots: list[int] = []
    real = qemu.command_line

    def command_line(description: machines.VmDescription, *others: Any) -> list[str]:
        boots.append(len(boots))
        if len(boots) > dead:
            return real(description, *others)
        return ["sh", "-c", 'echo "$0" > console.log', f"[    2.091810] {last_words}"]

    monkeypatch.setattr(qemu, "command_line", command_line)
    return boots


def test_a_boot_that_dies_of_the_emulator_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    boots = boots_that_die(monkeypatch, "Oops: int3: 0000 [#1] SMP NOPTI", 1)
    with pytest.warns(UserWarning, match="plain: QEMU ran old code"):
        booted_again = Vm(machines.load("plain").only_vm())
    assert booted_again.run("echo well").stdout == "well\n"
    assert booted_again.kernel_reports() == []
    booted_again.stop()
    assert len(boots) == 2


@pytest.mark.parametrize(
    ("last_words", "tried"),
    [("Oops: int3: 0000 [#1] SMP NOPTI", 3), ("BUG: unable to handle page fault", 1)],
)
def test_a_boot_is_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch, last_words: str, tried: int
) -> None:
    boots = boots_that_die(monkeypatch, last_words, 100)
    with warnings.catch_warnings(record=True), pytest.raises(VmDied, match=re.escape(last_words)):
        Vm(machines.load("plain").only_vm())
    assert len(boots) == tried
