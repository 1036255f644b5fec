"""The descriptors that one run opens, closed together however it ends, and what to say where the system has no more."""

from __future__ import annotations

import errno
import os

from prespawn.policy.errors import HostError

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


def limited(error: BaseException | None, more: int) -> HostError | None:
    """Return ``descriptor-limit`` for an error that the limit of open files made, None for any other.

    ``more`` is how many are wanted at once beside those that are open. A number that the limit does not reach, as one
    from before it was lowered, is refused by other words of the system's than one too many.
    """
    if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.EBADF, errno.EINVAL):
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max(_highest(), soft if error.errno == errno.EMFILE else 0) + more + 1
    if needed <= soft:
        return None
    found = f"the limit of open files is {soft}, and needed here are {needed} or more"
    return HostError("descriptor-limit", f"{found}; raise it, as with `ulimit -n {needed}`")


def _highest() -> int:
    """Return the highest number that is open; 0 where there is none left to look with."""
    try:
        return max(map(int, os.listdir("/proc/self/fd")), default=0)
    except OSError:
        return 0
