"""Faults of the system, put into a run at one of its calls: an error, or the end of the whole parent.

``Faults`` stands before every function through which the parent asks the kernel for something that can fail, counts the
calls of the process, and at one of them does what it is told, instead of it. What cannot fail on a descriptor that is
open (``close``, a write to an eventfd) is let through.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from prespawn import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    Act = Callable[[str], None]

OF_OS = (
    "open", "read", "write", "pread", "pwrite", "fsync", "link", "unlink", "mkdir", "pipe", "eventfd", "posix_spawn",
    "pidfd_open", "fstat", "stat", "lstat", "readlink", "listdir", "scandir", "dup", "fchmod", "memfd_create",
    "set_blocking", "utime", "statvfs",
)  # fmt: skip
OF_KERNEL = (
    "ptrace", "event_message", "statx", "open_in_root", "private_mounts", "mount_tmpfs", "clone_mount",
    "set_mount_attributes", "attach_mount",
)  # fmt: skip


class Faults:
    """Counts calls while it is in place; at call number ``at`` (from 1) it does ``act``, once."""

    def __init__(self, at: int, act: Act) -> None:
        self.calls: list[str] = []
        self._at, self._act, self._lock = at, act, threading.Lock()
        self._kept: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Faults:
        for module, names in ((os, OF_OS), (kernel, OF_KERNEL)):
            for name in names:
                if hasattr(module, name):
                    self._replace(module, name)
        return self

    def __exit__(self, *_: object) -> None:
        for module, name, real in self._kept:
            setattr(module, name, real)

    def _replace(self, module: Any, name: str) -> None:
        real = getattr(module, name)

        def called(*words: Any, **named: Any) -> Any:
            with self._lock:
                self.calls.append(name)
                due = len(self.calls) == self._at
            if due:
                self._act(name)
            return real(*words, **named)

        self._kept.append((module, name, real))
        setattr(module, name, called)


def failing(code: int) -> Act:
    """Return an act that raises what the system would, with no words of its own."""

    def act(name: str) -> None:
        raise OSError(code, os.strerror(code))

    return act


def killed(name: str) -> None:
    """End this process at once, as no handler can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # another thread's signal may take a moment
