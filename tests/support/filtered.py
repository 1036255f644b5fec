"""Real system calls in a forked process, with or without a filter: what they come to, or what they are killed by."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import pickle
import signal
from typing import TYPE_CHECKING, Any, NamedTuple

from . import as_user

if TYPE_CHECKING:
    from collections.abc import Callable

NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
AT_HERE = -100  # AT_FDCWD

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


class Seen(NamedTuple):
    """What a call came to: ``value`` and the errno if that is -1; or the signal that ended the process."""

    value: Any = None
    errno: int = 0
    killed: int = 0


class Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def load(program: bytes) -> None:
    """Put a filter on this process for good."""
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    loaded = Program(len(program) // 8, program)
    if libc.prctl(SECCOMP, FILTER, ctypes.byref(loaded), 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


def raw(number: int, *arguments: Any) -> Seen:
    """Make one call by its number; a text stands for a pointer to it, bytes for one to a copy of them."""
    kept = [_argument(argument) for argument in arguments]
    ctypes.set_errno(0)
    value = libc.syscall(ctypes.c_long(number), *kept)
    return Seen(value, ctypes.get_errno() if value == -1 else 0)


def forked(
    program: bytes | None, act: Callable[[], Any], uid: int | None = None, first: Callable[[], Any] = lambda: None
) -> Seen:
    """Return what an act returns in a forked process of its own session, as a user if one is named, under a filter.

    ``first`` is done there before the filter is put on.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        faulthandler.disable()  # a signal is an answer here
        os.close(reading)
        os.setsid()
        if uid is not None:
            as_user.become(uid)
        first()
        if program is not None:
            load(program)
        os.write(writing, pickle.dumps(act()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return Seen(killed=os.WTERMSIG(status))
    assert answer, "the process ended without an answer"
    result = pickle.loads(answer)
    return result if isinstance(result, Seen) else Seen(result)


def by_interrupt(number: int) -> Seen:
    """Make one call of the 32-bit ABI, by ``int 0x80``: machine code of x86_64."""
    code = (
        b"\x53\xb8" + number.to_bytes(4, "little") + b"\x31\xdb\xcd\x80\x5b\xc3"
    )  # push rbx; mov eax; xor ebx; …; ret
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return Seen(function())


def _argument(argument: Any) -> Any:
    if isinstance(argument, str):
        return ctypes.c_char_p(os.fsencode(argument))
    if isinstance(argument, bytes):
        return ctypes.create_string_buffer(argument, len(argument))
    return ctypes.c_ulonglong(argument & (1 << 64) - 1)


KILLED = Seen(killed=signal.SIGSYS)
