"""``registry.db``: one SQLite file in the state directory, made once, judged before it is opened, never made anew.

Owns what is in the file, how a change becomes durable, and which of the two faults an error of SQLite's is. Where the
file lies and who may have it is ``registry_place``'s, what its rows mean ``registry``'s.

- *Made whole or not at all*: a new file is finished under another name and then linked to its own, which fails if
  that exists. So a crash leaves no half-made registry, and an empty file is not a new one: it is one that lost its
  rows, and taking it for new would let every run id be used again.
- *Write-ahead logging, ``synchronous`` FULL*: one flush makes a change durable (the rollback journal needs four, and
  in its default mode a committed row can still vanish in a power failure), and no file is opened by name afterwards, so
  a thread with mounts or an identity of its own can write too. At rest there is the one file; after a crash ``-wal``
  and ``-shm`` stay beside it, and the next to open it works them in.
- *No descriptor of ours is ever opened on it* (see ``registry_place``). SQLite itself opens its files no-follow, in a
  directory that nobody else can write.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # `threading` costs 3 ms

from prespawn.policy.errors import HostError
from prespawn.policy.spelling import shown_word

from .durable import unfinished
from .registry_place import NAME, PAGE, corrupt, not_written
from .trusted_path import named, reason

try:
    import _sqlite3 as sqlite  # the package around it brings `datetime`, 1.4 ms at every start
except ImportError:
    import sqlite3 as sqlite  # type: ignore[no-redef]  # the same module by its public name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .registry_place import Place

    Row = tuple[str | None, ...]

_APPLICATION, _VERSION = 0x70737077, 2  # "pspw"; the version is that of the table below
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE = 10.0  # seconds to wait for another process's change
_SCHEMA = f"""
PRAGMA page_size = {PAGE};
PRAGMA journal_mode = WAL;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE run (
    run_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'started', 'ended', 'never-started', 'lost')),
    entry TEXT NOT NULL,
    start TEXT,
    finish TEXT CHECK ((finish IS NULL) = (state IN ('reserved', 'started'))),
    approval TEXT UNIQUE
);
CREATE INDEX unsettled ON run (state) WHERE state IN ('reserved', 'started');
CREATE TRIGGER kept BEFORE DELETE ON run BEGIN SELECT RAISE (ABORT, 'a run id is used for ever'); END;
"""
_FAILURES = (sqlite.DatabaseError, UnicodeDecodeError)  # the second where SQLite's own message quotes damaged text
_NOT_A_REGISTRY = frozenset({  # SQLite's primary result codes that speak of the content; all others speak of the host
    1,  # SQLITE_ERROR: no such table or column
    11,  # SQLITE_CORRUPT
    17,  # SQLITE_SCHEMA
    20,  # SQLITE_MISMATCH
    24,  # SQLITE_FORMAT
    26,  # SQLITE_NOTADB
})  # fmt: skip


class RegistryFile:
    """The open file, for all threads of the process that opened it; every failure is a ``HostError``."""

    def __init__(self, connection: sqlite.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._lock = allocate_lock()
        self._process = os.getpid()

    @classmethod
    def open(cls, place: Place) -> RegistryFile:
        """Open the registry at a place, and make it if there is none."""
        if not place.has_registry():
            _create(place)
        return cls(_connect(place), place.path)

    @classmethod
    def open_to_read(cls, place: Place) -> RegistryFile:
        """Open the registry that is at a place only to be asked: the directory need not be writable then."""
        at_rest = not place.is_writable() and not place.has_log()
        return cls(_connect(place, at_rest=at_rest), place.path)

    def close(self) -> None:
        """Close the file, working its log in if nobody else has it open; after a fork only its opener does."""
        if os.getpid() == self._process:
            with self._lock:
                self._connection.close()

    def rows(self, query: str, *values: str) -> list[Row]:
        """Return what a query finds."""
        self._stay()
        with self._lock:
            return self._run(query, values)[0]

    def change(self, change: str, *values: str | None, durable: bool = True) -> bool:
        """Make one change, all of it or nothing, and return whether it found a row to make it on.

        If not ``durable`` it is flushed with the next change that is; it is whole either way.
        """
        self._stay()
        with self._lock:
            if durable:
                return self._run(change, values)[1] == 1
            self._run("PRAGMA synchronous = NORMAL")
            try:
                return self._run(change, values)[1] == 1
            finally:
                self._run("PRAGMA synchronous = FULL")

    def corrupt(self, found: str) -> HostError:
        """Return the error for content that no registry has."""
        return corrupt(self._path, found)

    def _stay(self) -> None:
        """Refuse to be used after a fork: SQLite's locks stay with the process that took them, and two would write."""
        if os.getpid() != self._process:
            message = f"{named(self._path)} was opened by process {self._process} and carried across a fork"
            raise HostError("registry-not-written", f"{message}; allowed: a registry of this process; open it here")

    def _run(self, statement: str, values: tuple[str | None, ...] = ()) -> tuple[list[Row], int]:
        try:
            cursor = self._connection.execute(statement, values)
            return cursor.fetchall(), cursor.rowcount
        except _FAILURES as error:
            raise _failure(error, self._path) from None


