# SPDX-License-Identifier: GPL-2.0
"""What the test bed needs from the host's own Debian packages."""

import os
import subprocess
from collections.abc import Iterable

from .errors import TestbedError

# In front of a command: it ends with its parent, however that ends.
ENDS_WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "KILL")


def installed(package: str) -> bool:
    query = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True
    )
    return query.stdout == "installed"


def require_packages(packages: Iterable[str]) -> None:
    """Installs what is missing with apt-get."""
    missing = [package for package in packages if not installed(package)]
    if not missing:
        return
    by_hand = f"apt-get update && apt-get install {' '.join(missing)}"
    if os.geteuid() != 0:
        raise TestbedError(f"missing packages; as root: {by_hand}")
    print(f"installing {' '.join(missing)}", flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    update = ["apt-get", "-qq", "update"]
    # A daemon that a package brings (redis-server) is for the guest, not for this host.
    policy = ["-o", "DPkg::Options::=--force-confold", "-o", "Dpkg::Use-Pty=0"]
    install = ["apt-get", "-qq", "install", "--no-install-recommends", "-y", *policy, *missing]
    for command in (update, install):
        # What it says where all goes well (debconf misses apt-utils) is of use to nobody.
        result = subprocess.run(command, env=environment, capture_output=True, text=True)
        if result.returncode:
            why = result.stderr.strip()
            failed = f"{why}\n{' '.join(command)} failed"
            raise TestbedError(f"{failed}; mend that, or by hand: {by_hand}")
