"""Runs a function in a process of its own, as another user if asked, and notices what it leaves behind."""

from __future__ import annotations

import ctypes
import os
import pickle
import time
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_CHILD_SUBREAPER = 36
USER = 60001


def call(uid: int | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a forked process; ``AssertionError`` if it fails or leaves a process there.

    The process adopts every orphan below it, so nothing that it started can hide.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            answer = pickle.dumps(_called(uid, function, arguments))
        except BaseException:  # noqa: BLE001  # the parent shows it
            answer = pickle.dumps((None, traceback.format_exc()))
        with os.fdopen(writing, "wb") as file:
            file.write(answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        content = file.read()
    os.waitpid(pid, 0)
    result, failure = pickle.loads(content)
    assert failure is None, failure
    return result


def become(uid: int) -> None:
    """Drop to a user and group of the same number, for good, with further groups as a login has them."""
    os.setgroups([uid, uid + 1])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: as a process that this user started would be


def _called(uid: int | None, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if uid is not None:
        become(uid)
    result = function(*arguments)
    left = remaining(2.0)
    return result, f"left behind: {left}" if left else None


def remaining(seconds: float) -> list[str]:
    """Return the command lines of children that are alive after some time; reaps those that are not."""
    end = time.monotonic() + seconds
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG | 0x40000000)
        except ChildProcessError:
            return []
        if pid == 0:
            if time.monotonic() > end:
                return children()
            time.sleep(0.01)


def children() -> list[str]:
    """Return the command lines of this process's children."""
    found = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
            for pid in file.read().split():
                with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                    found.append(f"{pid} {cmdline.read()!r}")
    return found
