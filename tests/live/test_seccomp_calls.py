"""The shipped filter on this very kernel: every number, and for each rule calls that pass and calls that do not.

Each refusal is made a second time without the filter where that leaves nothing behind, so that "refused" means refused
by the filter. Root makes the calls where the tests are root: then a missing capability refuses nothing either.
"""

from __future__ import annotations

import errno
import os
import platform
import pty
import signal
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support import as_user, filtered
from support.filtered import AT_HERE, KILLED, Seen, forked, raw
from support.runtimes import ROOT
from support.seccomp import DEFAULT, RAW, TABLES, VALUE, Meaning, holds

from prespawn.launchers.seccomp import compile_filter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason=f"calls are made by their numbers on x86_64; this is {platform.machine()}"
)

FILTER = compile_filter(DEFAULT, TABLES["x86_64"])
NUMBERS: dict[str, int] = RAW["x86_64"]["numbers"]
REFUSED = Seen(-1, errno.EPERM)
ABSENT = Seen(-1, errno.ENOSYS)
GARBAGE = 0x5A5A5A5A << 32  # in the half of an argument that most calls never read
SIGCHLD = 17

Call = tuple[Any, ...]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory of its own with one file, by whose name calls can be written down."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"content")
    yield


def made(call: Call, program: bytes | None = FILTER) -> Seen:
    """Make a call, by name, in a forked process; what is callable is called there before the filter is on."""
    name, *arguments = call
    ready: list[Any] = []

    def act() -> Seen:
        seen = raw(NUMBERS[name], *ready)
        if name == "clone" and seen.value == 0:
            os._exit(0)
        return seen

    def first() -> None:
        ready.extend(argument() if callable(argument) else argument for argument in arguments)

    return forked(program, act, first=first)


def descriptor() -> int:
    return os.open("file", os.O_RDWR)


def terminal() -> int:
    return pty.openpty()[1]


def master() -> int:
    return pty.openpty()[0]


# --- every number

ENDLESS = {"pause", "rt_sigreturn", "exit", "exit_group", "vfork", "fork", "rt_sigsuspend"}
UNASKED = {"uprobe"}  # a kernel that has it lets it pass without asking any filter
FATAL = {"uretprobe": signal.SIGILL}  # outside its trampoline


def test_every_number_comes_to_what_the_json_says() -> None:
    """By an errno that no kernel has; as an ordinary user, with arguments that no call can use."""
    mark = 4001
    marked = {**VALUE, "defaultErrnoRet": mark}
    program, meaning = compile_filter(marked, TABLES["x86_64"]), Meaning(marked, "x86_64")
    refused, absent = 0, 0
    for number in range(600):
        name = meaning.names.get(number, "")
        if name in ENDLESS | UNASKED:
            continue
        seen = forked(program, partial(raw, number, *(-1,) * 6), as_user.USER if ROOT else None)
        said = meaning.of(number, [(1 << 64) - 1] * 6, meaning.table["audit"]) & 0xFFFF
        refused, absent = refused + (said == mark), absent + (said == errno.ENOSYS)
        assert seen.killed == FATAL.get(name, 0), (number, name)
        if said:
            assert seen == Seen(-1, said), (number, name)
        else:
            assert seen.errno != mark, (number, name)
    assert refused > 90
    assert absent > 200


@pytest.mark.parametrize("name", ["fork", "vfork"])
def test_a_call_that_makes_a_process_passes(name: str) -> None:
    def act() -> int:
        pid = os.fork() if name == "fork" else os.posix_spawn("/bin/true", ["true"], {})
        if pid == 0:
            os._exit(0)
        return os.waitpid(pid, 0)[1]

    assert forked(FILTER, act) == Seen(0)


# --- each rule, from both sides

