# SPDX-License-Identifier: GPL-2.0
"""memsluice_dsa: pages are copied by DSA, whatever the device does."""

import re

import pytest
from testbed.dsa import BATCH, MEMMOVE, MODULES, SUCCESS
from testbed.dsa_engine import (
    DEADLINE_US,
    DEVICES,
    KNOBS,
    KNOBS_OF_TESTS,
    PATIENCE_SECONDS,
    PROGRAM,
    QUEUES,
    SHORT_DEADLINE_US,
    Engine,
    configure_all,
)
from testbed.kernels import DEBIAN_KERNELS, DEFAULT
from testbed.vm import Vm

pytestmark = pytest.mark.machine("dsa")
# Where it matters how idxd resets devices and gives its queues away; the rest knows no kernel.
on_every_kernel = pytest.mark.kernels(*DEBIAN_KERNELS)
on_the_default_kernel = pytest.mark.kernels(DEFAULT)

# What a descriptor can fail with; 0x80: it was a write.
STATUSES = [
    *(0x03, 0x04, 0x10, 0x11, 0x12, 0x13, 0x16, 0x19, 0x1A, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x21),
    *(0x22, 0x83),
]
NO_RECORD = 0x1B


@on_every_kernel
def test_each_queue_shows_that_it_copies_before_it_is_used(engine: Engine) -> None:
    queues = engine.queues()
    assert set(queues) == {"wq0.0", "wq0.1", "wq1.0", "wq1.1"}
    for queue in queues.values():
        assert (queue["state"], queue["depth"], queue["max_batch"]) == ("up", "64", "128")
        assert queue["max_transfer_bytes"] == "2097152"
        # A page, and a batch of two.
        assert (queue["descriptors"], queue["batches"], queue["bytes"]) == ("2", "1", "12288")


@on_every_kernel
def test_all_is_copied_by_the_devices_of_the_destination(engine: Engine) -> None:
    engine.set("verify", 1)
    traced = engine.devices[0]
    traced.ask("trace", entries=100000)
    with engine.copying():
        pass
    entries = traced.ask("read-trace")
    traced.ask("trace", entries=0)
    assert {entry["opcode"] for entry in entries} >= {MEMMOVE, BATCH}
    assert {entry["status"] for entry in entries} == {SUCCESS}
    memory = engine.addresses(0)
    for entry in entries:
        if entry["opcode"] == MEMMOVE:
            assert any(entry["destination"] in block for block in memory), hex(entry["destination"])
    assert (engine.count("failed_folios"), engine.count("differing_folios")) == (0, 0)
    queues = engine.queues()
    bytes_by_device = [
        [int(queues[f"wq{device}.{queue}"]["bytes"]) for queue in range(QUEUES)]
        for device in range(DEVICES)
    ]
    for device in bytes_by_device:
        assert min(device) > 1 << 20
        # Balanced to a page in each call.
        assert max(device) - min(device) <= engine.count("calls") * 4096


@on_the_default_kernel
def test_every_status_costs_the_folios_it_is_about(engine: Engine) -> None:
    with engine.copying():
        for status in STATUSES:
            before = engine.by_status(status)
            # Not three in a row, after which a queue rests.
            engine.inject(do="status", status=status, opcode=MEMMOVE, skip=3, completed_bytes=512)
            engine.wait_until(lambda: engine.by_status(status) > before)  # noqa: B023
            engine.forget()
    assert engine.count("failed_folios") >= len(STATUSES)
    assert (engine.count("late_folios"), engine.states()) == (0, {"up"})
    assert engine.said("status 0x03, page fault")


@on_the_default_kernel
def test_a_batch_that_does_not_begin_fails_whole(engine: Engine) -> None:
    engine.inject(do="status", status=0x06, opcode=BATCH)
    with engine.copying():
        engine.wait_until(lambda: engine.by_status(0x06) > 0)
    assert engine.count("failed_folios") > 1


@on_the_default_kernel
def test_an_entry_of_a_batch_that_cannot_tell_is_not_believed(engine: Engine) -> None:
    """Its record cannot be written: all that is known is that the batch has failed."""
    with engine.copying():
        engine.set("least_bytes", 0)
        failed = engine.count("failed_folios")
        engine.inject(do="status", status=NO_RECORD, in_batch=True, every=40, count=8)
        engine.wait_until(lambda: engine.count("failed_folios") >= failed + 8)
    assert engine.count("late_folios") == 0


@on_the_default_kernel
def test_a_copy_that_never_tells_is_late_until_its_device_is_reset(engine: Engine) -> None:
    engine.set("deadline_us", SHORT_DEADLINE_US)
    engine.inject(do="status", status=NO_RECORD, opcode=MEMMOVE, in_batch=False)
    with engine.copying():
        engine.wait_until(lambda: engine.quarantined() == len(engine.devices))
        engine.vm.run("accel-config disable-device dsa0 dsa1", timeout=PATIENCE_SECONDS)
        assert engine.queues() == {}
    assert engine.said("its device is reset")


