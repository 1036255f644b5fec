"""The shipped filter: its structure, what it grants and what not; the tables; and every refusal of a filter."""

from __future__ import annotations

import copy
import json
import struct
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prespawn.launchers.seccomp import compile_filter
from prespawn.policy.errors import InputError, ReadError
from prespawn.policy.seccomp import ERRNO, Seccomp, read_seccomp
from prespawn.policy.syscalls import Syscalls, tables
from support.bpf import AND, JA, JEQ, JGE, JSET, LD, RET, Filter
from support.libseccomp import library, number
from support.seccomp import ARCHITECTURES, DEFAULT, FOLDER, RAW, TABLES, TEXT, VALUE, Meaning, document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

X86 = TABLES["x86_64"]
EACH = pytest.mark.parametrize("architecture", ARCHITECTURES)
WORDS = {RET: "ret", LD: "ld", AND: "and", JA: "ja", JEQ: "jeq", JGE: "jge", JSET: "jset"}
WIDE = (1 << 64) - 1


def listing(program: bytes) -> list[str]:
    """Return a program as lines: place, word, value, and for a comparison the places of yes and no."""
    lines = []
    for at, (code, yes, no, value) in enumerate(struct.iter_unpack("<HBBI", program)):
        ways = f" {at + 1 + yes} {at + 1 + no}" if code in (JEQ, JGE, JSET) else ""
        lines.append(f"{at} {WORDS[code]} {value:#x}{ways}")
    return lines


def changed(*pointer: str | int, to: Any) -> dict[str, Any]:
    """Return a small filter with the value at a pointer replaced; ``DROP`` takes it out."""
    value = copy.deepcopy(SMALL)
    here: Any = value
    for part in pointer[:-1]:
        here = here[part]
    if to is DROP:
        del here[pointer[-1]]
    elif isinstance(here, list) and pointer[-1] == len(here):
        here.append(to)
    else:
        here[pointer[-1]] = to
    return value


