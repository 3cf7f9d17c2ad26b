# SPDX-License-Identifier: GPL-2.0
"""Virtual machines with several memory tiers, for tests and for people."""
