# SPDX-License-Identifier: GPL-2.0
"""A guest in which memsluice is installed as README.md says, with Debian's kernel and DKMS."""

import os
import re
import shutil
import subprocess
import uuid
from pathlib import Path

from . import guest_root
from .apt import Apt, Package, host_release, make_tree
from .errors import TestbedError
from .kernels import Kernel
from .paths import BUILD, GUEST_ROOT, GUEST_SOURCES, INSTALLED_ROOT, RELEASE, locked

BASE = BUILD / "installed-base"
AGENT_UNIT = GUEST_SOURCES / "testbed-agent.service"
KERNEL_PACKAGES = ("linux-image-amd64", "linux-headers-amd64")
# Debian 12's own kernel is too old for the module.
KERNEL_SUITES = {"bookworm": "bookworm-backports"}
KEPT_DRIVERS = ("block", "char", "cxl", "dax", "dma", "virtio")
PROGRAMS = ("daemon/memsluiced", "tools/memsluice/memsluice")


def ensure() -> Kernel:
    """Installs what is built now into a fresh copy of the packages. Return: the kernel to boot."""
    release = host_release()
    suite = KERNEL_SUITES.get(release, release)
    kernel = Kernel("installed", suite, KERNEL_PACKAGES, INSTALLED_ROOT)
    packages = guest_root.entries(GUEST_SOURCES / "installed-packages") + _libraries()

    def plan() -> tuple[Apt, list[Package]]:
        apt = Apt(release, (suite,) if suite != release else ())
        apt.update()
        return apt, apt.plan(packages + [f"{name}/{suite}" for name in KERNEL_PACKAGES])

    make_tree(BASE, (release, suite, packages, KEPT_DRIVERS), plan, _finish)
    with locked(INSTALLED_ROOT.name):
        shutil.rmtree(INSTALLED_ROOT, ignore_errors=True)
        # Links: installing adds files and replaces some, but writes into none.
        subprocess.run(["cp", "-al", BASE, INSTALLED_ROOT], check=True)
        _install_agent()
        _install_memsluice(kernel)
    return kernel


def _libraries() -> list[str]:
    """The packages of the libraries that our programs need, as dpkg-shlibdeps would find them."""
    missing = [program for program in PROGRAMS if not (RELEASE / program).exists()]
    if missing:
        raise TestbedError(f"not built: {', '.join(missing)}; do: cmake --build --preset release")
    output = subprocess.run(
        ["ldd", *(RELEASE / program for program in PROGRAMS)], capture_output=True, text=True
    ).stdout
    names = sorted({Path(path).name for path in re.findall(r"=> (/\S+)", output)})
    owners = subprocess.run(
        ["dpkg-query", "-S", *(f"*/{name}" for name in names)], capture_output=True, text=True
    ).stdout
    return sorted({line.split(":", 1)[0] for line in owners.splitlines()})


def _finish(root: Path, packages: list[Package]) -> None:
    guest_root.make_accounts(root)
    # With an identity, this is no first boot, which would ask questions.
    (root / "etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")
    (root / "etc/hostname").write_text("installed\n")
    versions = [
        package.name.removeprefix("linux-image-")
        for package in packages
        if re.match(r"linux-image-\d", package.name)
    ]
    (root / "kernel-installed").write_text(f"{versions[0]}\n")
    _drop_drivers(root / "usr/lib/modules" / versions[0] / "kernel")
    subprocess.run(["depmod", "-b", root, versions[0]], check=True)


def _drop_drivers(modules: Path) -> None:
    """Drivers of what an emulated machine has not got: depmod and udev would take minutes."""
    shutil.rmtree(modules / "sound")
    for drivers in (modules / "drivers").iterdir():
        if drivers.name not in KEPT_DRIVERS:
            shutil.rmtree(drivers)


def _install_agent() -> None:
    agent = Path("usr/local/lib/testbed/agent")
    (INSTALLED_ROOT / agent).parent.mkdir(parents=True)
    shutil.copy2(GUEST_ROOT / agent, INSTALLED_ROOT / agent)
    units = INSTALLED_ROOT / "etc/systemd/system"
    shutil.copy(AGENT_UNIT, units)
    wanted = units / "sysinit.target.wants"
    wanted.mkdir(parents=True, exist_ok=True)
    (wanted / AGENT_UNIT.name).symlink_to(f"../{AGENT_UNIT.name}")


def _install_memsluice(kernel: Kernel) -> None:
    _run(["cmake", "--install", RELEASE], os.environ | {"DESTDIR": str(INSTALLED_ROOT)})
    sources = next(INSTALLED_ROOT.glob("usr/src/memsluice-*"))
    name = sources.name.replace("-", "/")
    run(["dkms", "install", name, "-k", kernel.version])


def run(command: list[str], stdin: bytes = b"") -> str:
    """Runs a command in the root, but on the host: in the guest, emulated, it takes ten times as
    long. Return: what it has printed.
    """
    script = (
        'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec env -i LC_ALL=C '
        'PATH=/usr/sbin:/usr/bin chroot "$0" "$@"'
    )
    inside = ["unshare", "-m", "sh", "-c", script, INSTALLED_ROOT, *command]
    return _run(inside, dict(os.environ), stdin)


def _run(command: list[str | Path], environment: dict[str, str], stdin: bytes = b"") -> str:
    result = subprocess.run(
        command,
        env=environment,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = result.stdout.decode(errors="replace")
    if result.returncode:
        logs = INSTALLED_ROOT.glob("var/lib/dkms/*/*/build/*.log")
        texts = [output, *(log.read_text() for log in logs)]
        raise TestbedError(f"{' '.join(map(str, command))} failed:\n" + "\n".join(texts))
    return output
