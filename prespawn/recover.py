"""Settles what parents left open that are gone: each run gets its one true end, and nothing of it is left.

A run is open while its row has no end. If the parent that the row names still runs, it is that parent's to settle.
Otherwise, by what was durable when it was killed (each step only after the one before it, see ``launch``)::

    no start in the row          the work was never released: never-started
    a start, no terminal receipt whether it ran on and how it ended nobody saw: lost
    a terminal receipt           the parent saw the end and only the row was not written: what the receipt says
    another boot                 what was not flushed is gone with it, so nothing is known: lost

Before that the sandbox is ended, if any of it is left: the kernel ends it with its parent, and here that is waited for.
Receipts that were written and that no row names yet are found by the one before them, and the chain goes on from there.
"""

from __future__ import annotations

import os
import select
import time
from fcntl import LOCK_EX, flock

from prespawn.policy.canonical import digest_bytes
from prespawn.policy.errors import HostError, InputError
from prespawn.policy.record import Record

from .durable import sweep
from .outcome import Outcome
from .process import boot_id, is_alive, start_time
from .receipts import ATTESTATION, LAUNCH, TERMINAL, Receipts, proved, terminal_receipt
from .registry import LOST, MOVES, NEVER_STARTED, Registry
from .registry_place import Place
from .stop import kill
from .trusted_path import reason, state_directory, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .registry import Run

    Found = dict[tuple[str, str | None], str]  # by run id and the receipt before it, the digest of a receipt

HOW = "parent-gone"
_PATIENCE = 10_000  # milliseconds for the kernel to end a process that was sent SIGKILL
_SLACK = 2  # seconds by which a file's time may be before the clock's


class Settled(Record):
    """One run that was open: its ``state`` now, as in the registry; None where its ``parent``, a pid, still runs."""

    run_id: str
    state: str | None
    parent: int


class Recovered(Record):
    """What was done: every run that was open, oldest first, and the names of unfinished files that were taken away."""

    runs: tuple[Settled, ...]
    swept: tuple[str, ...]


def recover(state_dir: str) -> Recovered:
    """Settle every open run of a state directory whose parent is gone; without a registry there is none.

    ``HostError`` as by the registry and the receipts, and ``process-not-ended`` for a sandbox that the kernel does not
    end: that run stays open.
    """
    if not _is_there(state_dir):
        return Recovered(runs=(), swept=())
    directory = state_directory(state_dir, create=False)
    try:
        flock(directory, LOCK_EX)  # until it is closed: of two at a time the second finds what the first has done
        with Registry.open(directory) as registry, Receipts.open(directory) as receipts:
            work = _Recovery(registry, receipts)
            runs = tuple(work.settled(run) for run in registry.unsettled())
            swept = (*sweep(directory), *receipts.sweep())
        tell(directory)
    except OSError as error:
        raise HostError("registry-not-written", f"what was left open cannot be settled: {reason(error)}") from error
    finally:
        os.close(directory)
    return Recovered(runs=runs, swept=swept)


