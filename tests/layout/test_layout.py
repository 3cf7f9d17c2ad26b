# SPDX-License-Identifier: GPL-2.0
"""kernel/dsa/layout: what the module knows of idxd comes from BTF, and only from BTF that fits."""

import random
import re
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "kernel/dsa/layout"
INT, POINTER, ARRAY, STRUCT, ENUM, CONST, FUNCTION, PROTOTYPE = 1, 2, 3, 4, 6, 10, 12, 13
POINTER_BYTES = 8
FUZZ_ROUNDS = 300
SEED = 1

Member = tuple[str, int, int]  # name, type, offset in bytes


@dataclass
class Btf:
    """Writes BTF (Documentation/bpf/btf.rst), on top of BASE."""

    base: "Btf | None" = None
    types: bytearray = field(default_factory=bytearray)
    strings: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    count: int = 0

    def _string(self, text: str) -> int:
        at = len(self.strings) + (len(self.base.strings) if self.base else 0)
        self.strings += text.encode() + b"\0"
        return at

    def _add(self, name: str, kind: int, count: int, third: int, more: bytes = b"") -> int:
        self.types += struct.pack("<III", self._string(name), kind << 24 | count, third) + more
        self.count += 1
        return self.count + (self.base.count if self.base else 0)

    def integer(self, name: str, size: int) -> int:
        return self._add(name, INT, 0, size, struct.pack("<I", size * 8))

    def pointer(self, to: int) -> int:
        return self._add("", POINTER, 0, to)

    def array(self, of: int, length: int) -> int:
        return self._add("", ARRAY, 0, 0, struct.pack("<III", of, of, length))

    def structure(self, name: str, size: int, members: list[Member]) -> int:
        more = b"".join(struct.pack("<III", self._string(n), t, o * 8) for n, t, o in members)
        return self._add(name, STRUCT, len(members), size, more)

    def enumeration(self, name: str, values: dict[str, int]) -> int:
        more = b"".join(struct.pack("<Ii", self._string(n), v) for n, v in values.items())
        return self._add(name, ENUM, len(values) | 1 << 31, 4, more)

    def prototype(self, result: int, parameters: list[int]) -> int:
        more = b"".join(struct.pack("<II", 0, type_) for type_ in parameters)
        return self._add("", PROTOTYPE, len(parameters), result, more)

    def function(self, name: str, prototype: int) -> int:
        return self._add(name, FUNCTION, 0, prototype)

    def section(self) -> bytes:
        header = struct.pack("<HBBI", 0xEB9F, 1, 0, 24)
        header += struct.pack("<IIII", 0, len(self.types), len(self.types), len(self.strings))
        return header + bytes(self.types) + bytes(self.strings)


def _kernel() -> tuple[Btf, dict[str, int]]:
    btf = Btf()
    types = {
        name: btf.integer(name, size)
        for name, size in [("int", 4), ("unsigned int", 4), ("long", 8), ("char", 1), ("_Bool", 1)]
    }
    for name, size in [("device", 768), ("device_driver", 144), ("mutex", 32), ("percpu_ref", 16)]:
        types[name] = btf.structure(name, size, [])
    return btf, types


def _idxd(
    base: Btf,
    known: dict[str, int],
    drop: str = "",
    parameters: tuple[str, ...] = ("wq", "desc"),
) -> Btf:
    """As much of idxd as there has to be; without the member DROP."""
    btf = Btf(base)
    types = dict(known)
    for name, values in {
        "idxd_dev_type": {"IDXD_DEV_NONE": -1, "IDXD_DEV_WQ": 2},
        "idxd_type": {"IDXD_TYPE_DSA": 0},
        "idxd_wq_type": {"IDXD_WQT_NONE": 0, "IDXD_WQT_KERNEL": 1},
        "idxd_op_type": {"IDXD_OP_BLOCK": 0, "IDXD_OP_NONBLOCK": 1},
        "idxd_complete_type": {"IDXD_COMPLETE_NORMAL": 0, "IDXD_COMPLETE_ABORT": 1},
        "idxd_device_state": {"IDXD_DEV_ENABLED": 1},
        "idxd_wq_flag": {"WQ_FLAG_DEDICATED": 0},
    }.items():
        types[name] = btf.enumeration(name, values)
    void = btf.pointer(0)
    name = btf.array(types["char"], 129)

    def structure(what: str, size: int, members: list[Member]) -> int:
        return btf.structure(what, size, [member for member in members if member[0] != drop])

    desc = structure(
        "idxd_desc",
        128,
        [("hw", void, 0), ("compl_dma", types["long"], 8), ("completion", void, 16),
         ("id", types["int"], 40), ("wq", void, 48)],
    )  # fmt: skip
    dev = structure(
        "idxd_dev", 776, [("conf_dev", types["device"], 0), ("type", types["idxd_dev_type"], 768)]
    )
    wq = structure(
        "idxd_wq",
        1400,
        [("wq_active", types["percpu_ref"], 8), ("idxd_dev", dev, 64), ("idxd", void, 840),
         ("type", types["idxd_wq_type"], 848), ("wq_lock", types["mutex"], 1000),
         ("flags", types["long"], 1040), ("num_descs", types["int"], 1048),
         ("max_xfer_bytes", types["long"], 1056), ("max_batch_size", types["unsigned int"], 1064),
         ("driver_name", name, 1070)],
    )  # fmt: skip
    structure("idxd_driver_data", 64, [("type", types["idxd_type"], 8)])
    structure(
        "idxd_device",
        1280,
        [("data", void, 776), ("state", types["idxd_device_state"], 888),
         ("cmd_status", types["unsigned int"], 900), ("pdev", void, 968)],
    )  # fmt: skip
    pointers = {"wq": btf.pointer(wq), "desc": btf.pointer(desc)}
    complete = btf.prototype(
        0,
        [pointers["desc"], types["idxd_complete_type"], types["_Bool"], void,
         btf.pointer(types["unsigned int"])],
    )  # fmt: skip
    structure(
        "idxd_device_driver",
        184,
        [("name", void, 0), ("type", void, 8), ("probe", void, 16), ("remove", void, 24),
         ("desc_complete", btf.pointer(complete), 32), ("drv", types["device_driver"], 40)],
    )  # fmt: skip
    on_wq = [pointers["wq"]]
    alloc = btf.prototype(pointers["desc"], on_wq + [types["idxd_op_type"]])
    btf.function("idxd_alloc_desc", alloc)
    btf.function("idxd_free_desc", btf.prototype(0, on_wq + [pointers["desc"]]))
    submit = btf.prototype(types["int"], [pointers[parameter] for parameter in parameters])
    btf.function("idxd_submit_desc", submit)
    btf.function("idxd_drv_enable_wq", btf.prototype(types["int"], on_wq))
    btf.function("idxd_drv_disable_wq", btf.prototype(0, on_wq))
    btf.function("__idxd_wq_quiesce", btf.prototype(0, on_wq))
    return btf


