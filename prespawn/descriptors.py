"""The descriptors that one run opens, closed together however it ends."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Descriptors:
    """Owns descriptors; used as a context. All of them are close-on-exec: only a spawn hands any on, by name."""

    __slots__ = ("_owned",)

    def __init__(self) -> None:
        self._owned: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in tuple(self._owned):
            self.close(fd)

    def own(self, fd: int) -> int:
        """Take a descriptor over and return it."""
        self._owned.add(fd)
        return fd

    def close(self, fd: int) -> None:
        """Close a descriptor; one that is closed already, or never was ours, stays as it is."""
        if fd in self._owned:
            self._owned.remove(fd)
            os.close(fd)

    def pipe(self) -> tuple[int, int]:
        """Return reading and writing end of a new pipe."""
        reading, writing = os.pipe()
        return self.own(reading), self.own(writing)

    def filled(self, content: bytes) -> int:
        """Return the reading end of a pipe that holds a text and ends; a page at most, so that nothing blocks."""
        reading, writing = self.pipe()
        if os.write(writing, content) != len(content):
            raise OSError(f"a pipe takes less than {len(content)} bytes at once")
        self.close(writing)
        return reading