class _Recovery:
    """The open registry and receipts, and what stands in the latter that no row names."""

    def __init__(self, registry: Registry, receipts: Receipts) -> None:
        self._registry, self._receipts, self._boot = registry, receipts, boot_id()
        self._found: Found | None = None

    def settled(self, run: Run) -> Settled:
        """Settle one run, unless its parent still runs."""
        parent, same_boot = int(run.entry["parent_pid"]), run.entry["parent_boot_id"] == self._boot
        if same_boot and is_alive(parent, int(run.entry["parent_start_time"])):
            return Settled(run_id=run.run_id, state=None, parent=parent)
        if same_boot and run.start is not None:
            _end_all(run.start)
        latest = self._registry.run(run.run_id)  # the parent may have written its end before it went
        if latest is None or latest.end is not None:
            return Settled(run_id=run.run_id, state=None if latest is None else latest.state, parent=parent)
        return Settled(run_id=run.run_id, state=self._settle(latest, same_boot), parent=parent)

    def _settle(self, run: Run, same_boot: bool) -> str:
        last, unwritten = self._last(run)
        terminal = self._next(run, last, TERMINAL)
        if terminal is not None:
            body = self._body(terminal)
            exit = {name: body["exit"][name] for name in ("status", "signal") if body["exit"][name] is not None}
            level = {} if body["level"] is None else {"level": body["level"]}
            contract = {} if body["contract"] is None else {"contract": body["contract"]["result"]}
            said = {"how": body["exit"]["how"], **exit, **level, **contract}
            return self._move(run, body["state"], {**said, "receipt": terminal})
        state = NEVER_STARTED if run.start is None and same_boot else LOST
        text = terminal_receipt(
            run.run_id,
            last,
            int(time.time()),
            state=state,
            outcome=Outcome(how=HOW),
            unwritten=unwritten,
            counted=False,
        )
        self._receipts.write(text)
        return self._move(run, state, {"how": HOW, "receipt": digest_bytes(text.encode("ascii"))})

    def _move(self, run: Run, state: str, end: dict[str, Any]) -> str:
        MOVES[state](self._registry, run.run_id, {**end, "ended_at": int(time.time())})
        return state

    def _last(self, run: Run) -> tuple[str | None, tuple[str, ...]]:
        """Return the digest of a run's last receipt before the terminal one, and what was never written."""
        first = str(run.entry["receipt"])
        if run.start is not None:
            return str(run.start.get("receipt", first)), ()
        if not self._is_written(first):
            return None, (first,)
        return self._next(run, first, ATTESTATION) or first, ()

    def _is_written(self, digest: str) -> bool:
        try:
            self._receipts.read(digest)
        except FileNotFoundError:
            return False
        return True

    def _next(self, run: Run, last: str | None, kind: str) -> str | None:
        """Return the receipt of a run that follows another one and that no row names yet."""
        if self._found is None:
            self._found = dict(self._unnamed())
        digest = self._found.get((run.run_id, last))
        return digest if digest is not None and proved(digest, self._receipts.read)["kind"] == kind else None

    def _unnamed(self) -> Iterator[tuple[tuple[str, str | None], str]]:
        """Yield every receipt since the first open run, by its run and the receipt before it."""
        first = min(int(run.entry["reserved_at"]) for run in self._registry.unsettled())
        for digest in self._receipts.names(since=first - _SLACK):
            try:
                receipt = proved(digest, self._receipts.read)
            except InputError:  # of what was tampered with no chain is made; `receipts verify` names it
                continue
            if receipt["kind"] != LAUNCH:
                yield (receipt["run_id"], receipt["previous"]), digest

    def _body(self, digest: str) -> Mapping[str, Any]:
        body: Mapping[str, Any] = proved(digest, self._receipts.read)[TERMINAL]
        return body


def _is_there(state_dir: str) -> bool:
    place = Place.look(state_dir)
    if place is None:
        return False
    with place:
        return place.has_registry()


def _end_all(start: Mapping[str, str | int]) -> None:
    """End what is left of a sandbox and wait until it is gone: init takes every process inside with it."""
    for name, began in (("init_pid", "init_start_time"), ("pid", "start_time")):
        if name in start:
            _end(int(start[name]), int(start[began]))


def _end(pid: int, started: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not _is_same(pid, started):  # asked with the descriptor held: from here on it is that process or none
            return
        kill(pidfd)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if not poll.poll(_PATIENCE):
            message = f"process {pid} of the run does not end; allowed: a kernel that ends what is sent SIGKILL"
            raise HostError("process-not-ended", f"{message}; run `prespawn recover` again")
    finally:
        os.close(pidfd)


def _is_same(pid: int, started: int) -> bool:
    try:
        return start_time(pid) == started
    except (FileNotFoundError, ProcessLookupError):
        return False
