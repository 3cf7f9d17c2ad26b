# SPDX-License-Identifier: GPL-2.0
"""The daemon in a guest."""

from .agent import Command
from .errors import TestbedError
from .vm import Vm

CONFIG = "/etc/memsluice/memsluiced.toml"
PATIENCE_SECONDS = 60


def start_daemon(vm: Vm, config: str) -> Command:
    """Returns when it listens."""
    vm.run("mkdir -p /run/memsluice /etc/memsluice")
    vm.put(config.encode(), CONFIG)
    daemon = vm.start(["memsluiced", "--config", CONFIG])
    vm.agent.wait_for(
        lambda: "listens at" in daemon.stderr or daemon.status is not None, PATIENCE_SECONDS
    )
    if "listens at" not in daemon.stderr or daemon.status is not None:
        raise TestbedError(f"memsluiced does not listen: {daemon.stderr}")
    return daemon