PASSES: list[Call] = [
    *(("chmod", "file", mode) for mode in (0o755, 0o1777, GARBAGE | 0o600)),
    ("fchmod", descriptor, 0o755),
    ("fchmodat", AT_HERE, "file", 0o755),
    ("fchmodat2", AT_HERE, "file", 0o755, 0),
    ("creat", "new", 0o755),
    ("open", "file", os.O_RDONLY),
    ("open", "file", os.O_RDONLY, 0o7777),
    ("open", "new", os.O_CREAT | os.O_WRONLY, 0o755),
    ("open", ".", os.O_TMPFILE | os.O_WRONLY, 0o755),
    ("openat", AT_HERE, "file", os.O_RDONLY),
    ("openat", AT_HERE, "file", os.O_RDONLY, 0o7777),
    ("openat", AT_HERE, "new", os.O_CREAT | os.O_WRONLY, 0o755),
    ("openat", AT_HERE, ".", os.O_TMPFILE | os.O_WRONLY, 0o755),
    *(("mknod", "new", mode, 0) for mode in (0o644, 0o100644, 0o010644)),
    *(("mknodat", AT_HERE, "new", mode, 0) for mode in (0o644, 0o100644, 0o010644)),
    *(("renameat2", AT_HERE, "file", AT_HERE, "new", flags) for flags in (0, 1)),
    ("clone", SIGCHLD, 0, 0, 0, 0),
    *(("personality", value) for value in (0xFFFFFFFF, 0, 8, 0x20000, 0x20008)),
    *(("socket", family, kind, 0) for family in (1, 2, 10) for kind in (1, 2)),
    ("socket", 16, 3, 0),
    ("socketpair", 1, 1, 0, bytes(8)),
    *(("ioctl", terminal, command, bytes(64)) for command in (0x5401, 0x5413, 0x802C542A, GARBAGE | 0x802C542A)),
    *(("ioctl", master, command, bytes(8)) for command in (0x80045430, 0xFFFFFFFF80045430, 0x40045431, 0x541B)),
    ("ioctl", descriptor, 0x5451, 0),
    ("getpid",),
    ("getrandom", bytes(8), 8, 0),
]

REFUSED_AND_NOT_TRIED_WITHOUT: list[Call] = [
    ("mq_open", "new", os.O_CREAT | os.O_RDWR, 0o4600, 0),
    *(("mknod", "new", kind | 0o644, 0x103) for kind in (0o020000, 0o060000)),
    *(("mknodat", AT_HERE, "new", kind | 0o644, 0x103) for kind in (0o020000, 0o060000)),
    *(("socket", family, 2, 0) for family in (17, 31, 38, 40, 9, 0, 2 | GARBAGE, 0xFFFFFFFF)),
    ("socket", 16, 3, 12),
    *(("socketpair", family, 1, 0, bytes(8)) for family in (16 | GARBAGE, 38, 40)),
    *(("ioctl", terminal, command, bytes(8)) for command in (0x541C, GARBAGE | 0x541C, 0x541D, 0x5423, 0x5400, 0)),
    *(("clone", flag | SIGCHLD, 0, 0, 0, 0) for flag in (0x20000, *(1 << bit for bit in range(25, 31)))),
    ("clone", GARBAGE | 0x10000000 | SIGCHLD, 0, 0, 0, 0),
    ("personality", GARBAGE | 0),
    ("ptrace", 0, 0, 0, 0),
    ("process_vm_readv", 1, bytes(16), 1, bytes(16), 1, 0),
    *(("unshare", flag) for flag in (0x20000, 0x10000000, 0x40000000)),
    ("setns", -1, 0),
    ("mount", "none", "/proc", "tmpfs", 0, 0),
    ("umount2", "/nonexistent", 0),
    ("pivot_root", ".", "."),
    ("chroot", "/nonexistent"),
    ("fsopen", "nonexistent", 0),
    ("open_tree", AT_HERE, "nonexistent", 0),
    ("open_tree_attr", AT_HERE, "nonexistent", 0, 0, 0),
    ("move_mount", AT_HERE, "nonexistent", AT_HERE, "nonexistent", 0),
    ("mount_setattr", AT_HERE, "nonexistent", 0, bytes(32), 32),
    ("add_key", "user", "prespawn", "x", 1, -2),
    ("request_key", "user", "prespawn-none", 0, 0),
    ("keyctl", 0, -3, 0),
    ("io_uring_setup", 1, bytes(120)),
    ("bpf", 0, bytes(48), 48),
    ("perf_event_open", bytes(112), 0, -1, -1, 0),
    ("userfaultfd", 0),
    ("pidfd_getfd", -1, 0, 0),
    ("kcmp", 1, 1, 0, 0, 0),
    ("memfd_secret", 0),
    ("name_to_handle_at", AT_HERE, "file", bytes(8), bytes(4), 0),
    ("syslog", 3, bytes(8), 8),
]