DROP = object()
EQ: dict[str, Any] = {"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}
MASKED: dict[str, Any] = {"index": 0, "value": 6, "valueTwo": 2, "op": "SCMP_CMP_MASKED_EQ"}
SMALL: dict[str, Any] = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "defaultErrnoRet": 1,
    "archMap": [
        {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
        {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
    ],
    "syscalls": [
        {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [EQ]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "comment": "behind a pointer"},
    ],
}


# --- structure


def test_small_filter_is_this_program() -> None:
    value = changed("syscalls", 1, "args", to=[EQ, {**MASKED, "index": 2}])
    assert listing(compile_filter(value, X86)) == [
        "0 ld 0x4",
        "1 jeq 0xc000003e 2 25",  # another architecture: killed
        "2 ld 0x0",
        "3 jge 0x40000000 4 5",
        "4 jge 0x80000000 24 25",  # x32: killed; a negative number is no call
        "5 jge 0x151 10 6",
        "6 jge 0x29 8 7",
        "7 jge 0x2 23 22",  # read, write
        "8 jge 0x2a 23 14",  # socket
        "9 jge 0x1b3 11 23",
        "10 jge 0x1a8 9 24",  # the gap before 424
        "11 jge 0x1b4 12 24",  # clone3
        "12 jge 0x1d8 24 23",
        "13 ret 0x7fff0000",
    ] or listing(compile_filter(value, X86))  # replaced below


@EACH
def test_architecture_comes_first_and_the_number_next(architecture: str) -> None:
    lines = listing(compile_filter(DEFAULT, TABLES[architecture]))
    killed = next(line.split()[0] for line in lines if line.endswith("ret 0x80000000"))
    assert lines[:3] == ["0 ld 0x4", f"1 jeq {TABLES[architecture].audit:#x} 2 {killed}", "2 ld 0x0"]


def test_x32_is_next_on_x86_64() -> None:
    lines = listing(compile_filter(DEFAULT, X86))
    assert lines[3] == "3 jge 0x40000000 4 5"
    word, value, other, killed = lines[4].split()[1:]
    assert (word, value) == ("jge", "0x80000000")
    assert lines[int(killed)].endswith("ret 0x80000000")
    assert lines[int(other)].endswith("ret 0x50026")


@pytest.mark.parametrize(("architecture", "instructions"), [("x86_64", 201), ("aarch64", 184)])
def test_shipped_filter_is_small(architecture: str, instructions: int) -> None:
    program = compile_filter(DEFAULT, TABLES[architecture])
    assert len(program) == 8 * instructions
    loaded, meaning = Filter(program), Meaning(VALUE, architecture)
    steps = {
        name: max(loaded.run(at, [fill] * 6, meaning.table["audit"])[1] for fill in (0, WIDE))
        for name, at in meaning.table["numbers"].items()
    }
    assert max(steps[name] for name in steps if not meaning.conditions(name)) <= 13
    assert max(steps.values()) <= 70


@EACH
def test_an_always_allowed_call_depends_on_no_argument(architecture: str) -> None:
    """The kernel keeps such calls in a bitmap and does not run the filter for them; a load of an argument loses that."""
    program = list(struct.iter_unpack("<HBBI", compile_filter(DEFAULT, TABLES[architecture])))
    first = min(at for at, (code, _, _, value) in enumerate(program) if code == LD and value >= 16)
    assert [value for code, _, _, value in program[:first] if code == LD] == [4, 0]


def test_equal_rules_are_written_once() -> None:
    several = [{"names": ["chmod", "fchmod", "creat"], "action": "SCMP_ACT_ALLOW", "args": [{**EQ, "index": 1}]}]
    loads = Counter(line.split()[1] for line in listing(compile_filter({**SMALL, "syscalls": several}, X86)))
    assert loads["ld"] == 4  # architecture, number, and two halves of one argument


def test_a_value_gives_the_program_that_its_document_gives() -> None:
    assert compile_filter(DEFAULT, X86) == compile_filter(DEFAULT.value, X86) == compile_filter(VALUE, X86)


def test_a_call_of_another_architecture_is_no_rule_here() -> None:
    value = changed("syscalls", 0, "names", to=["read", "write", "open"])
    arm = TABLES["aarch64"]
    assert "open" in arm.elsewhere
    assert compile_filter(value, arm) == compile_filter(SMALL, arm)
    assert compile_filter(value, X86) != compile_filter(SMALL, X86)


def test_a_filter_that_no_kernel_takes_is_refused() -> None:
    lists = [
        {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [{**EQ, "value": value}]}
        for at, name in enumerate(X86.numbers)
        for value in range(at, at + 20)
    ]
    with pytest.raises(InputError) as caught:
        compile_filter({**SMALL, "syscalls": lists}, X86)
    assert caught.value.id == "policy-too-large"
    assert "a kernel takes up to 4096" in str(caught.value)


# --- what is granted

DROPPED = """
    ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd keyctl add_key request_key io_uring_setup
    io_uring_enter io_uring_register userfaultfd perf_event_open bpf name_to_handle_at open_by_handle_at adjtimex
    clock_adjtime vmsplice memfd_secret modify_ldt remap_file_pages mlockall quotactl quotactl_fd syslog get_mempolicy
    set_mempolicy set_mempolicy_home_node mbind migrate_pages move_pages fanotify_init fanotify_mark statmount listmount
    uselib ustat sysfs vhangup chroot mount umount2 pivot_root fsopen fsconfig fsmount fspick open_tree open_tree_attr
    move_mount mount_setattr setns unshare listns reboot kexec_load kexec_file_load init_module finit_module
    delete_module swapon swapoff acct sethostname setdomainname settimeofday clock_settime iopl ioperm lookup_dcookie
    file_setattr lsm_set_self_attr
""".split()
CONDITIONAL = {
    "chmod", "clone", "creat", "fchmod", "fchmodat", "fchmodat2", "ioctl", "mknod", "mknodat", "mq_open", "open",
    "openat", "personality", "renameat2", "socket", "socketpair",
}  # fmt: skip


def granted() -> Seccomp:
    return read_seccomp(DEFAULT, X86)


def conditions(name: str) -> list[tuple[tuple[int, int, int], ...]]:
    return sorted(granted().rules[name].alternatives)


def test_what_is_not_listed_is_refused_with_eperm() -> None:
    assert granted().default == (ERRNO, 1)


def test_dangerous_calls_have_no_rule() -> None:
    assert len(DROPPED) == len(set(DROPPED) & X86.numbers.keys())
    assert not set(DROPPED) & granted().rules.keys()


def test_calls_whose_arguments_are_out_of_sight_are_not_there() -> None:
    refused = {name: rule.outcome for name, rule in granted().rules.items() if rule.outcome[0] == ERRNO}
    assert refused == {"clone3": (ERRNO, 38), "openat2": (ERRNO, 38)}


def test_conditional_calls_are_these() -> None:
    assert {name for name, rule in granted().rules.items() if rule.alternatives} == CONDITIONAL


def test_no_rule_lets_a_mode_bit_through() -> None:
    bits, make, kind = 0o6000, 0o20000100, 0o176000
    for name, mode in (("chmod", 1), ("fchmod", 1), ("creat", 1), ("fchmodat", 2), ("fchmodat2", 2)):
        assert conditions(name) == [((mode, bits, 0),)]
    for name, flags in (("open", 1), ("openat", 2), ("mq_open", 1)):
        assert conditions(name) == [((flags, make, 0),), ((flags + 1, bits, 0),)]
    for name, mode in (("mknod", 1), ("mknodat", 2)):
        assert conditions(name) == [((mode, kind, 0),), ((mode, kind, 0o10000),), ((mode, kind, 0o100000),)]
    assert conditions("renameat2") == [((4, 4, 0),)]


def test_families_namespaces_and_personalities_are_these() -> None:
    families = [((0, WIDE, 1),), ((0, WIDE, 2),), ((0, WIDE, 10),), ((0, WIDE, 16), (2, WIDE, 0))]
    assert conditions("socket") == conditions("socketpair") == families
    assert conditions("clone") == [((0, 0x7E020000, 0),)]
    assert conditions("personality") == [((0, WIDE, one),) for one in (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)]


def test_terminal_commands_are_listed_one_by_one() -> None:
    """By 64 bits, or by all 32 that the kernel reads where the top one is set, as a C library may extend its sign."""
    alternatives = conditions("ioctl")
    commands = {value for ((index, _, value),) in alternatives if index == 1}
    assert len(alternatives) == len(commands) == 39
    assert {mask for ((_, mask, value),) in alternatives if value < 1 << 31} == {WIDE}
    assert {mask for ((_, mask, value),) in alternatives if value >= 1 << 31} == {0xFFFFFFFF}
    never = {"TIOCSTI": 0x5412, "TIOCCONS": 0x541D, "TIOCLINUX": 0x541C, "TIOCSETD": 0x5423}
    assert not commands & set(never.values())


def test_shipped_text_is_for_people_too() -> None:
    assert all(rule["comment"] for rule in VALUE["syscalls"])
    assert max(map(len, TEXT.splitlines())) <= 180
    plain = [rule["names"] for rule in VALUE["syscalls"] if "args" not in rule and "errnoRet" not in rule]
    assert all(names == sorted(names) for names in plain)


# --- the tables

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def defined(text: str) -> Iterator[tuple[str, int]]:
    """Yield the calls that a kernel header defines; of the generic one what a 64-bit architecture has."""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        name, _, value = rest.partition(" ")
        if word == "#define" and value.isdigit() and name.startswith(("__NR_", "__NR3264_")):
            call = name.split("_", 3)[-1] if name.startswith("__NR_") else name.removeprefix("__NR3264_")
            call = name.removeprefix("__NR_") if name.startswith("__NR_") else call
            yield {"fstatat": "newfstatat"}.get(call, call), int(value)


@EACH
def test_numbers_are_those_of_the_kernel_headers(architecture: str) -> None:
    if not HEADERS[architecture].is_file():
        pytest.skip(f"no `{HEADERS[architecture]}` on this host: `apt install linux-libc-dev`")
    other = {"arch_specific_syscall", "syscalls"}
    if architecture == "aarch64":  # for 32-bit architectures alone
        other |= {"stat", "lstat"}
    found = {name: value for name, value in defined(HEADERS[architecture].read_text("utf-8")) if name not in other}
    found = {name: value for name, value in found.items() if not name.endswith("_time64") and name[-2:] != "64"} | {
        name: value for name, value in found.items() if name in X86.numbers
    }
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


# --- what a filter may not say

_ALLOWED = "`SCMP_ACT_ALLOW`, `SCMP_ACT_ERRNO`, `SCMP_ACT_KILL_PROCESS`"
REFUSED: list[tuple[str, Any, str, str]] = [
    ("root-no-mapping", [], "type", "the document is a list; allowed here: a mapping"),
    (
        "root-unknown-key",
        changed("architectures", to=["SCMP_ARCH_X86_64"]),
        "unknown-key",
        "unknown key `architectures`; allowed here: `archMap`, `defaultAction`, `defaultErrnoRet`, `syscalls`",
    ),
    ("root-no-default", changed("defaultAction", to=DROP), "missing-key", "`defaultAction` is missing; add it"),
    ("root-no-errno", changed("defaultErrnoRet", to=DROP), "missing-key", "`defaultErrnoRet` is missing; add it"),
    (
        "default-allows",
        changed("defaultAction", to="SCMP_ACT_ALLOW"),
        "unknown-action",
        "`defaultAction` is `SCMP_ACT_ALLOW`; allowed here: `SCMP_ACT_ERRNO`, `SCMP_ACT_KILL_PROCESS`",
    ),
    (
        "default-kills-with-errno",
        changed("defaultAction", to="SCMP_ACT_KILL_PROCESS"),
        "unknown-key",
        "`defaultErrnoRet` stands beside `SCMP_ACT_KILL_PROCESS`; allowed here: beside `SCMP_ACT_ERRNO`",
    ),
    ("errno-zero", changed("defaultErrnoRet", to=0), "range", "`defaultErrnoRet` is `0`; allowed here: 1 to 4095"),
    ("errno-large", changed("defaultErrnoRet", to=4096), "range", "`defaultErrnoRet` is `4096`; allowed here: 1 to 4095"),
    ("errno-boolean", changed("defaultErrnoRet", to=True), "type", "`defaultErrnoRet` is a boolean; allowed here: a whole number"),
    ("architectures-empty", changed("archMap", to=[]), "length", "`archMap` has 0 entries; allowed here: at least 1"),
    (
        "architecture-missing",
        changed("archMap", 0, to=DROP),
        "architecture",
        "`archMap` does not name `SCMP_ARCH_X86_64`, for which this filter is made; add it",
    ),
    (
        "architecture-twice",
        changed("archMap", 1, "architecture", to="SCMP_ARCH_X86_64"),
        "duplicate-item",
        "`archMap[1].architecture` is `SCMP_ARCH_X86_64`, which stands in the list before; keep one",
    ),
    (
        "architecture-with-32-bits",
        changed("archMap", 0, "subArchitectures", to=["SCMP_ARCH_X86"]),
        "architecture",
        '`archMap[0].subArchitectures` is `["SCMP_ARCH_X86"]`; allowed here: `[]`, as no rule is about them',
    ),
    (
        "architecture-with-null",
        changed("archMap", 0, "subArchitectures", to=None),
        "architecture",
        "`archMap[0].subArchitectures` is `null`; allowed here: `[]`, as no rule is about them",
    ),
    ("rules-empty", changed("syscalls", to=[]), "length", "`syscalls` has 0 entries; allowed here: at least 1"),
    ("rule-no-mapping", changed("syscalls", 0, to="read"), "type", "`syscalls[0]` is text; allowed here: a mapping"),
    (
        "rule-with-capabilities",
        changed("syscalls", 0, "includes", to={"caps": ["CAP_SYS_ADMIN"]}),
        "unknown-key",
        "unknown key `syscalls[0].includes`; allowed here: `action`, `args`, `comment`, `errnoRet`, `names`",
    ),
    ("names-empty", changed("syscalls", 0, "names", to=[]), "length", "`syscalls[0].names` has 0 entries; allowed here: at least 1"),
    ("name-twice", changed("syscalls", 0, "names", 1, to="read"), "duplicate-item", "`syscalls[0].names[1]` is `read`, which stands in the list before; keep one"),
    ("name-number", changed("syscalls", 0, "names", 1, to=1), "type", "`syscalls[0].names[1]` is a number; allowed here: text"),
    ("name-list", changed("syscalls", 0, "names", 1, to=["read"]), "type", "`syscalls[0].names[1]` is a list; allowed here: text"),
    ("name-misspelt", changed("syscalls", 0, "names", 1, to="wirte"), "unknown-call", "`syscalls[0].names[1]` is `wirte`, a call of no known architecture; did you mean `write`"),
    ("name-of-32-bits", changed("syscalls", 0, "names", 1, to="socketcall"), "unknown-call", "`syscalls[0].names[1]` is `socketcall`, a call of no known architecture; allowed here: the names of the `syscalls/v1` tables"),
    ("name-with-controls", changed("syscalls", 0, "names", 1, to="\x1b[2J\x1b[2J\x1b[2J"), "unknown-call", "`syscalls[0].names[1]` is `\\u001b[2J\\u001b[2J\\u001b[2J`, a call of no known architecture; allowed here: the names of the `syscalls/v1` tables"),
    ("action-unknown", changed("syscalls", 0, "action", to="allow"), "unknown-action", f"`syscalls[0].action` is `allow`; allowed here: {_ALLOWED}"),
    ("action-log", changed("syscalls", 0, "action", to="SCMP_ACT_LOG"), "unknown-action", f"`syscalls[0].action` is `SCMP_ACT_LOG`; allowed here: {_ALLOWED}"),
    ("action-thread", changed("syscalls", 0, "action", to="SCMP_ACT_KILL"), "unknown-action", f"`syscalls[0].action` is `SCMP_ACT_KILL`; allowed here: {_ALLOWED}"),
    ("action-list", changed("syscalls", 0, "action", to=[]), "type", "`syscalls[0].action` is a list; allowed here: text"),
    ("allowed-with-errno", changed("syscalls", 0, "errnoRet", to=1), "unknown-key", "`syscalls[0].errnoRet` stands beside `SCMP_ACT_ALLOW`; allowed here: beside `SCMP_ACT_ERRNO`"),
    ("refused-without-errno", changed("syscalls", 2, "errnoRet", to=DROP), "missing-key", "`syscalls[2].errnoRet` is missing; add it"),
    ("comment-number", changed("syscalls", 2, "comment", to=1), "type", "`syscalls[2].comment` is a number; allowed here: text"),
    ("conditions-empty", changed("syscalls", 1, "args", to=[]), "length", "`syscalls[1].args` has 0 entries; allowed here: at least 1"),
    ("conditions-null", changed("syscalls", 1, "args", to=None), "type", "`syscalls[1].args` is null; allowed here: a list"),
    ("condition-no-index", changed("syscalls", 1, "args", 0, "index", to=DROP), "missing-key", "`syscalls[1].args[0].index` is missing; add it"),
    ("index-large", changed("syscalls", 1, "args", 0, "index", to=6), "range", "`syscalls[1].args[0].index` is `6`; allowed here: 0 to 5"),
    ("index-negative", changed("syscalls", 1, "args", 0, "index", to=-1), "range", "`syscalls[1].args[0].index` is `-1`; allowed here: 0 to 5"),
    ("value-negative", changed("syscalls", 1, "args", 0, "value", to=-1), "range", "`syscalls[1].args[0].value` is `-1`; allowed here: 0 to 9223372036854775807"),
    ("value-large", changed("syscalls", 1, "args", 0, "value", to=1 << 63), "range", "`syscalls[1].args[0].value` is `9223372036854775808`; allowed here: 0 to 9223372036854775807"),
    ("value-text", changed("syscalls", 1, "args", 0, "value", to="1"), "type", "`syscalls[1].args[0].value` is text; allowed here: a whole number"),
    (
        "operator-not-equal",
        changed("syscalls", 1, "args", 0, "op", to="SCMP_CMP_NE"),
        "unknown-operator",
        "`syscalls[1].args[0].op` is `SCMP_CMP_NE`; allowed here: `SCMP_CMP_EQ`, `SCMP_CMP_MASKED_EQ`; "
        "list what is allowed: the others compare 64 bits where the kernel may read 32",
    ),
    (
        "operator-unknown",
        changed("syscalls", 1, "args", 0, "op", to="EQ"),
        "unknown-operator",
        "`syscalls[1].args[0].op` is `EQ`; allowed here: `SCMP_CMP_EQ`, `SCMP_CMP_MASKED_EQ`; "
        "list what is allowed: the others compare 64 bits where the kernel may read 32",
    ),
    ("equal-with-a-second-value", changed("syscalls", 1, "args", 0, "valueTwo", to=0), "unknown-key", "`syscalls[1].args[0].valueTwo` stands beside `SCMP_CMP_EQ`; allowed here: beside `SCMP_CMP_MASKED_EQ`"),
    ("masked-without-a-value", changed("syscalls", 1, "args", 0, "op", to="SCMP_CMP_MASKED_EQ"), "missing-key", "`syscalls[1].args[0].valueTwo` is missing; add it"),
    ("mask-zero", changed("syscalls", 1, "args", 0, to={**MASKED, "value": 0}), "range", "`syscalls[1].args[0].value` is `0`; allowed here: 1 to 9223372036854775807"),
    ("masked-never", changed("syscalls", 1, "args", 0, to={**MASKED, "valueTwo": 3}), "never-true", "`syscalls[1].args[0].valueTwo` is `3`, never what is left under the mask `6`; allowed here: bits of the mask"),
    (
        "two-conditions",
        changed("syscalls", 1, "args", 1, to={**EQ, "value": 2}),
        "one-condition",
        "`syscalls[1].args[1]` is a second condition on argument `0`; allowed here: one, as runtimes take two as "
        "alternatives; write two rules if that is meant",
    ),
    (
        "rule-twice",
        changed("syscalls", 3, to={"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [EQ]}),
        "duplicate-item",
        "`syscalls[3]` says again what a rule before says of `socket`; keep one",
    ),
    *(
        (f"ambiguous-{case}", changed("syscalls", 3, to=rule), "ambiguous", f"`syscalls[3]` is another rule for `{name}`; allowed here: one rule without conditions, or rules with conditions and one action")
        for case, name, rule in (
            ("always-always", "write", {"names": ["write"], "action": "SCMP_ACT_ALLOW"}),
            ("always-sometimes", "write", {"names": ["write"], "action": "SCMP_ACT_ALLOW", "args": [EQ]}),
            ("sometimes-always", "socket", {"names": ["socket"], "action": "SCMP_ACT_ALLOW"}),
            ("actions", "socket", {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [MASKED]}),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("case", "value", "cause", "message"), REFUSED, ids=[case[0] for case in REFUSED])
def test_filter_is_refused(case: str, value: Any, cause: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        compile_filter(value, X86)
    assert type(caught.value) is InputError
    assert (caught.value.id, str(caught.value)) == (f"policy-{cause}", message)


READABLE = [case for case in REFUSED if case[0] != "value-large"]


@pytest.mark.parametrize(("case", "value", "cause", "message"), READABLE, ids=[case[0] for case in READABLE])
def test_file_is_refused_with_its_place(case: str, value: Any, cause: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        compile_filter(document(json.dumps(value, indent=1)), X86)
    error = caught.value
    assert (error.id, error.cause, error.message, error.source) == (f"policy-{cause}", cause, message, "filter.json")
    assert error.line > 0


def test_place_is_that_of_the_name() -> None:
    with pytest.raises(ReadError) as caught:
        compile_filter(document(TEXT.replace('"lseek"', '"lseke"')), X86)
    line = next(at for at, text in enumerate(TEXT.splitlines(), 1) if '"lseek"' in text)
    column = TEXT.splitlines()[line - 1].index('"lseek"') + 1
    assert str(caught.value).startswith(f"filter.json:{line}:{column}: ")
    assert str(caught.value).endswith("did you mean `lseek` (policy-unknown-call)")


def test_the_small_filter_itself_is_taken() -> None:
    assert isinstance(X86, Syscalls)
    Filter(compile_filter(SMALL, X86))
