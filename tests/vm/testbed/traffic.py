# SPDX-License-Identifier: GPL-2.0
"""Memory traffic of a VM, counted by the plugin of tests/vm/traffic.

Read and steered from the host, so that nothing of it runs in the guest while it is counted. The
file's layout is known to memsluice-traffic alone.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .errors import TestbedError
from .paths import RELEASE
from .vm import Vm

TOOL = RELEASE / "tests/vm/traffic/memsluice-traffic"


@dataclass(frozen=True)
class NodeTraffic:
    """What went between one node and the cache."""

    read_bytes: int
    write_bytes: int

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.write_bytes

    def __sub__(self, before: "NodeTraffic") -> "NodeTraffic":
        return NodeTraffic(
            self.read_bytes - before.read_bytes, self.write_bytes - before.write_bytes
        )


class Traffic:
    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._node_blocks: dict[int, list[int]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Reads again which memory belongs to which node, to be called after it came or went."""
        report = json.loads(self._vm.run(["memsluice-traffic", "show", "--nodes", "--json"]).stdout)
        self._node_blocks = {node["node"]: node["blocks"] for node in report["nodes"]}

    def on(self) -> None:
        """Starts counting, and delaying if there are latencies or channels, with an empty cache."""
        self._tool("on")

    def off(self) -> None:
        """Writes the cache back, which is counted, and stops."""
        self._tool("off")

    def reset(self) -> None:
        self._tool("reset")

    def clear(self) -> None:
        """Removes all latencies and channels."""
        self._tool("clear")

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts from zero what the guest does inside."""
        self.reset()
        self.on()
        try:
            yield
        finally:
            self.off()

    def set_latency(self, node: int, nanoseconds: int) -> None:
        """Delays each miss in a node."""
        self._tool("latency", str(nanoseconds), *self._blocks(node))

    def set_channel(self, channel: int, node: int, bytes_per_second: int) -> None:
        """Puts a node behind a channel, which others may share, and sets the channel's rate."""
        rate = ["--bytes-per-second", str(bytes_per_second)]
        self._tool("channel", str(channel), *rate, *self._blocks(node))

    def show(self) -> dict[str, Any]:
        """All counters and settings, as `memsluice-traffic show --json` prints them."""
        return json.loads(self._tool("show", "--json"))

    def nodes(self) -> dict[int, NodeTraffic]:
        counted = {block["block"]: block for block in self.show()["blocks"]}
        return {node: _sum(counted, blocks) for node, blocks in self._node_blocks.items()}

    def _blocks(self, node: int) -> Sequence[str]:
        return ["--blocks", ",".join(map(str, self._node_blocks[node]))]

    def _tool(self, *arguments: str) -> str:
        command = [str(TOOL), "--file", str(self._vm.traffic_file), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise TestbedError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout


def _sum(counted: dict[int, dict[str, int]], blocks: list[int]) -> NodeTraffic:
    found = [counted[block] for block in blocks if block in counted]
    return NodeTraffic(
        sum(block["read_bytes"] for block in found), sum(block["write_bytes"] for block in found)
    )
