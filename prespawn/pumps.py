"""What flows between a worker and its caller: stdin in, stdout and stderr out, each counted and none waited for.

A worker holds the ends of pipes and never a descriptor of the caller's, which may be a socket, a terminal or a file
that is open for writing too. Everything is moved by one thread between two polls; at most one piece per stream is in
memory, and nothing is read from the worker that the caller's side has not taken, so a slow reader slows the worker and
costs nothing here.

The caller's descriptors may be shared with other programs, so they are never made non-blocking: pipes and terminals
are opened a second time, and where that is refused no more is written at once than a pipe with room takes whole.
"""

from __future__ import annotations

import os
import select
from stat import S_ISCHR, S_ISFIFO

from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .descriptors import Descriptors

WIDTH = 20  # digits of a tally
PIECE = 1 << 16  # bytes that are moved at once: what a pipe holds
_ROOM = 1 << 12  # bytes that a pipe takes without blocking once it has reported room


class Streams(Record):
    """The caller's side of a run.

    ``stdin`` is a descriptor that is read to its end, or bytes; None gives the worker an empty one. What the worker
    writes goes to the descriptors ``stdout`` and ``stderr`` (None drops it), and both to ``log``, a regular file, as
    it comes. At the beginning of the regular file ``tally`` stands how many bytes of both there have been.
    """

    stdin: int | bytes | None = None
    stdout: int | None = None
    stderr: int | None = None
    log: int | None = None
    tally: int | None = None


class Ceiling:
    """A number of bytes that some streams may take together; ``reached`` once they wanted more."""

    __slots__ = ("left", "name", "reached")

    def __init__(self, name: str, most: int) -> None:
        self.name, self.left, self.reached = name, most, False

    def cut(self, piece: bytes) -> bytes:
        """Take a piece, and return what of it fits."""
        if len(piece) > self.left:
            self.reached = True
            piece = piece[: self.left]
        self.left -= len(piece)
        return piece


class Log(Ceiling):
    """A regular file to which all that is taken is written; a file system that takes no more is a ceiling as well."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        super().__init__("log", 0)
        self._fd = fd

    def cut(self, piece: bytes) -> bytes:
        """Write a piece, and return it."""
        try:
            write_whole(self._fd, piece)
        except OSError:
            self.reached = True
        return piece


class Tally(Ceiling):
    """A regular file at whose beginning the number of bytes that were taken stands, always at the same width."""

    __slots__ = ("_fd", "_taken")

    def __init__(self, fd: int) -> None:
        super().__init__("log", 0)
        self._fd, self._taken = fd, 0

    def cut(self, piece: bytes) -> bytes:
        """Count a piece, and return it."""
        self._taken += len(piece)
        try:
            os.pwrite(self._fd, b"%0*d" % (WIDTH, self._taken), 0)
        except OSError:
            self.reached = True
        return piece


def kept(streams: Streams) -> tuple[Ceiling, ...]:
    """Return what takes every piece beside the caller: the log, the tally."""
    log = () if streams.log is None else (Log(streams.log),)
    return (*log, *(() if streams.tally is None else (Tally(streams.tally),)))


class Side:
    """A descriptor of the caller's, used without ever blocking on it once it has polled ready."""

    __slots__ = ("at_once", "fd")

    def __init__(self, fd: int, flags: int, own: Descriptors) -> None:
        mode = os.fstat(fd).st_mode
        again = _opened_again(fd, flags) if S_ISFIFO(mode) or (S_ISCHR(mode) and os.isatty(fd)) else None
        self.fd = fd if again is None else own.own(again)
        self.at_once = _ROOM if again is None else PIECE


