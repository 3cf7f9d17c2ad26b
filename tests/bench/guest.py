# SPDX-License-Identifier: GPL-2.0
from collections.abc import Iterator
from contextlib import contextmanager

from testbed import machines
from testbed.vm import Vm


@contextmanager
def booted(machine: str) -> Iterator[Vm]:
    """A guest whose kernel may complain of nothing."""
    with Vm(machines.load(machine).only_vm()) as vm:
        yield vm
        reports = vm.kernel_reports()
    if reports:
        raise RuntimeError("the guest's kernel reported:\n" + "\n".join(reports))
