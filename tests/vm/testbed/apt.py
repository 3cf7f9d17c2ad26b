# SPDX-License-Identifier: GPL-2.0
"""A private apt: package lists beside the host's own, with nothing installed."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from . import host
from .errors import TestbedError
from .paths import CACHE, locked

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEBS = CACHE / "debs"
MERGED_USR = ("bin", "sbin", "lib", "lib64")


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    file: str


def host_mirrors() -> dict[str, str]:
    """The URL of Debian, and of its security updates if the host's apt has them, by label."""
    targets = subprocess.run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(ORIGIN) $(LABEL) $(REPO_URI)",
            "Created-By: Packages",
        ],
        capture_output=True,
        text=True,
    ).stdout
    urls: dict[str, str] = {}
    for line in targets.splitlines():
        origin, label, url = line.split(" ", 2)
        if origin == "Debian" and label in ("Debian", "Debian-Security"):
            urls.setdefault(label, url)
    if "Debian" not in urls:
        raise TestbedError(
            "apt knows no Debian mirror here; name one in /etc/apt/sources.list, run apt-get "
            "update, then the same command again"
        )
    return urls


def host_release() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=", 1)[1].strip('"')
    raise TestbedError("/etc/os-release has no VERSION_CODENAME; the test bed needs Debian")


class Apt:
    """The packages of one Debian release, chosen as on a machine that has none."""

    def __init__(self, release: str, extra_suites: tuple[str, ...] = ()) -> None:
        self._suites = " ".join([release, *extra_suites])
        self._security = f"{release}-security"
        self._state = CACHE / "-".join(["apt", release, *extra_suites])

    def update(self) -> None:
        """Fetches the package lists and verifies their signatures."""
        host.require_packages(["debian-archive-keyring", "ca-certificates"])
        for directory in ("state/lists/partial", "cache/archives/partial", "sources.list.d"):
            (self._state / directory).mkdir(parents=True, exist_ok=True)
        (self._state / "status").write_text("")
        (self._state / "apt.conf").write_text(self._configuration())
        (self._state / "sources.list.d/debian.sources").write_text(self._sources())
        self._apt_get("update")

    def plan(self, names: list[str], suite: str = "") -> list[Package]:
        """The packages that installing NAMES brings, in the versions apt prefers (from SUITE)."""
        target = ["-t", suite] if suite else []
        output = self._apt_get("--print-uris", *target, "install", *names)
        return [_parse_uri(line) for line in output.splitlines() if line.startswith("'")]

    def download(self, packages: list[Package]) -> list[Path]:
        """Brings the packages into the cache; apt checks each against the signed lists."""
        missing = [package for package in packages if not (DEBS / package.file).exists()]
        if missing:
            print(f"downloading {len(missing)} Debian packages", flush=True)
            # Moved only when all of them are whole: an interrupted download leaves half a file.
            fresh = self._state / "partial"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            DEBS.mkdir(exist_ok=True)
            self._apt_get("download", *(f"{p.name}={p.version}" for p in missing), cwd=fresh)
            for file in fresh.iterdir():
                file.rename(DEBS / file.name)
        return [DEBS / package.file for package in packages]

    def _sources(self) -> str:
        suites = {"Debian": self._suites, "Debian-Security": self._security}
        return "\n".join(
            f"Types: deb\nURIs: {url}\nSuites: {suites[label]}\nComponents: main\n"
            f"Signed-By: {KEYRING}\n"
            for label, url in host_mirrors().items()
        )

    def _configuration(self) -> str:
        # The host's apt.conf.d still applies (Dir::Etc::Parts is untouched): proxies stand there.
        directories = {
            "Dir::State": self._state / "state",
            "Dir::State::status": self._state / "status",
            "Dir::Cache": self._state / "cache",
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": self._state / "sources.list.d",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::TrustedParts": "/dev/null",
        }
        settings = "".join(f'{key} "{value}";\n' for key, value in directories.items())
        return settings + (
            'APT::Architecture "amd64";\n'
            'APT::Architectures { "amd64"; };\n'
            'APT::Install-Recommends "false";\n'
            'APT::Sandbox::User "root";\n'  # _apt may not be allowed into the build folder
            'Acquire::Languages "none";\n'
            'Acquire::Retries "3";\n'
        )

    def _apt_get(self, *arguments: str, cwd: Path | None = None) -> str:
        environment = os.environ | {"APT_CONFIG": str(self._state / "apt.conf"), "LC_ALL": "C"}
        command = ["apt-get", "-qq", *arguments]
        result = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)
        if result.returncode or "W: Failed to fetch" in result.stderr:
            raise TestbedError(
                f"{' '.join(command[:6])} failed:\n{result.stderr.strip()}\n"
                "Check that the host reaches its Debian mirror (apt-get update), then run the same "
                "command again: what was downloaded is kept."
            )
        return result.stdout


def _parse_uri(line: str) -> Package:
    file = line.split()[1]
    match = re.fullmatch(r"([^_]+)_([^_]+)_[^_]+\.deb", file)
    if not match:
        raise TestbedError(f"apt-get names a package file that cannot be read: {line}")
    return Package(match[1], unquote(match[2]), file)


def make_tree(
    target: Path,
    wanted: object,
    plan: Callable[[], tuple[Apt, list[Package]]],
    finish: Callable[[Path, list[Package]], None],
    update: bool = False,
) -> Path:
    """Keeps TARGET an unpacked tree of the planned packages, made again when WANTED changes.

    With UPDATE, also when Debian has newer packages. Otherwise a tree that is there costs no
    call to apt and none to the network.
    """
    stamp = target / "stamp"
    digest = hashlib.sha256(repr(wanted).encode()).hexdigest()

    def ready() -> bool:
        return stamp.exists() and stamp.read_text().splitlines()[0] == digest

    if ready() and not update:
        return target
    with locked(target.name):
        if ready() and not update:
            return target
        apt, packages = plan()
        content = f"{digest}\n" + "".join(f"{p.name} {p.version}\n" for p in packages)
        if ready() and stamp.read_text() == content:
            return target
        archives = apt.download(packages)
        print(f"unpacking {len(archives)} packages into {target}", flush=True)
        fresh = target.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        _make_root(archives, fresh)
        finish(fresh, packages)
        (fresh / "stamp").write_text(content)
        # The old one stays until the next time: a running machine may be using it.
        old = target.with_suffix(".old")
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.rename(old)
        fresh.rename(target)
    return target


def _make_root(archives: list[Path], target: Path) -> None:
    for directory in MERGED_USR:
        (target / "usr" / directory).mkdir(parents=True)
        (target / directory).symlink_to(f"usr/{directory}")
    for directory in ("dev", "proc", "sys", "tmp"):
        (target / directory).mkdir()
    unpack(archives, target)
    # Packages leave this link to their maintainer scripts, which do not run here.
    awk = target / "usr/bin/awk"
    if not awk.is_symlink():
        awk.symlink_to("mawk")


def unpack(archives: list[Path], target: Path) -> None:
    for archive in archives:
        _unpack_one(archive, target)


def _unpack_one(archive: Path, target: Path) -> None:
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE
    ) as reader:
        command = ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", target]
        writer = subprocess.run(command, stdin=reader.stdout)
    if reader.returncode or writer.returncode:
        archive.unlink()
        raise TestbedError(f"{archive.name} is damaged and was removed; run the command again")
