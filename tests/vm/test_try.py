# SPDX-License-Identifier: GPL-2.0
"""scripts/try as a newcomer runs it: from the build to a Redis whose hot pages move."""

import re
import subprocess

from testbed.paths import PROJECT


def test_hot_pages_of_a_redis_move_to_the_fast_node() -> None:
    done = subprocess.run(
        [PROJECT / "scripts/try"], capture_output=True, text=True, timeout=590, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    traffic = re.search(r"traffic from the fast node +([\d.]+) % +([\d.]+) %", done.stdout)
    pages = re.search(r"pages promoted (\d+), demoted (\d+)", done.stdout)
    assert traffic and pages, done.stdout
    without, with_memsluice = map(float, traffic.groups())
    # The popular keys lie on the slow node; nothing but their moving changes what serves them.
    assert with_memsluice > without + 10, done.stdout
    assert int(pages[1]) > 1000 and int(pages[2]) > 1000
    assert "all as written" in done.stdout
