"""Reading the kernel's records of one process: bytes, or ``Unknown`` with the reason why not.

A ``Process`` holds the process's directory in ``/proc`` open. That directory belongs to the process and not to its
number: once the process is gone nothing can be read through it, whoever has the number then.
"""

from __future__ import annotations

import os

from prespawn.policy.known import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self, TypeVar

    Value = TypeVar("Value")

_PIECE = 1 << 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Process:
    """One process by its directory in ``/proc``; a context manager. Its methods raise ``OSError``."""

    __slots__ = ("_opened", "fd")

    def __init__(self, pid: int | str) -> None:
        self._opened: dict[str, int] = {}
        self.fd = self.folder(f"/proc/{pid}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._opened:
            os.close(self._opened.popitem()[1])

    def folder(self, name: str) -> int:
        """Open a directory by its name there (``ns``, ``root``), once, for as long as this is open."""
        if name not in self._opened:  # a process that is looked at until it settles holds no more than one look does
            self._opened[name] = os.open(name, _FOLDER, dir_fd=self.fd if self._opened else None)
        return self._opened[name]

    def content(self, name: str) -> bytes:
        """Return the whole of a record."""
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            pieces = []
            while piece := os.read(fd, _PIECE):
                pieces.append(piece)
        finally:
            os.close(fd)
        return b"".join(pieces)

    def text(self, name: str) -> str:
        """Return a record as text; a byte that is none stays recognisable."""
        return self.content(name).decode("utf-8", "backslashreplace")

    def names(self, name: str) -> str:
        """Return a record that holds names of files as text, each byte of a name kept as the system's calls take it."""
        return self.content(name).decode("utf-8", "surrogateescape")

    def link(self, name: str) -> str:
        """Return what a link there names."""
        return os.readlink(name, dir_fd=self.fd)

    def identity(self, name: str) -> tuple[int, int]:
        """Return device and inode of what a link there leads to."""
        found = os.stat(name, dir_fd=self.fd)
        return found.st_dev, found.st_ino


def known(what: str, read: Callable[[], Value]) -> Value | Unknown:
    """Return what a reading function returns, or ``Unknown`` if the system refuses it."""
    try:
        return read()
    except OSError as error:
        return refused(what, error)


def refused(what: str, error: OSError) -> Unknown:
    """Return what stands for a record that the system refuses."""
    return Unknown(reason=f"{what}: {(error.strerror or 'no reason given').lower()}")
