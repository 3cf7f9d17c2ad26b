# SPDX-License-Identifier: GPL-2.0
"""Machine descriptions: tests/vm/machines/NAME.toml. Every key is checked, none is ignored."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import kernels
from .errors import TestbedError
from .paths import MACHINES

PAGE_BLOCK_MIB = 2
MEMORY_BLOCK_MIB = 128
CXL_WINDOW_MIB = 256
BELOW_4_GIB_MIB = 2048  # of memory, all of which lies below the devices' addresses


@dataclass(frozen=True)
class Node:
    """A NUMA node. Latency and bandwidth are what the firmware says, not what the node does."""

    size_mib: int
    cpus: int
    latency_ns: int | None
    bandwidth_mib_per_s: int | None
    withheld: bool  # from the kernel, by its command line


@dataclass(frozen=True)
class Traffic:
    """Counting of memory traffic by the QEMU plugin of tests/vm/traffic."""

    file_mib: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Dsa:
    """An emulated DSA (tools/memsluice-dsa) that sits at a node."""

    node: int
    arguments: tuple[str, ...]  # of memsluice-dsa serve


@dataclass(frozen=True)
class Cxl:
    """A CXL memory device (type 3, volatile), with a window of its own in the physical memory."""

    size_mib: int


@dataclass(frozen=True)
class VmDescription:
    machine: str
    name: str
    kernel: str
    installed: bool  # memsluice is installed in it, and systemd runs it
    kernel_arguments: tuple[str, ...]
    init_on_alloc: bool
    iommu: bool  # translates the addresses that devices use
    counts_instructions: bool  # a nanosecond of its clock is an instruction of its only CPU
    nodes: tuple[Node, ...]
    traffic: Traffic | None
    dsa: tuple[Dsa, ...]
    cxl: tuple[Cxl, ...]

    @property
    def cpus(self) -> int:
        return sum(node.cpus for node in self.nodes)

    @property
    def has_tiers(self) -> bool:
        return self.nodes[0].latency_ns is not None


@dataclass(frozen=True)
class Machine:
    name: str
    description: str
    vms: tuple[VmDescription, ...]

    def only_vm(self) -> VmDescription:
        if len(self.vms) != 1:
            raise TestbedError(f"{self.name} has {len(self.vms)} VMs: name the one to boot")
        return self.vms[0]


def names() -> list[str]:
    return sorted(path.stem for path in MACHINES.glob("*.toml"))


def load(name: str) -> Machine:
    path = MACHINES / f"{name}.toml"
    if not path.exists():
        raise TestbedError(f"no machine named {name}; there are: {', '.join(names())}")
    return parse(path)


def parse(path: Path) -> Machine:
    try:
        content = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise TestbedError(f"{path}: {error}") from None
    table = _Table(path, "", content)
    description = table.take("description", str)
    vms = tuple(_vm(vm, path.stem, i) for i, vm in enumerate(table.tables("vm")))
    table.finish()
    if len({vm.name for vm in vms}) != len(vms):
        raise TestbedError(f"{path}: vm: two have the same name")
    return Machine(path.stem, description, vms)


_REQUIRED = object()


class _Table:
    """A TOML table whose keys are taken one by one; what is left at the end is unknown."""

    def __init__(self, path: Path, place: str, content: dict[str, Any]) -> None:
        self._path = path
        self._place = place
        self._content = dict(content)

    def wrong(self, key: str, what: str) -> TestbedError:
        return TestbedError(f"{self._path}: {self._place}{key}: {what}")

    def take(self, key: str, kind: type, default: Any = _REQUIRED) -> Any:
        if key not in self._content:
            if default is _REQUIRED:
                raise self.wrong(key, "is missing")
            return default
        value = self._content.pop(key)
        if type(value) is not kind:
            raise self.wrong(key, f"must be {_KINDS[kind]}, not {value!r}")
        return value

    def positive(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self.take(key, int, default)
        if value is not default and value <= 0:
            raise self.wrong(key, f"must be greater than 0, not {value}")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        value = self.take(key, list, [])
        if not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "must be a list of strings")
        return tuple(value)

    def table(self, key: str) -> "_Table | None":
        content = self.take(key, dict, None)
        return None if content is None else _Table(self._path, f"{self._place}{key}.", content)

    def tables(self, key: str, *, optional: bool = False) -> list["_Table"]:
        content = self.take(key, list, [] if optional else _REQUIRED)
        if not content and optional:
            return []
        if not content or not all(isinstance(item, dict) for item in content):
            raise self.wrong(key, f"must be one or more [[{key}]] tables")
        return [
            _Table(self._path, f"{self._place}{key}[{i}].", item) for i, item in enumerate(content)
        ]

    def finish(self) -> None:
        for key in self._content:
            raise self.wrong(key, "is not a key that is known here")


_KINDS = {
    int: "a whole number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def _vm(table: _Table, machine: str, number: int) -> VmDescription:
    kernel = table.take("kernel", str, kernels.DEFAULT)
    if kernel not in kernels.KERNELS:
        raise table.wrong("kernel", f"{kernel} is not one of: {', '.join(kernels.KERNELS)}")
    vm = VmDescription(
        machine=machine,
        name=table.take("name", str, f"{machine}-{number}" if number else machine),
        kernel=kernel,
        installed=table.take("installed", bool, False),
        kernel_arguments=table.strings("kernel_arguments"),
        init_on_alloc=table.take("init_on_alloc", bool, True),
        iommu=table.take("iommu", bool, False),
        counts_instructions=table.take("counts_instructions", bool, False),
        nodes=tuple(_node(node) for node in table.tables("node")),
        traffic=_traffic(table.table("traffic")),
        dsa=tuple(_dsa(dsa) for dsa in table.tables("dsa", optional=True)),
        cxl=tuple(_cxl(cxl) for cxl in table.tables("cxl", optional=True)),
    )
    table.finish()
    if vm.nodes[0].cpus == 0:
        raise table.wrong("node[0].cpus", "must be greater than 0: the first node boots")
    if vm.counts_instructions and vm.cpus != 1:
        raise table.wrong("counts_instructions", "needs a machine of one CPU")
    if any(dsa.node >= len(vm.nodes) for dsa in vm.dsa):
        raise table.wrong("dsa.node", f"there are {len(vm.nodes)} nodes, counted from 0")
    if any(node.withheld for node in vm.nodes):
        if sum(node.size_mib for node in vm.nodes) > BELOW_4_GIB_MIB:
            raise table.wrong("node.withheld", f"needs a machine of {BELOW_4_GIB_MIB} MiB at most")
        if any(node.size_mib % MEMORY_BLOCK_MIB for node in vm.nodes):
            raise table.wrong("node.withheld", f"needs sizes that {MEMORY_BLOCK_MIB} MiB divide")
        if vm.nodes[-1].withheld:
            raise table.wrong("node.withheld", "not the last: it holds the firmware's tables")
    if vm.cxl and vm.dsa:
        raise table.wrong("cxl", "and dsa do not go together: their buses have the same numbers")
    if len({node.latency_ns is None for node in vm.nodes}) == 2:
        raise table.wrong("node", "latency_ns must be given for all nodes or for none")
    return vm


def _node(table: _Table) -> Node:
    node = Node(
        size_mib=table.positive("size_mib"),
        cpus=table.take("cpus", int, 0),
        latency_ns=table.positive("latency_ns", None),
        bandwidth_mib_per_s=table.positive("bandwidth_mib_per_s", None),
        withheld=table.take("withheld", bool, False),
    )
    table.finish()
    if node.withheld and node.cpus:
        raise table.wrong("withheld", "a node with CPUs cannot be")
    if node.size_mib % PAGE_BLOCK_MIB:
        raise table.wrong(
            "size_mib", f"must be a multiple of {PAGE_BLOCK_MIB}, not {node.size_mib}"
        )
    if node.cpus < 0:
        raise table.wrong("cpus", f"must not be negative, not {node.cpus}")
    if (node.latency_ns is None) != (node.bandwidth_mib_per_s is None):
        raise table.wrong("latency_ns", "and bandwidth_mib_per_s go together")
    return node


def _dsa(table: _Table) -> Dsa:
    dsa = Dsa(node=table.take("node", int), arguments=table.strings("arguments"))
    table.finish()
    if dsa.node < 0:
        raise table.wrong("node", f"must not be negative, not {dsa.node}")
    return dsa


def _cxl(table: _Table) -> Cxl:
    cxl = Cxl(size_mib=table.positive("size_mib"))
    table.finish()
    if cxl.size_mib % CXL_WINDOW_MIB:
        raise table.wrong("size_mib", f"must be a multiple of {CXL_WINDOW_MIB}, as windows are")
    return cxl


def _traffic(table: _Table | None) -> Traffic | None:
    if table is None:
        return None
    file_mib = table.positive("file_mib", 1)
    if file_mib & (file_mib - 1):
        raise table.wrong("file_mib", f"must be a power of two, not {file_mib}")
    enabled = table.take("plugin", bool)
    arguments = table.strings("arguments")
    table.finish()
    return Traffic(file_mib, arguments) if enabled else None