class Outward:
    """One stream from the worker to the caller."""

    __slots__ = ("_ceilings", "_own", "_pending", "_side", "_source", "taken", "undelivered")

    def __init__(self, source: int, side: Side | None, ceilings: tuple[Ceiling, ...], own: Descriptors) -> None:
        self._source: int | None = source
        self._side, self._ceilings, self._own = side, ceilings, own
        self._pending = b""
        self.taken = self.undelivered = 0

    @property
    def wish(self) -> tuple[int, int] | None:
        """The descriptor and event that this stream waits for; None when it has ended."""
        if self._pending and self._side is not None:
            return self._side.fd, select.POLLOUT
        return None if self._source is None else (self._source, select.POLLIN)

    @property
    def is_pending(self) -> bool:
        """Whether the caller's side has yet to take something."""
        return bool(self._pending)

    def move(self) -> None:
        """Move one piece in the direction that was waited for."""
        if self._pending:
            self._write()
        elif self._source is not None:
            self._read()

    def drain(self) -> None:
        """Read what is there, without waiting for more or for an end."""
        while self._source is not None and not self._pending and self._read():
            continue

    def drop(self) -> None:
        """Give up what the caller's side has not taken."""
        self.undelivered += len(self._pending)
        self._pending = b""

    def _read(self) -> bool:
        assert self._source is not None
        try:
            piece = os.read(self._source, PIECE)
        except BlockingIOError:
            return False
        if not piece:
            self._close()
            return False
        for ceiling in self._ceilings:
            piece = ceiling.cut(piece)
        self.taken += len(piece)
        self._pending = piece if self._side is not None else b""
        return not any(ceiling.reached for ceiling in self._ceilings)

    def _write(self) -> None:
        assert self._side is not None
        try:
            written = os.write(self._side.fd, self._pending[: self._side.at_once])
        except BlockingIOError:
            return
        except OSError:  # nobody reads any more: let the worker see that, as it would without us in between
            self.drop()
            self._side = None
            self._close()
            return
        self._pending = self._pending[written:]

    def _close(self) -> None:
        if self._source is not None:
            self._own.close(self._source)
            self._source = None


class Inward:
    """stdin, from the caller to the worker."""

    __slots__ = ("_own", "_pending", "_side", "_target")

    def __init__(self, given: Side | bytes | None, target: int, own: Descriptors) -> None:
        self._target: int | None = target
        self._own = own
        self._side = given if isinstance(given, Side) else None
        self._pending = given if isinstance(given, bytes) else b""
        self._end_if_done()

    @property
    def wish(self) -> tuple[int, int] | None:
        """The descriptor and event that this stream waits for; None when it has ended."""
        if self._target is None:
            return None
        if self._pending:
            return self._target, select.POLLOUT
        return None if self._side is None else (self._side.fd, select.POLLIN)

    def move(self) -> None:
        """Move one piece in the direction that was waited for."""
        assert self._target is not None
        try:
            if self._pending:
                self._pending = self._pending[os.write(self._target, self._pending[:PIECE]) :]
            elif self._side is not None:
                self._pending = os.read(self._side.fd, PIECE)
                self._side = self._side if self._pending else None
        except BlockingIOError:
            return
        except OSError:  # the worker has closed it, or the caller's side failed: either way nothing more will come
            self._pending, self._side = b"", None
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._target is not None and not self._pending and self._side is None:
            self._own.close(self._target)
            self._target = None


def wait(
    streams: Iterable[Outward | Inward], others: Iterable[int] = (), timeout: int | None = None
) -> set[int] | None:
    """Wait until something can move or another descriptor is readable; move it, and return the others that are.

    None if nothing happened within ``timeout`` milliseconds.
    """
    wishes: dict[int, list[tuple[int, Outward | Inward | None]]] = {fd: [(select.POLLIN, None)] for fd in others}
    for stream in streams:
        if stream.wish is not None:
            fd, event = stream.wish
            wishes.setdefault(fd, []).append((event, stream))
    poll = select.poll()
    for fd, wished in wishes.items():
        poll.register(fd, sum({event for event, _ in wished}))
    ready: set[int] = set()
    found = poll.poll(timeout)
    for fd, events in found:
        wished = wishes[fd]
        _, first = next((wish for wish in wished if wish[0] & events), wished[0])  # of an error any of them learns
        if first is None:
            ready.add(fd)
        else:
            first.move()  # one for each descriptor: after it a shared one may have no room left
    return ready if found else None


def write_whole(fd: int, content: bytes) -> None:
    """Write all of a text to a descriptor that blocks or never has to."""
    while content:
        content = content[os.write(fd, content) :]


def _opened_again(fd: int, flags: int) -> int | None:
    try:
        return os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
