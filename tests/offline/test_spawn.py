"""The one module that starts processes: what the new process gets, and that nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from prespawn.spawn import SETPRIV, as_user, spawn


def output(program: str, vector: tuple[str, ...], more: dict[int, int] | None = None) -> bytes:
    """Return what a program writes to its stdout, with an empty stdin."""
    reading, writing = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    pid = spawn(program, vector, {0: null, 1: writing, 2: null, **(more or {})})
    os.close(null)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        content = file.read()
    assert os.waitpid(pid, 0)[1] == 0
    return content


def test_environment_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRESPAWN_CANARY", "1")
    assert output("/usr/bin/env", ("env",)) == b""


def test_first_argument_is_the_given_word() -> None:
    assert output("/bin/sh", ("a-word", "-c", "echo $0")) == b"a-word\n"


def test_descriptors_are_the_named_ones_and_no_other() -> None:
    null = os.open("/dev/null", os.O_RDONLY)
    stray = [os.dup2(null, number, inheritable=True) for number in (70, 71, 155)]
    listed = output("/bin/sh", ("sh", "-c", "cd /proc/self/fd; echo *"), {3: null, 4: null})
    for fd in (*stray, null):
        os.close(fd)
    assert set(listed.split()) - {b"5"} == {b"0", b"1", b"2", b"3", b"4"}  # 5 is the shell's directory while it lists


def test_descriptors_may_be_handed_over_crosswise() -> None:
    one, other = os.pipe(), os.pipe()
    os.write(one[1], b"one")
    os.write(other[1], b"other")
    low, high = sorted((one[0], other[0]))
    text = output("/bin/sh", ("sh", "-c", "head -c3 <&4; head -c3 <&3"), {3: high, 4: low})
    assert text == b"oneoth"
    for fd in (*one, *other):
        os.close(fd)


def test_signals_are_at_their_defaults_and_none_is_blocked() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        status = output("/bin/cat", ("cat", "/proc/self/status"))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN  # in here
    lines = dict(line.split(b":\t", 1) for line in status.splitlines() if line.startswith(b"Sig"))
    internal = 1 << 31 | 1 << 32  # 32 and 33, which glibc keeps to itself and sets up anew in every threaded program
    assert (int(lines[b"SigBlk"], 16), int(lines[b"SigIgn"], 16) & ~internal) == (0, 0)


def test_session_is_its_own() -> None:
    pid, session = output("/bin/sh", ("sh", "-c", "echo $$; cut -d' ' -f6 /proc/$$/stat")).split()
    assert pid == session


def test_each_start_raises_one_audit_event() -> None:
    code = (
        "import os,sys\nfrom prespawn.spawn import spawn\nseen=[]\n"
        "sys.addaudithook(lambda name, found: seen.append(found) if name == 'prespawn.spawn' else None)\n"
        "os.waitpid(spawn('/bin/true', ('true',), {0: 0, 1: 1, 2: 2}), 0)\nprint(seen)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[('/bin/true',)]\n"


def test_program_that_is_not_there_leaves_no_process() -> None:
    with pytest.raises(FileNotFoundError):
        spawn("/no/such/program", ("x",), {0: 0, 1: 1, 2: 2})
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_another_user_is_become_with_no_way_back() -> None:
    assert as_user(60001, 60002, "/x/bwrap", ("--args", "3", "--", "true")) == (
        "setpriv", "--reuid", "60001", "--regid", "60002", "--clear-groups", "--no-new-privs", "--bounding-set", "-all",
        "--", "/x/bwrap", "--args", "3", "--", "true",
    )  # fmt: skip
    assert SETPRIV == "/usr/bin/setpriv"
