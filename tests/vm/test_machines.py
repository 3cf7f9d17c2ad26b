# SPDX-License-Identifier: GPL-2.0
"""Machine descriptions: what is wrong in one is named."""

from pathlib import Path

import pytest
from testbed import machines
from testbed.errors import TestbedError

GOOD = """
description = "x"
[[vm]]
[[vm.node]]
size_mib = 512
cpus = 2
latency_ns = 100
bandwidth_mib_per_s = 20000
[[vm.node]]
size_mib = 1024
latency_ns = 250
bandwidth_mib_per_s = 10000
[vm.traffic]
plugin = true
arguments = ["cache-ways=8"]
"""


def parse(folder: Path, text: str) -> machines.Machine:
    path = folder / "some.toml"
    path.write_text(text)
    return machines.parse(path)


def test_all_descriptions_are_good() -> None:
    assert {"plain", "two-tier", "two-tier-traffic"} <= set(machines.names())
    for name in machines.names():
        assert machines.load(name).description


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    (vm,) = parse(tmp_path, GOOD).vms
    assert vm.name == vm.machine == "some"
    assert vm.nodes == (
        machines.Node(512, 2, 100, 20000, False),
        machines.Node(1024, 0, 250, 10000, False),
    )
    assert vm.traffic == machines.Traffic(1, ("cache-ways=8",))
    assert vm.cpus == 2 and vm.has_tiers and vm.init_on_alloc and not vm.counts_instructions


def test_several_vms_have_names_of_their_own(tmp_path: Path) -> None:
    plain = "[[vm]]\n[[vm.node]]\nsize_mib = 512\ncpus = 1\n"
    machine = parse(tmp_path, 'description = "x"\n' + plain + plain)
    assert [vm.name for vm in machine.vms] == ["some", "some-1"]
    with pytest.raises(TestbedError, match="some has 2 VMs"):
        machine.only_vm()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("size_mib = 512", "size_mib = 0", "vm[0].node[0].size_mib: must be greater than 0"),
        ("size_mib = 512", "size_mib = 511", "vm[0].node[0].size_mib: must be a multiple of 2"),
        ("size_mib = 512", 'size_mib = "512M"', "vm[0].node[0].size_mib: must be a whole number"),
        ("size_mib = 512", "", "vm[0].node[0].size_mib: is missing"),
        ("size_mib = 1024", "size = 1\nsize_mib = 1024", "vm[0].node[1].size: is not a key"),
        ("[[vm]]", "[[vm]]\ncpu = 2", "vm[0].cpu: is not a key"),
        ("[[vm]]", "colour = 2\n[[vm]]", "colour: is not a key"),
        ("[[vm]]", '[[vm]]\nkernel = "2.4"', "vm[0].kernel: 2.4 is not one of"),
        ("[[vm]]", "[[vm]]\nkernel_arguments = [1]", "vm[0].kernel_arguments: must be a list of"),
        ("cpus = 2", "cpus = -1", "vm[0].node[0].cpus: must not be negative"),
        ("cpus = 2", "", "vm[0].node[0].cpus: must be greater than 0"),
        ("latency_ns = 100", "", "vm[0].node[0].latency_ns: and bandwidth_mib_per_s go together"),
        (
            "latency_ns = 250\nbandwidth_mib_per_s = 10000",
            "",
            "vm[0].node: latency_ns must be given for all nodes or for none",
        ),
        ("[[vm]]", "[[vm]]\ncounts_instructions = true", "vm[0].counts_instructions: needs"),
        ("plugin = true", "", "vm[0].traffic.plugin: is missing"),
        ("plugin = true", "plugin = true\nfile_mib = 3", "vm[0].traffic.file_mib: must be a power"),
        ('description = "x"', "", "description: is missing"),
        ("[vm.traffic]", "[[vm.dsa]]\n[vm.traffic]", "vm[0].dsa[0].node: is missing"),
        ("[vm.traffic]", "[[vm.dsa]]\nnode = -1\n[vm.traffic]", "vm[0].dsa[0].node: must not be"),
        ("[vm.traffic]", "[[vm.dsa]]\nnode = 2\n[vm.traffic]", "vm[0].dsa.node: there are 2 nodes"),
        ("[[vm]]", "[[vm]", "some.toml: "),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(TestbedError) as caught:
        parse(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(str(tmp_path / "some.toml"))
    assert message in str(caught.value)


def test_unknown_machine_names_those_that_exist() -> None:
    with pytest.raises(TestbedError, match="no machine named other; there are: .*two-tier"):
        machines.load("other")
