# SPDX-License-Identifier: GPL-2.0
"""A private apt: Debian 13's package lists beside the host's, with nothing installed."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from . import host
from .errors import TestbedError
from .paths import CACHE

RELEASE = "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PUBLIC_MIRROR = "http://deb.debian.org/"
STATE = CACHE / "apt"
DEBS = CACHE / "debs"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    file: str


def host_mirrors() -> tuple[str, str]:
    """The URLs of Debian and of Debian's security updates that the host's apt uses."""
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
    ).stdout
    uris = {"Debian": PUBLIC_MIRROR + "debian/", "Debian-Security": PUBLIC_MIRROR + "debian-security/"}
    for line in reversed(targets.splitlines()):
        origin, label, uri = line.split(" ", 2)
        if origin == "Debian" and label in uris:
            uris[label] = uri
    return uris["Debian"], uris["Debian-Security"]


def sources() -> str:
    debian, security = host_mirrors()
    entries = [(debian, f"{RELEASE} {RELEASE}-backports"), (security, f"{RELEASE}-security")]
    return "\n".join(
        f"Types: deb\nURIs: {uri}\nSuites: {suites}\nComponents: main\nSigned-By: {KEYRING}\n"
        for uri, suites in entries
    )


def _configuration() -> str:
    # The host's apt.conf.d still applies (Dir::Etc::Parts is untouched): proxies stand there.
    directories = {
        "Dir::State": STATE / "state",
        "Dir::State::status": STATE / "status",
        "Dir::Cache": STATE / "cache",
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": STATE / "sources.list.d",
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


def _apt_get(*arguments: str, cwd: Path | None = None) -> str:
    environment = os.environ | {"APT_CONFIG": str(STATE / "apt.conf"), "LC_ALL": "C"}
    command = ["apt-get", "-qq", *arguments]
    result = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)
    if result.returncode or "W: Failed to fetch" in result.stderr:
        raise TestbedError(
            f"{' '.join(command[:6])} failed:\n{result.stderr.strip()}\n"
            "Check that the host reaches its Debian mirror (apt-get update), then run the same "
            "command again: what was downloaded is kept."
        )
    return result.stdout


def update() -> None:
    """Fetches the package lists and verifies their signatures."""
    host.require_packages(["debian-archive-keyring", "ca-certificates"])
    for directory in ("state/lists/partial", "cache/archives/partial", "sources.list.d"):
        (STATE / directory).mkdir(parents=True, exist_ok=True)
    (STATE / "status").write_text("")
    (STATE / "apt.conf").write_text(_configuration())
    (STATE / "sources.list.d/debian.sources").write_text(sources())
    _apt_get("update")


def plan(names: list[str], suite: str) -> list[Package]:
    """The packages that installing NAMES from SUITE would bring, in the versions apt prefers."""
    output = _apt_get("--print-uris", "-t", suite, "install", *names)
    return [_parse_uri(line) for line in output.splitlines() if line.startswith("'")]


def _parse_uri(line: str) -> Package:
    file = line.split()[1]
    match = re.fullmatch(r"([^_]+)_([^_]+)_[^_]+\.deb", file)
    if not match:
        raise TestbedError(f"apt-get names a package file that cannot be read: {line}")
    return Package(match[1], unquote(match[2]), file)


def download(packages: list[Package]) -> list[Path]:
    """Brings the packages into the cache; apt checks every file against the signed lists."""
    missing = [package for package in packages if not (DEBS / package.file).exists()]
    if missing:
        print(f"downloading {len(missing)} Debian packages", flush=True)
        # Moved only when all of them are whole: an interrupted download leaves half a file.
        fresh = CACHE / "debs.partial"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        DEBS.mkdir(exist_ok=True)
        _apt_get("download", *(f"{p.name}={p.version}" for p in missing), cwd=fresh)
        for file in fresh.iterdir():
            file.rename(DEBS / file.name)
    return [DEBS / package.file for package in packages]


def unpack(archives: list[Path], target: Path) -> None:
    """Unpacks without running maintainer scripts; links of the merged /usr are kept."""
    for archive in archives:
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE
        ) as reader:
            command = ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", target]
            writer = subprocess.run(command, stdin=reader.stdout)
        if reader.returncode or writer.returncode:
            archive.unlink()
            raise TestbedError(f"{archive.name} is damaged and was removed; run the command again")
