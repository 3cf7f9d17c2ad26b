# SPDX-License-Identifier: GPL-2.0
"""The command line of QEMU for a described VM."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import dsa
from .errors import TestbedError
from .host import ENDS_WITH_ITS_PARENT
from .kernels import Kernel
from .machines import VmDescription
from .paths import BUILD, GUEST_ROOT, MODULES, RELEASE, ROOT

PLUGIN = RELEASE / "tests/vm/traffic/libmemsluice-traffic.so"
TCG = ("-accel", "tcg,thread=multi", "-cpu", "max")
# Time is what the emulated CPU has executed: the same run takes the same time, to the instruction.
ICOUNT = ("-icount", "shift=0", "-accel", "tcg,thread=single", "-cpu", "max")
KVM = ("-accel", "kvm", "-cpu", "host")
# Tells the emulated devices what the guest maps.
IOMMU = ("-device", "intel-iommu,caching-mode=on")
PROBE_SECONDS = 20
KERNEL_ARGUMENTS = (
    "console=ttyS0 loglevel=5 panic=-1 oops=panic memhp_default_state=online_movable "
    # What a boot spends seconds on, emulated, and no test looks at.
    "cryptomgr.notests apparmor=0 "
    # On a busy host an emulated CPU may stand still for long: that is no fault of the kernel's.
    "tsc=reliable nowatchdog rcupdate.rcu_cpu_stall_timeout=120"
)


def binary() -> list[str]:
    library = ROOT / "usr/lib/x86_64-linux-gnu"
    loader = ROOT / "usr/lib64/ld-linux-x86-64.so.2"
    share = ROOT / "usr/share"
    return [
        *ENDS_WITH_ITS_PARENT,
        str(loader), "--library-path", str(library), str(ROOT / "usr/bin/qemu-system-x86_64"),
        "-L", str(share / "qemu"), "-L", str(share / "seabios"),
    ]  # fmt: skip


def environment() -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    return inherited | {"QEMU_MODULE_DIR": str(ROOT / "usr/lib/x86_64-linux-gnu/qemu")}


@dataclass(frozen=True)
class Files:
    """What belongs to one run of a VM. Sockets are inherited, so they have no names to clash."""

    directory: Path
    initramfs: Path
    agent_fd: int
    qmp_fd: int

    @property
    def console(self) -> Path:
        return self.directory / "console.log"

    @property
    def traffic(self) -> Path:
        return self.directory / "traffic"


def command_line(vm: VmDescription, kernel: Kernel, files: Files) -> list[str]:
    *accelerator, cpu = _accelerator(vm, kernel, files)
    return [
        *binary(),
        *accelerator, cpu + kernel.cpu_options + (",hypervisor=off" if vm.cxl else ""),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", _machine(vm),
        "-smp", str(vm.cpus),
        *(IOMMU if vm.iommu else ()),
        *_memory(vm, kernel),
        "-kernel", str(kernel.image()),
        "-initrd", str(files.initramfs),
        "-append", _kernel_arguments(vm, kernel),
        "-chardev", f"file,id=console,path={files.console}", "-serial", "chardev:console",
        "-device", "virtio-rng-pci",
        "-chardev", f"socket,id=qmp,fd={files.qmp_fd}",
        "-object", "monitor-qmp,id=qmp-monitor,chardev=qmp",
        *_agents(files),
        *_shares(vm, kernel),
        *_traffic(vm, files),
        *_dsa(vm),
        *_cxl(vm),
    ]  # fmt: skip


def _machine(vm: VmDescription) -> str:
    windows = [
        f"cxl-fmw.{i}.targets.0=cxl{i},cxl-fmw.{i}.size={device.size_mib}M"
        for i, device in enumerate(vm.cxl)
    ]
    return ",".join(["q35", *["hmat=on"] * vm.has_tiers, *["cxl=on"] * bool(vm.cxl), *windows])


def uses_kvm(command: Sequence[str]) -> bool:
    """Whether this command line runs the guest's code on the host's CPUs."""
    return KVM[1] in command


def _accelerator(vm: VmDescription, kernel: Kernel, files: Files) -> tuple[str, ...]:
    if vm.counts_instructions:
        return ICOUNT
    # Counting of traffic works on emulated CPUs only.
    return KVM if vm.traffic is None and kvm_works(kernel, files.initramfs) else TCG


def _kernel_arguments(vm: VmDescription, kernel: Kernel) -> str:
    return " ".join(
        [
            KERNEL_ARGUMENTS,
            f"init_on_alloc={int(vm.init_on_alloc)}",
            f"intel_iommu={'on' if vm.iommu else 'off'}",
            *_withheld(vm, kernel),
            *vm.kernel_arguments,
        ]
    )


def _sizes_mib(vm: VmDescription, kernel: Kernel) -> list[int]:
    sizes_mib = [node.size_mib for node in vm.nodes]
    sizes_mib[0] += kernel.own_mib
    return sizes_mib


def _withheld(vm: VmDescription, kernel: Kernel) -> Iterator[str]:
    """What keeps the kernel off the memory of some nodes. They lie one behind the other, from 0."""
    start_mib = 0
    for node, size_mib in zip(vm.nodes, _sizes_mib(vm, kernel), strict=True):
        if node.withheld:
            yield f"memmap={size_mib}M${start_mib}M"
        start_mib += size_mib


def _memory(vm: VmDescription, kernel: Kernel) -> Iterator[str]:
    sizes_mib = _sizes_mib(vm, kernel)
    yield from ("-m", f"{sum(sizes_mib)}M")
    first_cpu = 0
    for i, node in enumerate(vm.nodes):
        cpus = f",cpus={first_cpu}-{first_cpu + node.cpus - 1}" if node.cpus else ""
        first_cpu += node.cpus
        # Shared, so that another process can be a device or a counter of this memory.
        yield from ("-object", f"memory-backend-memfd,id=node{i},size={sizes_mib[i]}M,share=on")
        initiator = ",initiator=0" if vm.has_tiers else ""
        yield from ("-numa", f"node,nodeid={i},memdev=node{i}{cpus}{initiator}")
    for i, node in enumerate(vm.nodes):
        if node.latency_ns is None:
            continue
        target = f"hmat-lb,initiator=0,target={i},hierarchy=memory"
        yield from ("-numa", f"{target},data-type=access-latency,latency={node.latency_ns}")
        bandwidth = f"bandwidth={node.bandwidth_mib_per_s}M"
        yield from ("-numa", f"{target},data-type=access-bandwidth,{bandwidth}")


def _agents(files: Files) -> Iterator[str]:
    yield from ("-device", "virtio-serial-pci")
    yield from ("-chardev", f"socket,id=agent,fd={files.agent_fd}")
    yield from ("-device", "virtserialport,chardev=agent,name=memsluice.agent")
    # Relative to the run's folder: a socket's path has to be short.
    yield from ("-chardev", "socket,id=attach,path=attach,server=on,wait=off")
    yield from ("-device", "virtserialport,chardev=attach,name=memsluice.attach")


def _shares(vm: VmDescription, kernel: Kernel) -> Iterator[str]:
    if vm.installed:
        shares = {"root": kernel.tree}
    else:
        modules = MODULES / kernel.version
        shares = {
            "root": GUEST_ROOT,
            "kernel": kernel.modules,
            "release": RELEASE,
            "modules": modules,
        }
    for tag, directory in shares.items():
        directory.mkdir(parents=True, exist_ok=True)
        options = "security_model=none,readonly=on,multidevs=remap"
        yield from ("-fsdev", f"local,id={tag},path={directory},{options}")
        yield from ("-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}")


def _traffic(vm: VmDescription, files: Files) -> Iterator[str]:
    if vm.traffic is None:
        return
    if not PLUGIN.exists():
        raise TestbedError(
            f"{PLUGIN} is not built; do: cmake --preset release && cmake --build --preset release"
        )
    size = vm.traffic.file_mib << 20
    with files.traffic.open("wb") as file:
        file.truncate(size)
    yield from (
        "-plugin",
        ",".join([str(PLUGIN), f"counters={files.traffic}", *vm.traffic.arguments]),
    )
    backend = f"memory-backend-file,id=traffic,share=on,mem-path={files.traffic},size={size}"
    yield from ("-object", backend, "-device", "ivshmem-plain,memdev=traffic")


def _dsa(vm: VmDescription) -> Iterator[str]:
    """Each at a root bus of its node: that is how the guest learns where a device sits."""
    for i, device in enumerate(vm.dsa):
        bus = f"pxb-pcie,id=bus{i},bus=pcie.0,bus_nr={32 * (i + 1)},numa_node={device.node}"
        port = f"pcie-root-port,id=port{i},bus=bus{i},chassis={i + 1}"
        socket = {"type": "unix", "path": dsa.socket(i)}
        plugged = {"driver": "vfio-user-pci", "bus": f"port{i}", "socket": socket}
        yield from ("-device", bus, "-device", port, "-device", json.dumps(plugged))


def _cxl(vm: VmDescription) -> Iterator[str]:
    """Each behind a host bridge of its own, so that each window is one device's."""
    for i, device in enumerate(vm.cxl):
        backend = f"memory-backend-memfd,id=cxl-memory{i},size={device.size_mib}M,share=on"
        bridge = f"pxb-cxl,id=cxl{i},bus=pcie.0,bus_nr={32 * (i + 1)}"
        port = f"cxl-rp,id=cxl-port{i},bus=cxl{i},port=0,chassis=0,slot={i + 1}"
        memory = f"cxl-type3,bus=cxl-port{i},volatile-memdev=cxl-memory{i},id=cxl-device{i}"
        yield from ("-object", backend)
        yield from ("-device", bridge, "-device", port, "-device", memory)


def kvm_works(kernel: Kernel, initramfs: Path) -> bool:
    """Whether a guest boots with KVM: that /dev/kvm opens says little. Asked once per host boot."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    answer = BUILD / f"kvm-{kernel.version}"
    key, _, value = answer.read_text().partition(" ") if answer.exists() else ("", "", "")
    if key == boot_id:
        return value == "yes"
    works = _probe_kvm(kernel, initramfs)
    answer.write_text(f"{boot_id} {'yes' if works else 'no'}")
    return works


def _probe_kvm(kernel: Kernel, initramfs: Path) -> bool:
    command = [
        *binary(), *KVM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", "q35", "-smp", "2", "-m", "512M", "-serial", "stdio",
        "-kernel", str(kernel.image()), "-initrd", str(initramfs),
        "-append", "console=ttyS0 panic=-1 memsluice.probe",
    ]  # fmt: skip
    try:
        probe = subprocess.run(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return b"memsluice probe: it boots" in probe.stdout
