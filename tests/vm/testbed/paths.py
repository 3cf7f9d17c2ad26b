# SPDX-License-Identifier: GPL-2.0
"""Where the test bed reads and writes. Everything it writes lies below build/testbed."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
VM_TESTS = PROJECT / "tests/vm"
MACHINES = VM_TESTS / "machines"
GUEST_SOURCES = VM_TESTS / "guest"

RELEASE = PROJECT / "build/release"
BUILD = PROJECT / "build/testbed"
CACHE = BUILD / "cache"
ROOT = BUILD / "root"
GUEST_ROOT = BUILD / "guest-root"
INSTALLED_ROOT = BUILD / "installed-root"
MODULES = BUILD / "modules"
DEBUG_KERNEL = BUILD / "debug-kernel"
RUN = BUILD / "run"


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Holds build/testbed/NAME.lock, so that two commands do not build the same thing at once."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
