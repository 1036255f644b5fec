"""The registry: one durable row for each run that was ever reserved, so that a run id is never used twice.

Owns the words of a row and the order in which they may follow one another::

    reserved ──► started ──► ended
        └──────────┴──► ended | never-started | lost

``reserve`` is durable before it returns, and so before anything is spawned; after it the id is used for ever, whatever
becomes of the run, and no row is ever removed. Whoever settles a row that is settled already, or starts a run that
is no longer reserved (``recover`` was faster, or the other way round), gets an error and changes nothing: each run has
exactly one end.

What a row says is canonical JSON with a closed set of keys, and every value is a digest, a count or a single word:
there is no field that could hold an argument, an environment value, a prompt or output. Where the file may lie is
``registry_place``'s, how it is made, proved and changed ``registry_file``'s.

One ``Registry`` serves all threads of one process; it must not be carried across a fork. Nothing else in the process
may open ``registry.db`` except with ``O_PATH``: closing any other descriptor of it drops SQLite's locks.

Example::

    with Registry.open(site.state_dir) as registry:
        registry.reserve("fix-login-42", entry)
        registry.started("fix-login-42", {"pid": pid, "start_time": ticks, "boot_id": boot, "started_at": now})
        registry.ended("fix-login-42", {"how": "exited", "status": 0, "ended_at": now})
"""

from __future__ import annotations

import os
import time

from prespawn.policy.canonical import canonical
from prespawn.policy.errors import HostError, InputError, ReadError
from prespawn.policy.known import Unknown
from prespawn.policy.reader import read
from prespawn.policy.record import Record
from prespawn.policy.spelling import is_run_id, shown_word

from .registry_place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from .registry_file import RegistryFile, Row

    Value = str | int
    Form = Callable[[object], bool]

RESERVED, STARTED, ENDED, NEVER_STARTED, LOST = "reserved", "started", "ended", "never-started", "lost"
STATES = (RESERVED, STARTED, ENDED, NEVER_STARTED, LOST)
UNSETTLED = (RESERVED, STARTED)

_USED = "SELECT 1 FROM run WHERE run_id = ?"
_SPENT = "SELECT 1 FROM run WHERE approval = ?"
_RESERVE = "INSERT INTO run (run_id, state, entry, approval) VALUES (?, 'reserved', ?, ?) ON CONFLICT DO NOTHING"
_ONE = "SELECT run_id, state, entry, start, finish FROM run WHERE run_id = ?"
_ALL = "SELECT run_id, state, entry, start, finish FROM run ORDER BY rowid"
_UNSETTLED = "SELECT run_id, state, entry, start, finish FROM run WHERE state IN ('reserved', 'started') ORDER BY rowid"

_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.@+:")
_HEX = frozenset("0123456789abcdef")


def generated_run_id(now: int) -> str:
    """Return a fresh run id: the second (UTC) and 40 random bits, so that ids sort by time; ``now`` in Unix seconds."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{os.urandom(5).hex()}"


def is_digest(value: object) -> bool:
    """Return whether ``value`` is ``sha256:`` and 64 hex digits."""
    return isinstance(value, str) and len(value) == 71 and value.startswith("sha256:") and _HEX.issuperset(value[7:])


def is_word(value: object) -> bool:
    """Return whether ``value`` is one word of at most 128 letters, digits and ``-_.@+:``."""
    return isinstance(value, str) and 0 < len(value) <= 128 and _WORD.issuperset(value)


def is_count(value: object) -> bool:
    """Return whether ``value`` is an integer from 0 that fits 63 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


class Shape(Record):
    """The keys that one part of a row must have, and those that it may have, with the form of each value."""

    required: Mapping[str, Form]
    optional: Mapping[str, Form]

    def misfit(self, values: Mapping[str, object]) -> str | None:
        """Return the first key that is missing, unknown or has a value of the wrong form, or nothing."""
        forms = {**self.required, **self.optional}
        keys = sorted((self.required.keys() - values.keys()) | (values.keys() - forms.keys()))
        return next(iter(keys or [key for key in sorted(values) if not forms[key](values[key])]), None)

    def text(self, part: str, values: Mapping[str, Value]) -> str:
        """Return the canonical text of ``values``; ``ValueError`` if they do not fit, with the key, not the value."""
        misfit = self.misfit(values)
        if misfit is not None:
            raise ValueError(
                f"{part} of a registry row: `{shown_word(misfit)}` is missing, unknown or of the wrong form"
            )
        return canonical(dict(values))