def _create(place: Place) -> None:
    """Make an empty registry, unless another process is faster."""
    name = unfinished(NAME)
    try:
        os.close(os.open(name, _NEW, 0o600, dir_fd=place.directory))
        _fill(f"/proc/self/fd/{place.directory}/{name}")
        _link(place.directory, name)
        os.fsync(place.directory)
    except OSError as error:
        raise not_written(place.path, reason(error)) from None
    except _FAILURES as error:
        raise _failure(error, place.path) from None
    finally:
        for left in (name, f"{name}-wal", f"{name}-shm"):
            _unlink(place.directory, left)


def _fill(path: str) -> None:
    connection = _opened(path)
    try:
        connection.executescript(_SCHEMA)
    finally:
        connection.close()  # works the log in and flushes the file


def _link(directory: int, name: str) -> None:
    try:
        os.link(name, NAME, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        return  # a whole one, by the same way


def _unlink(directory: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return  # not there, or in a directory that lets nothing go: it is never taken for a registry


def _connect(place: Place, *, at_rest: bool = False) -> sqlite.Connection:
    """Return a connection to a file that proved to be a registry of this version."""
    try:
        connection = _opened(f"/proc/self/fd/{place.directory}/{NAME}", at_rest=at_rest)
    except _FAILURES as error:
        raise _failure(error, place.path) from None
    try:
        _prove(connection, place)
        connection.execute("PRAGMA synchronous = FULL")  # some builds of SQLite flush less by default
    except _FAILURES as error:
        connection.close()
        raise _failure(error, place.path) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _prove(connection: sqlite.Connection, place: Place) -> None:
    for name, expected in (("application_id", _APPLICATION), ("user_version", _VERSION)):
        (found,) = connection.execute(f"PRAGMA {name}").fetchone()
        if found != expected:
            raise corrupt(place.path, f"has `{name}` {found}, not {expected}")
    connection.execute("SELECT approval FROM run LIMIT 1").fetchall()  # the table is there, and so is its first page
    if place.is_cut():
        connection.execute("PRAGMA wal_checkpoint").fetchall()  # after a full disk the log has the whole page
        if place.is_cut():
            raise corrupt(place.path, "does not end with a whole page")


def _opened(path: str, *, at_rest: bool = False) -> sqlite.Connection:
    """Return a connection to a file that exists (``mode=rw`` makes none), each statement a transaction of its own.

    A file ``at_rest``, with no log beside it, is read as it lies, without the companions that SQLite would make.
    """
    how = "mode=ro&immutable=1" if at_rest else "mode=rw"
    return sqlite.connect(
        f"file:{path}?{how}", uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )


def _failure(error: sqlite.DatabaseError | UnicodeDecodeError, path: str) -> HostError:
    """Return which fault an error of SQLite's is; one without a code is the driver's own."""
    code, words = getattr(error, "sqlite_errorcode", None), shown_word(str(error), 200)
    if code is None:
        if isinstance(error, (sqlite.OperationalError, UnicodeDecodeError)):
            return corrupt(path, "holds text that is not UTF-8")  # the driver's words would show it
        raise error  # a mistake in this package
    return corrupt(path, words) if code & 0xFF in _NOT_A_REGISTRY else not_written(path, words)
