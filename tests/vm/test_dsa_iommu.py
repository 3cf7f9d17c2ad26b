# SPDX-License-Identifier: GPL-2.0
"""memsluice_dsa where an IOMMU stands between devices and memory: every copy is mapped."""

import pytest
from testbed.dsa import MEMMOVE, SUCCESS
from testbed.dsa_engine import DEADLINE_US, PATIENCE_SECONDS, SHORT_DEADLINE_US, Engine

pytestmark = pytest.mark.machine("dsa-iommu")


def test_what_is_mapped_is_copied(engine: Engine) -> None:
    engine.set("verify", 1)
    assert {queue["addresses"] for queue in engine.queues().values()} == {"mapped"}
    traced = engine.devices[0]
    traced.ask("trace", entries=100000)
    with engine.copying():
        pass
    moves = [entry for entry in traced.ask("read-trace") if entry["opcode"] == MEMMOVE]
    traced.ask("trace", entries=0)
    assert moves and {entry["status"] for entry in moves} == {SUCCESS}
    # The device is not told where memory is.
    memory = engine.addresses(0)
    assert not any(move["destination"] in block for move in moves for block in memory)
    assert (engine.count("failed_folios"), engine.count("differing_folios")) == (0, 0)


def test_what_is_late_stays_mapped_until_it_has_ended(engine: Engine) -> None:
    with engine.copying():
        engine.set("deadline_us", SHORT_DEADLINE_US)
        engine.hold()
        engine.wait_until(lambda: engine.states() == {"stuck"})
        engine.set("deadline_us", DEADLINE_US)
        engine.release()
        engine.wait_until(lambda: engine.states() == {"up"})
    assert (engine.quarantined(), engine.by_status(0x03)) == (0, 0)


def test_a_stuck_device_is_reset(engine: Engine) -> None:
    with engine.copying():
        engine.set("deadline_us", SHORT_DEADLINE_US)
        engine.hold()
        engine.wait_until(lambda: engine.states() == {"stuck"})
        engine.vm.run("accel-config disable-device dsa0 dsa1", timeout=PATIENCE_SECONDS)
    assert engine.queues() == {}
    assert engine.said("its device is reset")