ENTRY = Shape(
    required={
        "declaration": is_digest,
        "policy": is_digest,
        "facts": is_digest,
        "blockers": is_digest,
        "profile": is_word,
        "adapter": is_word,
        "level": is_word,  # the level that was earned before the start; that of the held run stands in the end
        "parent_pid": is_count,
        "parent_start_time": is_count,
        "parent_boot_id": is_word,
        "reserved_at": is_count,
    },
    optional={"approval": is_digest, "origin": is_word, "plan": is_digest, "receipt": is_digest},
)
"""A start time is field 22 of ``/proc/PID/stat`` (ticks since boot): with pid and boot id it names one process."""

START = Shape(
    required={"pid": is_count, "start_time": is_count, "boot_id": is_word, "started_at": is_count},
    optional={"init_pid": is_count, "init_start_time": is_count, "receipt": is_digest},
)

END = Shape(
    required={"how": is_word, "ended_at": is_count},
    optional={
        "status": is_count,  # exit status, where there was one
        "signal": is_count,
        "reached": is_word,  # the limits at which the kernel stopped something, joined by `+`
        "level": is_word,
        "contract": is_word,
        "receipt": is_digest,
    },
)
"""``how`` is the cause: one of ``outcome.HOWS``, the id of the error that let nothing start, or ``interrupted``."""


class Run(Record):
    """One row; ``start`` and ``end`` are ``None`` until there is something to say."""

    run_id: str
    state: str
    entry: Mapping[str, Value]
    start: Mapping[str, Value] | None
    end: Mapping[str, Value] | None


