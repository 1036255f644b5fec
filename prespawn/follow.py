"""Following a run from another process: its state, and how many bytes it has written, while it goes on.

The registry says the state, the launch receipt where the log stands, the log's size (or the tally at its beginning) how
much was written. Nothing is asked twice without a reason: the wait is for a change in the state directory, in the
log, or for the parent's end, and where the kernel has no queue for that, for a bounded time. A run whose parent is gone
before its end was written has an end that nobody saw; ``recover`` settles it.
"""

from __future__ import annotations

import os
import select

from prespawn.policy.errors import InputError
from prespawn.policy.record import Record

from . import kernel
from .facts.walk import descend
from .process import boot_id, start_time
from .pumps import WIDTH
from .receipts import Receipts, verify
from .registry import UNSETTLED, Registry
from .registry_place import Place
from .run_log import LIFECYCLE
from .trusted_path import named, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from .registry import Run

_PACE = 100  # milliseconds between two reports at least, however fast a run writes
_PATIENCE = 1000  # milliseconds after which is looked again where no change can be waited for
_EVENTS = 1 << 16  # bytes of change records that are thrown away at once


class Progress(Record):
    """One look at a run: ``state`` as in the registry, ``written`` bytes so far (None where the run has no log).

    ``end`` is how it ended once it has; ``is_orphaned`` says that its parent is gone without having said so.
    """

    run_id: str
    state: str
    written: int | None
    end: Mapping[str, str | int] | None
    is_orphaned: bool

    @property
    def is_last(self) -> bool:
        """Whether nothing more will come of this run by itself."""
        return self.is_orphaned or self.state not in UNSETTLED


def follow(state_dir: str, run_id: str) -> Iterator[Progress]:
    """Yield what a run shows now, then every change of it, until it has an end or its parent is gone.

    ``InputError`` ``run-unknown`` if the registry has no such run; errors of the registry as everywhere.
    """
    with _Following(state_dir, run_id) as following:
        last: Progress | None = None
        while last is None or not last.is_last:
            seen = following.look()
            if seen != last:
                yield seen
                last = seen
            if not seen.is_last:
                following.wait()


class _Following:
    """What one follower holds open."""

    def __init__(self, state_dir: str, run_id: str) -> None:
        self.run_id, self._log, self._kind = run_id, -1, ""
        self._path: str | None = None
        self._is_fresh = True
        self._parent = self._queue = -1
        self._state = state_directory(state_dir, create=False)
        try:
            with Place.open(self._state) as place:
                if not place.has_registry():
                    raise _unknown(run_id)
                self._registry = Registry.open_to_read(place)
        except BaseException:
            os.close(self._state)
            raise
        self._queue = self._watched(self._state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._registry.close()
        for fd in (self._state, self._queue, self._log, self._parent):
            if fd >= 0:
                os.close(fd)

    def look(self) -> Progress:
        """Return what there is to see."""
        gone = self._is_gone()  # before the row is read: a parent that wrote the end and went is no orphan's
        run = self._registry.run(self.run_id)
        if run is None:
            raise _unknown(self.run_id)
        if self._parent < 0 and run.state in UNSETTLED:
            self._parent = _parent_of(run)
            gone = self._parent < 0
            run = self._registry.run(self.run_id) or run
        orphaned = gone and run.state in UNSETTLED
        return Progress(
            run_id=run.run_id, state=run.state, written=self._written(run), end=run.end, is_orphaned=orphaned
        )

    def wait(self) -> None:
        """Wait for a change, but never return twice within the pace."""
        poll = select.poll()
        poll.register(self._parent, select.POLLIN)
        poll.poll(_PACE)
        if self._queue < 0:
            poll.poll(_PATIENCE)
            return
        poll.register(self._queue, select.POLLIN)
        # a row is written before it can be read: after a change there is one more look without a reason
        poll.poll(_PATIENCE if self._is_fresh else None)
        try:
            self._is_fresh = bool(os.read(self._queue, _EVENTS))
        except BlockingIOError:
            self._is_fresh = False

    def _is_gone(self) -> bool:
        if self._parent < 0:
            return False
        poll = select.poll()
        poll.register(self._parent, select.POLLIN)
        return bool(poll.poll(0))

    def _watched(self, fd: int) -> int:
        try:
            queue = kernel.change_queue()
        except OSError:  # the user has as many as may be
            return -1
        try:
            kernel.watch(queue, fd)
        except OSError:
            os.close(queue)
            return -1
        return queue

    def _written(self, run: Run) -> int | None:
        if self._log < 0:
            self._open(run)
        if self._log < 0:
            return None if self._path is None else 0
        if self._kind == LIFECYCLE:
            digits = os.pread(self._log, WIDTH, 0)
            return int(digits) if digits.isdigit() else 0
        return os.fstat(self._log).st_size

    def _open(self, run: Run) -> None:
        """Find the log through the launch receipt; there may be none yet."""
        if self._path is None:
            try:
                with Receipts.open(self._state) as receipts:
                    (launch,) = verify(self.run_id, [str(run.entry["receipt"])], receipts.read)
            except (InputError, KeyError):  # not written yet, or not to be believed: then nothing is said of a log
                return
            log = launch["launch"]["log"]
            if log is None:
                return
            self._path, self._kind = log["path"], log["kind"]
        try:
            self._log = _opened(self._state, str(self._path))
            if self._queue >= 0:
                kernel.watch(self._queue, self._log)
        except OSError:
            return


def _opened(state: int, path: str) -> int:
    """Open the log below the state directory, no link followed; -1 if it is not there."""
    directory, _, name = path.rpartition("/")
    above = descend(state, directory)
    try:
        if above.fd < 0 or above.linked:
            return -1
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=above.fd)
    finally:
        if above.fd >= 0:
            os.close(above.fd)


def _parent_of(run: Run) -> int:
    """Return a pidfd of the process that runs it; -1 if that is no more."""
    if run.entry["parent_boot_id"] != boot_id():
        return -1
    pid = int(run.entry["parent_pid"])
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return -1
    try:
        if start_time(pid) == run.entry["parent_start_time"]:
            return pidfd
    except OSError:
        pass  # gone since: the same as another one in its place
    os.close(pidfd)
    return -1


def _unknown(run_id: str) -> InputError:
    message = f"the registry has no run {named(run_id)}; allowed here: the id of a run of this site"
    return InputError("run-unknown", message)
