"""Runs an adapter on one vector, and sees every program that comes of it.

The adapter is traced from before it gets the vector, and followed through every fork, so that no program can be
executed below it unseen: at each exec the kernel stops it, and its words are read from its own record. First in its
``PATH`` is a directory with a program of the worker's name that does nothing, so that what an adapter starts against
the rules is seen to start and does no harm. When the adapter has ended, so has everything that it left behind.
"""

from __future__ import annotations

import os
import select
import shutil
import tempfile
import time

from prespawn import kernel
from prespawn.descriptors import Descriptors
from prespawn.policy.errors import InputError
from prespawn.policy.record import Record
from prespawn.spawn import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT = 20.0  # seconds for one answer
MOST = 1 << 20  # bytes of an answer
_GATE = ("sh", "-c", 'read -r go <&3; exec 3<&-; exec "$@"', "sh")  # nothing of the adapter runs untraced
_STEP = 5  # milliseconds between two looks at what is traced


class Answer(Record):
    """What an adapter said, how it ended (None: not in time), and the words of every program that came of it."""

    said: bytes
    status: int | None
    executed: tuple[tuple[str, ...], ...]


def watched(command: Sequence[str], told: bytes, program: str | None) -> Answer:
    """Run a command on a text; ``program`` is the worker's. ``InputError`` ``usage`` if it cannot be started."""
    path = shutil.which(command[0])
    if path is None:
        raise InputError("usage", f"there is no program `{command[0]}`")
    with tempfile.TemporaryDirectory(prefix="prespawn-conform-") as trap, Descriptors() as own:
        if program and "/" not in program and "\0" not in program and program not in (".", ".."):
            _harmless(f"{trap}/{program}")
        environment = {**os.environ, "PATH": f"{trap}:{os.environ.get('PATH', os.defpath)}"}
        stdin, stdout, nothing = own.pipe(), own.pipe(), own.own(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
        gate = own.pipe()
        vector = (*_GATE, path, *command[1:])
        pid = spawn("/bin/sh", vector, {0: stdin[0], 1: stdout[1], 2: nothing, 3: gate[0]}, environment)
        try:
            kernel.ptrace(kernel.PTRACE_SEIZE, pid, kernel.TRACE_TO_EXEC)
            os.write(gate[1], b"\n")
            return _followed(pid, stdin[1], stdout[0], (stdin[0], stdout[1]), told, own)
        finally:
            _end()


def _harmless(path: str) -> None:
    """Put a program there that does nothing; a name that no file can have is none that could be started."""
    try:
        with open(path, "x", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 0\n")
        os.chmod(path, 0o755)
    except (OSError, ValueError):
        return


def _followed(
    pid: int, stdin: int, stdout: int, theirs: tuple[int, int], told: bytes, own: Descriptors
) -> Answer:  # fmt: skip
    for fd in theirs:
        own.close(fd)
    for fd in (stdin, stdout):
        os.set_blocking(fd, False)
    said, status = b"", None
    executed: list[tuple[str, ...]] = []
    until = time.monotonic() + TIMEOUT
    while status is None and time.monotonic() < until:
        told = _fed(stdin, told, own)
        said += _read(stdout, MOST - len(said))
        status = _stepped(pid, executed)
        poll = select.poll()
        poll.register(stdout, select.POLLIN)
        poll.poll(_STEP)
    said += _read(stdout, MOST - len(said))
    return Answer(said=said, status=status, executed=tuple(executed))


def _fed(stdin: int, told: bytes, own: Descriptors) -> bytes:
    try:
        told = told[os.write(stdin, told) :] if told else told
    except BlockingIOError:
        return told
    except OSError:
        told = b""
    if not told:
        own.close(stdin)
    return told


def _read(stdout: int, most: int) -> bytes:
    try:
        return os.read(stdout, most) if most > 0 else b""
    except BlockingIOError:
        return b""


def _stepped(adapter: int, executed: list[tuple[str, ...]]) -> int | None:
    """Let everything that is stopped go on, noting what was executed; return the adapter's status once it has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | kernel.WALL | kernel.WNOTHREAD)
        except ChildProcessError:
            return None
        if pid == 0:
            return None
        if not os.WIFSTOPPED(status):
            if pid == adapter:
                return os.waitstatus_to_exitcode(status)
            continue
        event = status >> 16
        if event == kernel.EVENT_EXEC:
            executed.append(_words(pid))
        try:
            kernel.ptrace(kernel.PTRACE_CONT, pid, 0 if event else os.WSTOPSIG(status))
        except ProcessLookupError:
            continue


def _words(pid: int) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return tuple(os.fsdecode(word) for word in file.read().split(b"\0")[:-1])
    except OSError:
        return ()


def _end() -> None:
    """End everything that is traced, and reap it."""
    while True:
        for pid in _traced():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, kernel.WALL | kernel.WNOTHREAD)
        except ChildProcessError:
            return


def _traced() -> list[int]:
    """Return every process that this one traces."""
    found, mine = [], b"TracerPid:\t%d\n" % os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/status", "rb") as file:
                    if mine in file.read():
                        found.append(int(name))
            except OSError:
                continue
    return found