REFUSED_BY_THE_FILTER_ALONE: list[Call] = [
    *(("chmod", "file", mode) for mode in (0o4755, 0o2755, 0o6755, GARBAGE | 0o4755, 0o104755)),
    ("fchmod", descriptor, 0o4755),
    ("fchmod", descriptor, 0o2755),
    ("fchmodat", AT_HERE, "file", 0o4755),
    ("fchmodat", AT_HERE, "file", 0o2755),
    ("fchmodat2", AT_HERE, "file", 0o4755, 0),
    ("creat", "new", 0o4755),
    ("creat", "new", 0o2755),
    ("open", "new", os.O_CREAT | os.O_WRONLY, 0o4755),
    ("open", "file", os.O_CREAT | os.O_WRONLY, 0o2755),
    ("open", ".", os.O_TMPFILE | os.O_WRONLY, 0o4755),
    ("openat", AT_HERE, "new", os.O_CREAT | os.O_WRONLY, 0o4755),
    ("openat", AT_HERE, ".", os.O_TMPFILE | os.O_WRONLY, 0o2755),
    *(("mknod", "new", mode, 0) for mode in (0o104755, 0o102755, 0o4755, 0o014644, 0o020644, 0o140644)),
    *(("mknodat", AT_HERE, "new", mode, 0) for mode in (0o104755, 0o102755, 0o4755, 0o014644, 0o020644, 0o140644)),
    ("renameat2", AT_HERE, "file", AT_HERE, "new", 4),
    ("renameat2", AT_HERE, "file", AT_HERE, "new", 5),
    ("personality", 0x40000),  # no randomised addresses
    ("socket", 16, 3, 15),  # the kernel's device events
    ("socket", 16, 3, 9),  # audit
]


def shown(call: Call) -> str:
    words = (
        getattr(word, "__name__", None) or (hex(word) if isinstance(word, int) else repr(word)[:20]) for word in call
    )
    return "-".join(words)


@pytest.mark.parametrize("call", PASSES, ids=shown)
def test_call_passes(call: Call) -> None:
    seen = made(call)
    assert seen.value >= 0, seen


@pytest.mark.parametrize("call", REFUSED_BY_THE_FILTER_ALONE, ids=shown)
def test_call_is_refused_where_the_kernel_would_take_it(call: Call) -> None:
    assert made(call) == REFUSED
    assert not os.path.exists("new")
    assert os.stat("file").st_mode & 0o6000 == 0
    assert made(call, None).value >= 0


@pytest.mark.parametrize("call", REFUSED_AND_NOT_TRIED_WITHOUT, ids=shown)
def test_call_is_refused(call: Call) -> None:
    assert made(call) == REFUSED


def test_queue_is_opened_and_made_without_mode_bits() -> None:
    name = f"prespawn-test-{os.getpid()}"

    def act() -> tuple[int, int, int]:
        absent = raw(NUMBERS["mq_open"], name, os.O_RDONLY, 0o7777, 0)
        there = raw(NUMBERS["mq_open"], name, os.O_CREAT | os.O_RDWR, 0o600, 0)
        return absent.errno, there.errno, raw(NUMBERS["mq_unlink"], name).errno

    assert forked(FILTER, act) == Seen((errno.ENOENT, 0, 0))