Generate = Callable[[bytes, bytes], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def generate(tmp_path_factory: pytest.TempPathFactory) -> Generate:
    folder = tmp_path_factory.mktemp("layout")
    program = folder / "generate"
    sources = [SOURCES / "generate.c", SOURCES / "btf.c"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    flags = ["-g", "-Wall", "-Wextra", "-Werror", *sanitizers]
    subprocess.run(["gcc", *flags, "-o", program, *sources], check=True)

    def run(vmlinux: bytes, idxd: bytes) -> subprocess.CompletedProcess[str]:
        (folder / "vmlinux").write_bytes(vmlinux)
        (folder / "idxd").write_bytes(idxd)
        return subprocess.run(
            [program, folder / "vmlinux", folder / "idxd"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            env={"ASAN_OPTIONS": "detect_leaks=0"},
        )

    return run


def test_members_stand_where_btf_says(generate: Generate) -> None:
    base, types = _kernel()
    generated = generate(base.section(), _idxd(base, types).section())
    assert generated.returncode == 0, generated.stderr
    for line in (
        "memsluice_layout_assert(offsetof(struct idxd_wq, wq_lock) == 1000);",
        "memsluice_layout_assert(sizeof_field(struct idxd_wq, wq_lock) == 32);",
        "memsluice_layout_assert(sizeof(struct idxd_device) == 1280);",
        "#define MEMSLUICE_IDXD_DRIVER_NAME_BYTES 129",
        "\tIDXD_DEV_NONE = -1,",
    ):
        assert line in generated.stdout


@pytest.mark.parametrize("member", ["wq_lock", "pdev", "completion", "desc_complete"])
def test_a_member_that_is_gone_is_named(generate: Generate, member: str) -> None:
    base, types = _kernel()
    generated = generate(base.section(), _idxd(base, types, drop=member).section())
    assert generated.returncode == 1
    assert re.search(rf"has no member {member}\n", generated.stderr)


def test_a_function_of_another_type_is_named(generate: Generate) -> None:
    base, types = _kernel()
    idxd = _idxd(base, types, parameters=("desc", "wq"))
    generated = generate(base.section(), idxd.section())
    assert generated.returncode == 1
    assert "idxd_submit_desc is int (struct idxd_desc*, struct idxd_wq*)" in generated.stderr


def test_what_is_no_btf_is_refused(generate: Generate) -> None:
    base, types = _kernel()
    whole = _idxd(base, types).section()
    for broken in (b"", b"no BTF", whole[:20], whole[:200], b"\x7fELF" + whole):
        generated = generate(base.section(), broken)
        assert generated.returncode == 1
        assert generated.stderr.count("\n") == 1


def test_nothing_that_is_broken_does_any_harm(generate: Generate) -> None:
    """With sanitizers: whatever it is, it is taken or refused."""
    base, types = _kernel()
    whole = bytearray(_idxd(base, types).section())
    chance = random.Random(SEED)
    for _ in range(FUZZ_ROUNDS):
        broken = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            broken[chance.randrange(len(broken))] = chance.choice((0, 1, 127, 255))
        generated = generate(base.section(), bytes(broken))
        assert generated.returncode in (0, 1), generated.stderr[-3000:]
        assert "ERROR: AddressSanitizer" not in generated.stderr, generated.stderr[-3000:]
        assert "runtime error" not in generated.stderr, generated.stderr[-3000:]
