"""A run's log: made where it was checked, once, and readable by its owner alone.

What stands in it is the profile's to say: ``worker`` logs hold what the worker writes, up to the ceiling on output;
``lifecycle`` logs hold the parent's lines alone, one JSON text each, below a first line of fixed width with the number
of bytes that the worker has written so far. The file is made with ``O_EXCL`` and without following a link, below the
descriptor of the directory that was checked: whatever stands there already, nothing of it is touched.
"""

from __future__ import annotations

import os

from prespawn.policy.canonical import canonical
from prespawn.policy.errors import HostError

from .pumps import WIDTH, write_whole
from .trusted_path import made, named, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from prespawn.checker.plan import Plan

    from .facts import Held
    from .pumps import Streams

WORKER, LIFECYCLE = "worker", "lifecycle"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class RunLog:
    """The open file of one run; a context. ``kind`` is worker or lifecycle, None where the plan has no log at all."""

    __slots__ = ("_fd", "kind")

    def __init__(self, fd: int, kind: str | None) -> None:
        self._fd, self.kind = fd, kind

    @classmethod
    def create(cls, plan: Plan, state: int, held: Held) -> Self:
        """Make the file that the plan names; ``state`` is the open state directory.

        ``HostError`` ``log-path-exists`` if something stands there, ``log-not-written`` if it cannot be made.
        """
        if plan.log is None:
            return cls(-1, None)
        directory, _, name = plan.log.rpartition("/")
        try:
            above = _above(state, directory, held)
            try:
                fd = os.open(name, _NEW, 0o600, dir_fd=above)
            finally:
                os.close(above)
        except FileExistsError:
            message = f"something stands at {named(plan.log)} already; allowed: a name that is not taken"
            raise HostError("log-path-exists", message) from None
        except OSError as error:
            allowed = f"a directory that uid {os.geteuid()} can write"
            raise HostError("log-not-written", f"{named(plan.log)}: {reason(error)}; allowed: {allowed}") from error
        kind = plan.profile.output.log
        if kind == LIFECYCLE:
            write_whole(fd, b"0" * WIDTH + b"\n")
        return cls(fd, kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def streams(self, given: Streams) -> Streams:
        """Return the caller's streams with this log beside them."""
        if self.kind == WORKER:
            return given.replace(log=self._fd)
        return given.replace(tally=self._fd) if self.kind == LIFECYCLE else given

    def line(self, event: str, at: int, **said: str | int) -> None:
        """Write one line of the parent's; a log that takes no more loses it, as the registry has it too."""
        if self.kind != LIFECYCLE:
            return
        try:
            write_whole(self._fd, canonical({"event": event, "at": at, **said}).encode("ascii") + b"\n")
        except OSError:
            return


def _above(state: int, directory: str, held: Held) -> int:
    """Return the directory that was checked, or the one that is reserved and that nobody has made yet."""
    if held.log >= 0:
        return os.dup(held.log)
    path = os.readlink(f"/proc/self/fd/{state}")
    return made(os.dup(state), path, tuple(directory.split("/")))
