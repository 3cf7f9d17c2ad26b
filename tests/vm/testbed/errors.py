# SPDX-License-Identifier: GPL-2.0
class TestbedError(Exception):
    """What went wrong and what to do, in words meant for the person at the terminal."""

    __test__ = False  # the name starts like a test class