@on_the_default_kernel
def test_a_lost_interrupt_costs_time_and_nothing_else(engine: Engine) -> None:
    engine.set("spin_us", 0)
    engine.inject(do="drop-interrupt", count=0)
    with engine.copying():
        pass
    assert engine.count("slept") > 0
    assert (engine.count("failed_folios"), engine.states()) == (0, {"up"})


@on_the_default_kernel
def test_what_is_late_stays_out_of_use_until_it_has_ended(engine: Engine) -> None:
    with engine.copying():
        engine.set("deadline_us", SHORT_DEADLINE_US)
        engine.hold()
        engine.wait_until(lambda: "up" not in engine.states())
        assert engine.states() == {"stuck"}
        assert engine.quarantined() > 0
        assert "in use" in engine.vm.run("rmmod memsluice_dsa", check=False).stderr
        # They write now, where nobody looks any more.
        engine.set("deadline_us", DEADLINE_US)
        engine.release()
        engine.wait_until(lambda: engine.states() == {"up"})
        assert engine.quarantined() == 0
        calls = engine.count("calls")
        engine.wait_until(lambda: engine.count("calls") > calls)
    assert engine.count("late_folios") > 0
    assert engine.said("a copy did not end in time")


@on_every_kernel
def test_a_device_that_is_stuck_for_ever_is_reset_when_its_queue_is_disabled(
    engine: Engine,
) -> None:
    with engine.copying():
        engine.set("deadline_us", SHORT_DEADLINE_US)
        engine.hold()
        engine.wait_until(lambda: engine.states() == {"stuck"})
        engine.vm.run("accel-config disable-wq dsa0/wq0.0", timeout=PATIENCE_SECONDS)
        assert "wq0.0" not in engine.queues()
        engine.vm.run("accel-config disable-device dsa0 dsa1", timeout=PATIENCE_SECONDS)
        assert engine.queues() == {}
        engine.release()
        engine.set("deadline_us", DEADLINE_US)
        configure_all(engine.vm)
        calls = engine.count("calls")
        engine.wait_until(lambda: engine.count("calls") > calls)
    assert engine.states() == {"up"}
    assert engine.said("its device is reset")


@on_the_default_kernel
def test_a_queue_that_fails_again_and_again_rests_until_it_passes_its_test(engine: Engine) -> None:
    with engine.copying():
        engine.inject(do="status", status=0x20, count=0)
        engine.wait_until(lambda: engine.states() == {"resting"})
        declined = engine.count("declined_no_queue")
        engine.wait_until(lambda: engine.count("declined_no_queue") > declined)
        engine.forget()
        engine.wait_until(lambda: engine.states() == {"up"})
    assert engine.said("failed 3 times in a row")
    assert engine.said("works again")


@on_every_kernel
def test_queues_come_and_go_while_pages_are_copied(engine: Engine) -> None:
    with engine.copying():
        for _ in range(2):
            engine.vm.run("accel-config disable-device dsa0")
            engine.vm.run("accel-config disable-device dsa1")
            configure_all(engine.vm)
        engine.vm.run("rmmod memsluice_dsa")
        engine.vm.run(f"insmod {MODULES}/memsluice_dsa.ko {KNOBS_OF_TESTS}")
        engine.vm.run("accel-config disable-device dsa0 dsa1")
        configure_all(engine.vm)
        engine.wait_until(lambda: engine.count("calls") > 0)
    assert engine.states() == {"up"}


@on_every_kernel
def test_a_reset_that_nobody_announces_costs_one_deadline(engine: Engine) -> None:
    function = engine.vm.run("dirname $(readlink -f /sys/bus/dsa/devices/dsa0)").stdout.strip()
    with engine.copying():
        engine.set("deadline_us", SHORT_DEADLINE_US)
        engine.vm.run(f"echo 1 > {function}/reset")
        # Newer kernels take the queues away by themselves; older ones do not notice.
        engine.wait_until(
            lambda: all(
                queue["state"] == "stuck"
                for name, queue in engine.queues().items()
                if name.startswith("wq0")
            )
        )
        engine.set("deadline_us", DEADLINE_US)
        engine.vm.run("accel-config disable-device dsa0", check=False, timeout=PATIENCE_SECONDS)
        engine.vm.run("accel-config disable-device dsa1")
        configure_all(engine.vm)
        engine.wait_until(lambda: engine.states() == {"up"})
    assert set(engine.queues()) == {"wq0.0", "wq0.1", "wq1.0", "wq1.1"}


