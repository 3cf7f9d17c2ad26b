# SPDX-License-Identifier: GPL-2.0
"""memsluice as an administrator meets it: installed, started, used, stopped, removed.

The tests go through this in their order, on one machine that was installed before it booted.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from testbed import installed_root
from testbed.paths import INSTALLED_ROOT, RELEASE
from testbed.vm import Vm

pytestmark = pytest.mark.machine("installed")
PATIENCE_S = 500  # for systemd, on an emulated CPU
TENANT = "/system.slice/tenant.service"


def answer(vm: Vm, command: str) -> Any:
    return json.loads(vm.run(f"memsluice {command} --json").stdout)


def main_process(vm: Vm) -> str:
    return vm.run("systemctl show --property MainPID --value memsluiced").stdout.strip()


def built_modules() -> list[Path]:
    return list(INSTALLED_ROOT.glob("usr/lib/modules/*/updates/dkms/memsluice*"))


def test_the_system_is_up_and_well(vm: Vm) -> None:
    vm.run("systemctl is-system-running --wait", timeout=PATIENCE_S)


def test_dkms_has_built_the_modules_for_this_kernel(vm: Vm) -> None:
    status = installed_root.run(["dkms", "status", "memsluice"])
    assert f"{vm.kernel.version}, x86_64: installed" in status
    for module in ("memsluice", "memsluice_dsa"):
        file = vm.run(f"modinfo --field filename {module}").stdout
        assert file.startswith(f"/lib/modules/{vm.kernel.version}/updates/dkms/{module}.ko")


def test_every_page_of_the_manual_is_there(vm: Vm) -> None:
    for page in ("memsluice.1", "memsluiced.8", "memsluiced.toml.5"):
        name, section = page.rsplit(".", 1)
        vm.run(["man", "--where", section, name])


def test_the_service_is_ready_when_systemctl_returns(vm: Vm) -> None:
    vm.run("systemctl start memsluiced")
    assert vm.run("systemctl is-active memsluiced").stdout == "active\n"
    status = answer(vm, "status")
    assert status["module"]["loaded"]
    assert [node["tier"] for node in status["nodes"]] == [0, 1]


def test_udev_lets_everybody_open_the_device(vm: Vm) -> None:
    assert vm.run("stat --format '%F %a' /dev/memsluice").stdout == "character special file 666\n"


def test_doctor_finds_no_error(vm: Vm) -> None:
    findings = answer(vm, "doctor")["findings"]
    assert findings
    assert [finding for finding in findings if finding["level"] == "error"] == []


def test_a_service_becomes_a_tenant(vm: Vm) -> None:
    vm.run("systemd-run --unit tenant --property MemoryAccounting=yes sleep infinity")
    vm.run(f"memsluice tenant set {TENANT} --tiering on --fast-limit 64M")
    (tenant,) = answer(vm, "tenant list")["tenants"]
    assert tenant["cgroup"] == TENANT
    assert tenant["policy"]["fast_limit_bytes"] == 64 << 20


def test_anybody_may_look_and_only_root_may_change(vm: Vm) -> None:
    nobody = 65534
    vm.run("memsluice status", user_id=nobody, cwd="/")
    denied = vm.run(f"memsluice tenant clear {TENANT}", user_id=nobody, cwd="/", check=False)
    assert denied.status == 3
    assert len(answer(vm, "tenant list")["tenants"]) == 1


def test_pages_move_on_command(vm: Vm) -> None:
    vm.run(f"memsluice migrate --tenant {TENANT} --from 0 --to 1")
    (request,) = answer(vm, "request list")["requests"]
    assert request["state"] == "done"
    assert request["moved_pages"] > 0


def test_a_killed_daemon_comes_back_to_the_same_tenants(vm: Vm) -> None:
    killed = main_process(vm)
    vm.run(f"kill -9 {killed}")
    vm.run(
        f'while state=$(systemctl is-active memsluiced); pid=$(systemctl show -p MainPID --value '
        f'memsluiced); [ "$state" != active ] || [ "$pid" = {killed} ]; do sleep 0.2; done',
        timeout=60,
    )
    (tenant,) = answer(vm, "tenant list")["tenants"]
    assert (tenant["cgroup"], tenant["origin"]) == (TENANT, "module")
    assert tenant["policy"]["fast_limit_bytes"] == 64 << 20


def test_the_service_may_count_and_write_metrics(vm: Vm) -> None:
    """Within the unit's sandbox: BPF, and the collector's directory."""
    directory = "/var/lib/prometheus/node-exporter"
    config = f'[counters]\nlost_time = true\n[metrics]\ntextfile = "{directory}/memsluice.prom"\n'
    vm.run(f"mkdir -p {directory}")
    vm.put(config.encode(), "/etc/memsluice/conf.d/counters.toml")
    vm.run("systemctl restart memsluiced")
    log = vm.run("journalctl -u memsluiced --output cat").stdout
    assert "the time that tenants lose is counted" in log, log
    assert "memsluice_tenant_lost_seconds_count" in vm.run("memsluice metrics").stdout
    vm.run(f"while ! grep -q module_loaded {directory}/memsluice.prom; do sleep 0.1; done")
    vm.run("rm /etc/memsluice/conf.d/counters.toml; systemctl reload memsluiced")
    assert vm.run(f"ls {directory}").stdout == ""


def test_a_wrong_configuration_is_refused_and_changes_nothing(vm: Vm) -> None:
    vm.put(b"[api]\nsokcet = 1\n", "/etc/memsluice/conf.d/wrong.toml")
    checked = vm.run("memsluiced --check-config", check=False)
    assert checked.status == 2
    assert "wrong.toml:2" in checked.stdout and "sokcet" in checked.stdout
    running = main_process(vm)
    vm.run("systemctl reload memsluiced")
    assert main_process(vm) == running
    assert len(answer(vm, "tenant list")["tenants"]) == 1
    vm.run("rm /etc/memsluice/conf.d/wrong.toml")


def test_the_tenant_goes_with_its_service(vm: Vm) -> None:
    vm.run("systemctl stop tenant")
    assert answer(vm, "tenant list")["tenants"] == []


def test_everything_can_be_removed(vm: Vm) -> None:
    vm.run("systemctl stop memsluiced")
    vm.run("modprobe --remove memsluice")
    assert vm.run("test -e /dev/memsluice", check=False).status == 1
    version = vm.run("memsluice --version").stdout.split()[-1]
    vm.stop()
    assert built_modules()
    installed_root.run(["dkms", "remove", f"memsluice/{version}", "--all"])
    assert not built_modules()
    manifest = (RELEASE / "install_manifest.txt").read_bytes()
    installed_root.run(["xargs", "rm", "-f"], stdin=manifest)
    for program in ("usr/bin/memsluice", "usr/sbin/memsluiced"):
        assert not (INSTALLED_ROOT / program).exists()
