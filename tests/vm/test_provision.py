# SPDX-License-Identifier: GPL-2.0
"""memsluice provision on a machine, and the machine booted with what it has written."""

import dataclasses
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Booted
from testbed import machines
from testbed.vm import Vm

pytestmark = [pytest.mark.machine("provision"), pytest.mark.kernels("6.12", "backports")]

MIB = 1 << 20
OUTPUT = "/root/channels"
# All of node 1, which keeps its id; what are whole blocks of node 2; two in the node with the CPUs.
WISH = "--channels 2 --range 0x40000000+256M --range 0x50000000+128M --host 1G"
CHANNELS = {
    0x60000000: (512 * MIB, 1),
    0x80000000: (128 * MIB, 3),
    0x40000000: (256 * MIB, 4),
    0x50000000: (128 * MIB, 5),
}


def provision(vm: Vm, arguments: str = "") -> Any:
    return json.loads(vm.run(f"memsluice provision --json {arguments}").stdout)


def claims(report: Any, address: int) -> dict[str, str]:
    """What each source says of an address."""
    for found in report["evidence"]["ranges"]:
        if found["start"] <= address < found["start"] + found["bytes"]:
            return {claim["source"]: claim["says"] for claim in found["claims"]}
    return {}


def conflicts(report: Any) -> list[str]:
    found = [conflict for r in report["evidence"]["ranges"] for conflict in r["conflicts"]]
    return found + report["evidence"]["conflicts"]


def total_kib(vm: Vm) -> int:
    return int(re.findall(r"MemTotal: *(\d+)", vm.run("cat /proc/meminfo").stdout)[0])


def test_evidence_of_a_machine(vm: Vm) -> None:
    report = provision(vm)
    assert conflicts(report) == []
    assert report["plan"] is None
    said = claims(report, 0x50000000)
    assert said.pop("SMBIOS 19").startswith("array ")
    assert said == {
        "e820": "System RAM",
        "SRAT": "domain 0",
        "/proc/iomem": "System RAM",
        "kernel": "node 0",
    }
    channels = report["proposals"]["channels"]
    assert [channel["source"] for channel in channels] == ["SRAT: domain 1", "SRAT: domain 2"]
    assert [claims(report, c["ranges"][0]["start"])["kernel"] for c in channels] == [
        "node 1",
        "node 2",
    ]
    host = {claim["source"] for claim in report["evidence"]["host"]}
    assert {"HMAT", "SMBIOS 17", "EDAC", "ADXL"} <= host


def test_without_write_nothing_is_written(vm: Vm) -> None:
    vm.run("rm -rf /tmp/dry && mkdir /tmp/dry")
    assert "Nothing has been written" in vm.run(
        f"memsluice provision {WISH}", cwd="/tmp/dry"
    ).stdout
    assert vm.run("ls -A /tmp/dry").stdout == ""


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("--range 0x20000000+1G --node 1 --host 1G", "host: would keep "),
        ("--range 0x50000000+64M", "multiples of 128 MiB"),
        ("--range 0x50000000+1T", "is no RAM"),
        ("--node 7", "no such node has memory"),
        ("--channels 3", "the evidence shows 2 channels"),
    ],
)
def test_what_would_not_work_is_refused(vm: Vm, wish: str, message: str) -> None:
    result = vm.run(f"memsluice provision {wish} --write /tmp/refused", check=False)
    assert result.status == 5 and message in result.stderr
    assert vm.run("ls /tmp/refused", check=False).status != 0


def test_grub_hands_on_what_the_kernel_is_to_read(vm: Vm, tmp_path: Path) -> None:
    """The shell of grub-mkconfig takes two backslashes away, and GRUB's own the third."""
    grub = provision(vm, WISH)["plan"]["grub"]
    script = tmp_path / "memsluice.cfg"
    script.write_text(grub)
    command = f'. {script} && printf %s "$GRUB_CMDLINE_LINUX"'
    in_grub_cfg = subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout
    assert "\\$" in in_grub_cfg
    arguments = provision(vm, WISH)["plan"]["kernel_arguments"]
    assert in_grub_cfg.replace("\\$", "$").split() == arguments


@pytest.fixture
def provisioned(vm: Vm, booted: Booted, kernel: str | None) -> Iterator[tuple[Any, int, Vm]]:
    """The plan, how many KiB the machine had, and the machine booted with what was written."""
    vm.run(f"rm -rf {OUTPUT}")
    plan = provision(vm, f"{WISH} --write {OUTPUT}")["plan"]
    arguments = vm.get(f"{OUTPUT}/kernel-arguments").decode().split()
    archive = vm.get(f"{OUTPUT}/memsluice-srat.cpio")
    channels = vm.get(f"{OUTPUT}/channels.toml")
    before_kib = total_kib(vm)
    description = machines.load("provision").only_vm()
    booted.stop()
    description = dataclasses.replace(
        description, kernel_arguments=(*description.kernel_arguments, *arguments)
    )
    with Vm(description, kernel, archive) as again:
        again.put(channels, "/etc/memsluice/channels.toml")
        yield plan, before_kib, again
        assert again.kernel_reports() == []


def test_the_kernel_boots_with_what_is_written(provisioned: tuple[Any, int, Vm]) -> None:
    plan, before_kib, vm = provisioned
    channels = {channel["start"]: channel for channel in plan["channels"]}
    assert {start: (c["bytes"], c["node"]) for start, c in channels.items()} == CHANNELS
    assert channels[0x60000000]["read_mib_per_s"] == 10000
    assert channels[0x40000000]["read_mib_per_s"] is None

    assert "Table Upgrade: override [SRAT" in vm.run("dmesg").stdout
    assert vm.run("cat /sys/devices/system/node/possible").stdout.strip() == "0-5"
    assert vm.run("cat /sys/devices/system/node/has_memory").stdout.strip() == "0,2"
    withheld_kib = sum(channel["bytes"] for channel in channels.values()) >> 10
    # What described the pages of the withheld memory has become free.
    gone_kib = before_kib - total_kib(vm)
    assert 0.9 * withheld_kib < gone_kib <= withheld_kib

    report = provision(vm)
    assert conflicts(report) == []
    for start, channel in channels.items():
        said = claims(report, start)
        assert said["command line"].startswith("memmap=")
        assert said["SRAT"] == f"domain {channel['node']}"
        assert "/proc/iomem" not in said and "kernel" not in said
    assert claims(report, 0x30000000)["kernel"] == "node 0"

    # Whoever wants the same once more gets the same, and the table that it needs.
    ranges = " ".join(f"--range {start:#x}+{c['bytes']}" for start, c in channels.items())
    again = provision(vm, f"{ranges} --host 1G")["plan"]
    assert {c["start"]: (c["bytes"], c["node"]) for c in again["channels"]} == CHANNELS
    assert again["srat_oem_revision"] == plan["srat_oem_revision"] + 1
