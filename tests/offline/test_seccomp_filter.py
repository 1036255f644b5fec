"""The shipped filter: the program that it becomes, and what it grants and what not."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from support.bpf import AND, JA, JEQ, JGE, JSET, LD, RET, Filter
from support.seccomp import ARCHITECTURES, DEFAULT, EQ, MASKED, SMALL, TABLES, TEXT, VALUE, Meaning, changed

from prespawn.launchers.seccomp import compile_filter
from prespawn.policy.errors import InputError
from prespawn.policy.seccomp import ERRNO, Seccomp, read_seccomp

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


def test_small_filter_is_this_program() -> None:
    value = changed("syscalls", 1, "args", to=[EQ, {**MASKED, "index": 2}])
    assert listing(compile_filter(value, X86)) == [
        "0 ld 0x4",
        "1 jeq 0xc000003e 2 23",  # another architecture
        "2 ld 0x0",
        "3 jge 0x40000000 4 5",
        "4 jge 0x80000000 22 23",  # x32; a negative number is no call
        "5 jge 0x151 9 6",
        "6 jge 0x29 8 7",
        "7 jge 0x2 21 20",  # read and write
        "8 jge 0x2a 21 13",  # socket
        "9 jge 0x1b3 11 10",
        "10 jge 0x1a8 21 22",  # no call between 336 and 424
        "11 jge 0x1b4 12 22",  # clone3
        "12 jge 0x1d8 22 21",  # no call above 471
        "13 ld 0x14",  # the first argument is 1 on all its bits
        "14 jeq 0x0 15 21",
        "15 ld 0x10",
        "16 jeq 0x1 17 21",
        "17 ld 0x20",  # the third has 2 under the mask 6
        "18 and 0x6",
        "19 jeq 0x2 20 21",
        "20 ret 0x7fff0000",
        "21 ret 0x50001",
        "22 ret 0x50026",
        "23 ret 0x80000000",
    ]


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
    """The kernel keeps such calls in a bitmap and runs no filter for them; a load of an argument would lose that."""
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


DROPPED = {
    # other processes, and memory behind their backs
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd", "userfaultfd",
    # what no namespace holds
    "keyctl", "add_key", "request_key", "syslog", "perf_event_open", "bpf", "lookup_dcookie",
    # what a filter cannot see into
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    # mounts, roots and namespaces
    "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree",
    "open_tree_attr", "move_mount", "mount_setattr", "statmount", "listmount", "setns", "unshare", "listns",
    # files beside their paths, and what watches or bounds them
    "name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark", "quotactl", "quotactl_fd",
    "file_setattr",
    # memory that is hard to account for, and where it lies
    "memfd_secret", "remap_file_pages", "mlockall", "vmsplice", "modify_ldt", "get_mempolicy", "set_mempolicy",
    "set_mempolicy_home_node", "mbind", "migrate_pages", "move_pages",
    # the host itself
    "adjtimex", "clock_adjtime", "clock_settime", "settimeofday", "sethostname", "setdomainname", "reboot",
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "swapon", "swapoff", "acct",
    "iopl", "ioperm", "uselib", "ustat", "sysfs", "vhangup", "lsm_set_self_attr",
}  # fmt: skip
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
    assert X86.numbers.keys() >= DROPPED
    assert not DROPPED & granted().rules.keys()


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