class Registry:
    """An open registry; a context manager. Every method raises ``HostError`` where the file fails.

    ``registry-not-written``: a directory or disk that cannot be written, a file that stayed locked, or a row that is
    not in the state that the change needs. ``registry-corrupt``: what is there is not a registry, or not a whole one.
    """

    def __init__(self, file: RegistryFile) -> None:
        self._file = file

    @classmethod
    def open(cls, state: str | int) -> Registry:
        """Open the registry in a state directory, a path or an open descriptor, and make it if there is none.

        The directory must exist (``trusted_path.state_directory`` makes one). A path is walked and judged whole; of a
        descriptor only the directory itself is judged, the way to it was its opener's to walk.
        """
        with Place.open(state) as place:
            return cls._opened(place)

    @classmethod
    def open_to_read(cls, place: Place) -> Registry:
        """Open the registry that is at a place, only to be asked."""
        return cls._opened(place, to_read=True)

    @classmethod
    def _opened(cls, place: Place, *, to_read: bool = False) -> Registry:
        from .registry_file import RegistryFile  # SQLite costs 3 ms at every start

        return cls(RegistryFile.open_to_read(place) if to_read else RegistryFile.open(place))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the object is of no use afterwards."""
        self._file.close()

    def used(self, run_id: object) -> bool:
        """Return whether a run with this id was ever reserved; what is no run id never was."""
        return isinstance(run_id, str) and is_run_id(run_id) and bool(self._file.rows(_USED, run_id))

    def spent(self, approval: str) -> bool:
        """Return whether the approval with this id has started a run."""
        return bool(self._file.rows(_SPENT, approval))

    def reserve(self, run_id: str, entry: Mapping[str, Value], *, approval: str | None = None) -> None:
        """Take an id for ever and write down what is about to run (``ENTRY``), durable when this returns.

        ``approval`` is the id of the one that is used up by this: both happen, or neither. ``InputError``
        ``run-id-invalid``, ``HostError`` ``run-id-reused``, ``approval-used``.
        """
        if not is_run_id(run_id):
            allowed = "1 to 63 of `a` to `z`, `0` to `9` and `-`, not beginning with `-`"
            raise InputError("run-id-invalid", f"run_id is `{shown_word(str(run_id))}`; allowed here: {allowed}")
        if self._file.change(_RESERVE, run_id, ENTRY.text("entry", entry), approval):
            return
        if self.used(run_id):
            message = f"run_id is `{run_id}`, which the registry has already; allowed: an id that was never used"
            raise HostError("run-id-reused", f"{message}; leave `run_id` out to have one assigned")
        message = f"approval `{shown_word(str(approval))}` has started a run already; allowed: one that was not used"
        raise HostError("approval-used", f"{message}; ask the operator again")

    def started(self, run_id: str, start: Mapping[str, Value]) -> None:
        """Write down which process the run is (``START``).

        This outlives the death of the parent at once, but a power failure only from the next durable change on: after
        one the process is gone too, and the boot id in the entry says so. A held process need not wait for a disk.
        """
        self._move(run_id, STARTED, (RESERVED,), "start", START.text("start", start), durable=False)

    def ended(self, run_id: str, end: Mapping[str, Value]) -> None:
        """Settle a run whose process was seen to end (``END``), also if its start could not be written."""
        self._move(run_id, ENDED, UNSETTLED, "finish", END.text("end", end))

    def never_started(self, run_id: str, end: Mapping[str, Value]) -> None:
        """Settle a run of which no work was begun (``END``): never spawned, or killed before its release."""
        self._move(run_id, NEVER_STARTED, UNSETTLED, "finish", END.text("end", end))

    def lost(self, run_id: str, end: Mapping[str, Value]) -> None:
        """Settle a run of which nobody saw the end (``END``)."""
        self._move(run_id, LOST, UNSETTLED, "finish", END.text("end", end))

    def run(self, run_id: str) -> Run | None:
        """Return one row, or nothing."""
        rows = self._file.rows(_ONE, run_id) if is_run_id(run_id) else []
        return self._run(rows[0]) if rows else None

    def unsettled(self) -> tuple[Run, ...]:
        """Return every run without an end, oldest first; those that have one cost nothing."""
        return tuple(self._run(row) for row in self._file.rows(_UNSETTLED))

    def runs(self) -> Iterator[Run]:
        """Yield every run, oldest first."""
        for row in self._file.rows(_ALL):
            yield self._run(row)

    def _move(self, run_id: str, to: str, since: tuple[str, ...], column: str, text: str, durable: bool = True) -> None:
        change = f"UPDATE run SET state = ?, {column} = ? WHERE run_id = ? AND state IN (?, ?)"
        if is_run_id(run_id) and self._file.change(change, to, text, run_id, since[0], since[-1], durable=durable):
            return
        row = self.run(run_id)
        found = f"is `{row.state}`" if row else "is not in the registry"
        allowed = " or ".join(f"`{state}`" for state in since)
        raise HostError("registry-not-written", f"run `{shown_word(str(run_id))}` {found}; to become `{to}`: {allowed}")

    def _run(self, row: Row) -> Run:
        run_id, state, entry, start, end = row
        if run_id is None or not is_run_id(run_id) or state not in STATES or entry is None:
            raise self._file.corrupt("holds a row that is no run's")
        return Run(
            run_id=run_id,
            state=state,
            entry=self._values(run_id, entry, ENTRY),
            start=None if start is None else self._values(run_id, start, START),
            end=None if end is None else self._values(run_id, end, END),
        )

    def _values(self, run_id: str, text: str, shape: Shape) -> Mapping[str, Value]:
        try:
            values = read(text.encode(), source=run_id, family="input", syntax="json").value
        except ReadError:
            values = None
        if isinstance(values, dict) and shape.misfit(values) is None:
            return values
        raise self._file.corrupt(f"holds values for run `{run_id}` that no registry wrote")


MOVES: Mapping[str, Callable[[Registry, str, Mapping[str, Value]], None]] = {
    ENDED: Registry.ended, NEVER_STARTED: Registry.never_started, LOST: Registry.lost,
}  # fmt: skip
"""How a row comes to each of its ends."""


class Standing(Record):
    """What a look at a state directory told, ``Unknown`` with a reason where it could not.

    ``registry``: ready, absent (there is none, or no directory yet) or corrupt. ``run_id_used``: whether the id that
    was asked about is taken; ``approval_used``: whether the approval that was asked about has started a run.
    """

    registry: str | Unknown
    run_id_used: bool | Unknown
    approval_used: bool | Unknown = False


def standing(state_dir: str, run_id: object, approval: str | None = None) -> Standing:
    """Look how the registry below ``state_dir`` stands, and whether it has ``run_id`` and ``approval``.

    Make nothing, raise nothing. Where nothing is asked for it is not opened (SQLite costs 5 ms): the launch does, and
    fails closed.
    """
    try:
        place = Place.look(state_dir)
        if place is None:
            return Standing(registry="absent", run_id_used=False)
        with place:
            if not place.has_registry():
                return Standing(registry="absent", run_id_used=False)
            if not isinstance(run_id, str) and approval is None:
                return Standing(registry="ready", run_id_used=False)
            with Registry._opened(place, to_read=True) as registry:
                spent = approval is not None and registry.spent(approval)
                return Standing(registry="ready", run_id_used=registry.used(run_id), approval_used=spent)
    except HostError as error:
        unknown = Unknown(reason=str(error))
        found = "corrupt" if error.id == "registry-corrupt" else unknown
        return Standing(registry=found, run_id_used=unknown, approval_used=unknown)