def test_each_rule_has_its_calls() -> None:
    """Every alternative lets a call pass that is made above, and of every such call one is refused."""
    meaning = Meaning(VALUE, "x86_64")
    conditional = {name for name in meaning.rules if meaning.conditions(name)}
    assert conditional - {call[0] for call in REFUSED_BY_THE_FILTER_ALONE + REFUSED_AND_NOT_TRIED_WITHOUT} == set()
    for name in conditional - {"ioctl", "mq_open", "socketpair"}:  # each in a test of its own, or by `socket`
        calls = [(*call[1:], *(0,) * 6) for call in PASSES if call[0] == name]
        for _, conditions in meaning.rules[name]:
            assert any(all(holds(one, call[one["index"]]) for one in conditions) for call in calls), (name, conditions)


COMMANDS = [arg for rule in VALUE["syscalls"] if rule["names"] == ["ioctl"] for arg in rule["args"]]


@pytest.mark.parametrize("command", [arg.get("valueTwo", arg["value"]) for arg in COMMANDS], ids=hex)
def test_terminal_command_reaches_the_kernel(command: int) -> None:
    """Which has no such descriptor; its neighbour does not come so far, unless it is on the list as well."""
    listed = {arg.get("valueTwo", arg["value"]) for arg in COMMANDS}
    assert made(("ioctl", -1, command, 0)) == Seen(-1, errno.EBADF)
    for other in {command ^ 1 << 16, command + 1, command - 1} - listed:
        assert made(("ioctl", -1, other, 0)) == REFUSED


def test_openat2_is_absent_and_its_mode_with_it() -> None:
    how = struct.pack("<QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    assert made(("openat2", AT_HERE, "new", how, len(how))) == ABSENT
    assert not os.path.exists("new")
    assert made(("openat2", AT_HERE, "new", how, len(how)), None).value >= 0


def test_clone3_is_absent_and_its_flags_with_it() -> None:
    assert made(("clone3", bytes(64), 0)) == ABSENT
    assert made(("clone3", bytes(64), 0), None) == Seen(-1, errno.EINVAL)


def typed(command: int) -> Seen:
    """Type into the terminal that is the controlling one of the process."""
    slave = os.open(os.ttyname(pty.openpty()[1]), os.O_RDWR)  # the first terminal of a session leader becomes it
    return raw(NUMBERS["ioctl"], slave, command, b"\n")


@pytest.mark.parametrize("command", [0x5412, GARBAGE | 0x5412], ids=hex)
def test_nothing_is_typed_into_the_terminal(command: int) -> None:
    assert forked(FILTER, lambda: typed(command)) == REFUSED
    with open("/proc/sys/dev/tty/legacy_tiocsti", encoding="ascii") as switch:
        if switch.read().strip() == "1":
            assert forked(None, lambda: typed(command)) == Seen(0)


# --- other ABIs


def test_a_call_of_32_bits_is_killed() -> None:
    getpid = 20
    if forked(None, lambda: filtered.by_interrupt(getpid)).killed:
        pytest.skip("this kernel has no 32-bit calls")
    assert forked(FILTER, lambda: filtered.by_interrupt(getpid)) == KILLED


@pytest.mark.parametrize("number", [0, 39, 512, 547, (1 << 30) - 1])
def test_a_call_of_x32_is_killed(number: int) -> None:
    assert forked(FILTER, lambda: raw(0x40000000 | number, -1, 0, 0)) == KILLED


@pytest.mark.parametrize("number", [337, 423, 472, 512, 547, 999, 0x3FFFFFFF, -1, -(1 << 31)])
def test_a_number_of_no_call_is_absent(number: int) -> None:
    assert forked(FILTER, lambda: raw(number, 0, 0, 0)) == ABSENT
