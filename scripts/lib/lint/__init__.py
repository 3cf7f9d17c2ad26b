# SPDX-License-Identifier: GPL-2.0
"""Checks of the sources that need no test run. Each returns its findings, one a line."""
