"""The tables of system calls: against the kernel's headers, against libseccomp, and what of a table is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.libseccomp import library, number
from support.seccomp import ARCHITECTURES, FOLDER, RAW, TABLES, VALUE, document

from prespawn.policy.errors import ReadError
from prespawn.policy.syscalls import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EACH = pytest.mark.parametrize("architecture", ARCHITECTURES)
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


ONLY_32_BITS = {"arch_specific_syscall", "syscalls", "stat", "lstat", "sync_file_range2"}


def defined(text: str) -> Iterator[tuple[str, int]]:
    """Yield the calls that a header defines for 64-bit architectures; the generic one has names for both widths."""
    both: dict[int, str] = {}
    for line in text.splitlines():
        name, _, value = line.removeprefix("#define ").partition(" ")
        if line.startswith("#define __NR3264_") and value.isdigit():
            both[int(value)] = name.removeprefix("__NR3264_")
        elif line.startswith("#define __NR_") and value.isdigit():
            yield name.removeprefix("__NR_"), int(value)
    yield from (({"fstatat": "newfstatat"}.get(name, name), value) for value, name in both.items())


@EACH
def test_numbers_are_those_of_the_kernel_headers(architecture: str) -> None:
    if not HEADERS[architecture].is_file():
        pytest.skip(f"no `{HEADERS[architecture]}` on this host: `apt install linux-libc-dev`")
    found = dict(defined(HEADERS[architecture].read_text("utf-8")))
    if architecture == "aarch64":
        found = {name: value for name, value in found.items() if name not in ONLY_32_BITS and "time64" not in name}
        found = {name: value for name, value in found.items() if not 403 <= value <= 423}
    assert len(found) > 290
    assert found.items() <= TABLES[architecture].numbers.items()


@EACH
def test_numbers_are_those_of_libseccomp(architecture: str) -> None:
    lib = library()
    if lib is None:
        pytest.skip("no `libseccomp.so.2` on this host: `apt install libseccomp2`")
    ours = TABLES[architecture].numbers
    theirs = {name: number(lib, name, architecture) for name in ours}
    known = {name: value for name, value in theirs.items() if value >= 0}
    assert len(known) > 280
    assert known.items() <= ours.items()


@EACH
def test_every_name_of_the_shipped_filter_is_known(architecture: str) -> None:
    names = {name for rule in VALUE["syscalls"] for name in rule["names"]}
    assert names <= TABLES[architecture].numbers.keys() | set(TABLES[architecture].elsewhere)


@EACH
def test_table_is_what_its_yaml_says(architecture: str) -> None:
    table, raw = TABLES[architecture], RAW[architecture]
    assert next(iter(raw)) == "prespawn"
    assert (table.id, table.seccomp, table.audit, table.numbers) == tuple(
        raw[key] for key in ("id", "seccomp", "audit", "numbers")
    )
    assert (dict(table.killed) if table.killed else None) == raw["killed"]
    assert list(raw["numbers"].values()) == sorted(set(raw["numbers"].values()))


BROKEN_TABLES: list[tuple[str, Callable[[str], str], str, tuple[int, int]]] = [
    ("another format", lambda text: text.replace("syscalls/v1", "syscalls/v2"), "policy-invalid", (3, 11)),
    ("a number twice", lambda text: text.replace("  write: 1\n", "  write: 0\n"), "policy-duplicate-item", (10, 10)),
    ("a name twice", lambda text: text.replace("  write: 1\n", "  read: 1\n"), "policy-duplicate-key", (10, 3)),
    ("no number", lambda text: text.replace("  write: 1\n", "  write: x\n"), "policy-type", (10, 10)),
    ("no name", lambda text: text.replace("  write: 1\n", "  Write: 1\n"), "policy-pattern", (10, 3)),
    ("a key too many", lambda text: text.replace("numbers:", "also: 1\nnumbers:"), "policy-unknown-key", (8, 1)),
    ("a key too few", lambda text: text.replace("id: x86_64\n", ""), "policy-missing-key", (3, 1)),
]


@pytest.mark.parametrize(("case", "change", "id", "place"), BROKEN_TABLES, ids=[case[0] for case in BROKEN_TABLES])
def test_broken_table_is_refused(case: str, change: Callable[[str], str], id: str, place: tuple[int, int]) -> None:
    text = change((FOLDER / "x86_64.yaml").read_text("ascii"))
    with pytest.raises(ReadError) as caught:
        tables([document(text, "yaml", "x86_64.yaml")])
    assert (caught.value.id, (caught.value.line, caught.value.column)) == (id, place)