@on_the_default_kernel
def test_another_user_of_the_device_gets_his_turns(engine: Engine) -> None:
    engine.vm.run("accel-config disable-device dsa0 dsa1")
    configure_all(engine.vm, ["memsluice", "dmaengine"])
    engine.vm.run(f"insmod {MODULES}/memsluice_test_dma.ko")
    with engine.copying():
        for _ in range(5):
            calls = engine.count("calls")
            engine.vm.run("echo 512 > /sys/module/memsluice_test_dma/parameters/copy")
            engine.wait_until(lambda: engine.count("calls") > calls)  # noqa: B023
    engine.vm.run("rmmod memsluice_test_dma")
    assert (engine.count("failed_folios"), engine.states()) == (0, {"up"})


@on_the_default_kernel
def test_cpus_come_and_go_while_pages_are_copied(engine: Engine) -> None:
    with engine.copying():
        for online in (0, 1, 0, 1):
            engine.vm.run(f"echo {online} > /sys/devices/system/cpu/cpu1/online")
            calls = engine.count("calls")
            engine.wait_until(lambda: engine.count("calls") > calls)  # noqa: B023
    assert (engine.count("failed_folios"), engine.states()) == (0, {"up"})


@on_the_default_kernel
def test_small_lists_are_left_to_the_cpu(engine: Engine) -> None:
    engine.set("least_bytes", 1 << 30)
    bytes_before = engine.count("bytes")
    engine.vm.run(f"{PROGRAM} --gtest_filter='Copies.*'")
    assert engine.count("bytes") == bytes_before
    assert engine.count("declined_small") > 0


@on_the_default_kernel
def test_what_is_over_the_share_is_left_to_the_cpu(engine: Engine) -> None:
    with engine.copying(movers=2):
        engine.set("most_bytes", 1 << 16)
        engine.wait_until(lambda: engine.count("declined_share") > 0)
        calls = engine.count("calls")
        engine.wait_until(lambda: engine.count("calls") > calls)
    assert (engine.count("failed_folios"), engine.states()) == (0, {"up"})


@on_the_default_kernel
def test_where_dsa_begins_to_pay_is_measured(engine: Engine) -> None:
    assert engine.count("least_bytes") == 32768
    engine.vm.run("accel-config disable-device dsa0 dsa1")
    engine.set("least_bytes", "auto")
    configure_all(engine.vm)
    assert engine.vm.run(f"cat {KNOBS}/least_bytes").stdout == "auto\n"
    assert engine.count("least_bytes") in [4096 << i for i in range(7)]
    # Not only tested.
    assert all(int(queue["descriptors"]) > 20 for queue in engine.queues().values())


@on_the_default_kernel
def test_calls_and_failures_are_traced(engine: Engine) -> None:
    tracing = "/sys/kernel/tracing"
    engine.vm.run(
        f"""
        mountpoint -q {tracing} || mount -t tracefs tracefs {tracing}
        echo > {tracing}/trace
        echo 1 | tee {tracing}/events/memsluice/memsluice_dsa_call/enable \
          {tracing}/events/memsluice/memsluice_dsa_failure/enable
        """
    )
    engine.inject(do="status", status=0x20, opcode=MEMMOVE)
    with engine.copying():
        engine.wait_until(lambda: engine.by_status(0x20) > 0)
    traced = engine.vm.run(
        f"echo 0 > {tracing}/events/memsluice/enable; cat {tracing}/trace", timeout=PATIENCE_SECONDS
    ).stdout
    assert re.search(r"memsluice_dsa_failure: queue=wq\d\.\d status=0x20", traced)
    call = re.search(
        r"memsluice_dsa_call: queues=2 folios=(\d+) bytes=(\d+) failed=0 late=0", traced
    )
    assert call and int(call[2]) >= int(call[1]) * 4096


@on_the_default_kernel
def test_verify_finds_what_was_not_copied(engine: Engine) -> None:
    """A device that says it has copied what it has not."""
    engine.set("verify", 1)
    engine.inject(do="status", status=SUCCESS, opcode=MEMMOVE, completed_bytes=0)
    with engine.copying():
        engine.wait_until(lambda: engine.count("differing_folios") > 0)
    assert engine.said("differed from what they were copied from")


@on_the_default_kernel
def test_knobs_refuse_what_is_out_of_bounds(idxd: Vm) -> None:
    idxd.run(
        f"""
        grep -qw ^memsluice /proc/modules || insmod {MODULES}/memsluice.ko
        insmod {MODULES}/memsluice_dsa.ko
        """
    )
    bounds = {"deadline_us": (100, 10000000), "spin_us": (0, 10000), "least_bytes": (0, 1 << 30)}
    bounds["most_bytes"] = (1 << 16, 1 << 30)
    for knob, (least, most) in bounds.items():
        for good in (least, most):
            idxd.run(f"echo {good} > {KNOBS}/{knob}")
            assert idxd.run(f"cat {KNOBS}/{knob}").stdout == f"{good}\n"
        for bad in (least - 1, most + 1, "x"):
            refused = idxd.run(["bash", "-c", f"echo {bad} > {KNOBS}/{knob}"], check=False)
            assert "Invalid argument" in refused.stderr, (knob, bad)
    idxd.run("rmmod memsluice_dsa")
