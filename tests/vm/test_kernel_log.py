# SPDX-License-Identifier: GPL-2.0
"""What counts as a report of the kernel, and where one ends."""

from pathlib import Path

import pytest
from testbed.kernel_log import KernelLog, reports

WARNING = """\
[    5.100000] systemd: nothing to see
[    6.000000] ------------[ cut here ]------------
[    6.000001] WARNING: CPU: 0 PID: 99 at mm/migrate.c:123 migrate_pages+0x1/0x2
[    6.000002] Call Trace:
[    6.000003]  dump_stack+0x1
[    6.000004] ---[ end trace 0000000000000000 ]---
[    6.000005] later: fine
"""
LOCKDEP = """\
[    7.000000] ======================================================
[    7.000001] WARNING: possible circular locking dependency detected
[    7.000002] 6.12 Not tainted
[    7.000003] ------------------------------------------------------
[    7.000004] cat/1 is trying to acquire lock:
[    9.000000] later: fine
"""


def test_a_report_has_its_lines_and_no_others() -> None:
    (report,) = reports(WARNING)
    assert report.splitlines()[0].endswith("migrate_pages+0x1/0x2")
    assert report.splitlines()[-1].endswith("]---")
    (report,) = reports(LOCKDEP)
    assert "trying to acquire" in report and "later" not in report


@pytest.mark.parametrize(
    "message",
    [
        "BUG: KASAN: slab-use-after-free in f+0x1/0x2",
        "BUG: sleeping function called from invalid context at mm/x.c:1",
        "BUG: unable to handle page fault for address: 0000000000000010",
        "kernel BUG at mm/memory.c:1!",
        "Oops: general protection fault, probably for non-canonical address",
        "UBSAN: array-index-out-of-bounds in x.c:1:2",
        "INFO: task kworker/0:1:7 blocked for more than 120 seconds.",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "INFO: trying to register non-static key.",
        "kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
        "list_add corruption. next->prev should be prev",
        "Kernel panic - not syncing: out of memory",
    ],
)
def test_kinds_of_reports(message: str) -> None:
    assert reports(f"[   12.345678] {message}\n") == [f"[   12.345678] {message}"]
    assert reports(f"[   12.345678][  T123] {message}\n")


def test_what_programs_print_is_no_report() -> None:
    assert reports("WARNING: from a program\n[ 1.000000] a normal line\n") == []


def test_each_report_is_read_once_and_only_whole_lines(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "console")
    log.path.write_text("[ 1.000000] BUG: first\n[ 1.9")
    assert log.new_reports() == ["[ 1.000000] BUG: first"]
    log.path.write_text("[ 1.000000] BUG: first\n[ 1.900000] BUG: second\n")
    assert log.new_reports() == ["[ 1.900000] BUG: second"]
    assert log.new_reports() == []
