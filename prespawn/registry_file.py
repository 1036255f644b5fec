"""``registry.db``: one SQLite file in the state directory, made once, judged before it is opened, never made anew.

Owns the file: where it may lie, who may have it, what it must look like, how a change becomes durable, and which of
the two faults an error of SQLite's is. What the rows mean is ``registry``'s.

- *Made whole or not at all*: a new file is finished under another name and then linked to its own, which fails if
  that exists. So a crash leaves no half-made registry, and an empty file is not a new one: it is one that lost its
  rows, and taking it for new would let every run id be used again.
- *Write-ahead logging, ``synchronous`` FULL*: one flush makes a change durable (the rollback journal needs four, and
  in its default mode a committed row can still vanish in a power failure), and no file is opened by name afterwards, so
  a thread with mounts or an identity of its own can write too. At rest there is the one file; after a crash ``-wal``
  and ``-shm`` stay beside it, and the next to open it works them in.
- *No descriptor of ours is ever opened on it*: closing one would drop the locks that SQLite holds for the whole
  process. SQLite itself opens its files no-follow, and the directory is one that nobody else can write.
"""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock  # `threading` costs 3 ms

from prespawn.policy.errors import HostError
from prespawn.policy.reader import shown

from .trusted_path import Walk, judged, kind, named, reason, state_directory

try:
    import _sqlite3 as sqlite  # the package around it brings `datetime`, 1.4 ms at every start
except ImportError:
    import sqlite3 as sqlite  # type: ignore[no-redef]  # the same module by its public name

TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = tuple[str | None, ...]

NAME = "registry.db"
_APPLICATION, _VERSION = 0x70737077, 1  # "pspw"; the version is that of the table below
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE = 10.0  # seconds to wait for another process's change
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE run (
    run_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'started', 'ended', 'never-started', 'lost')),
    entry TEXT NOT NULL,
    start TEXT,
    finish TEXT CHECK ((finish IS NULL) = (state IN ('reserved', 'started')))
);
CREATE INDEX unsettled ON run (state) WHERE state IN ('reserved', 'started');
CREATE TRIGGER kept BEFORE DELETE ON run BEGIN SELECT RAISE (ABORT, 'a run id is used for ever'); END;
"""
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
    def open(cls, state: str | int) -> RegistryFile:
        """Open the file in a state directory (path or descriptor), and make it if there is none."""
        directory = state_directory(state, create=False) if isinstance(state, str) else _duplicate(state)
        try:
            path = _judged_path(directory)
            if not _is_there(directory, path):
                _create(directory, path)
            return cls(_connect(directory, path), path)
        finally:
            os.close(directory)

    @classmethod
    def open_existing(cls, state: str) -> RegistryFile | None:
        """Open the file in the state directory at a path if both are there, and make nothing."""
        if _is_missing(state):
            return None
        directory = state_directory(state, create=False)
        try:
            path = _judged_path(directory)
            return cls(_connect(directory, path), path) if _is_there(directory, path) else None
        finally:
            os.close(directory)

    def close(self) -> None:
        """Close the file, working its log in if nobody else has it open."""
        with self._lock:
            if os.getpid() == self._process:
                self._connection.close()

    def rows(self, query: str, *values: str) -> list[Row]:
        """Return what a query finds."""
        with self._lock:
            return self._run(query, values).fetchall()

    def change(self, change: str, *values: str, durable: bool = True) -> bool:
        """Make one change, all of it or nothing, and return whether it found a row to make it on.

        If not ``durable`` it is flushed with the next change that is; it is whole either way.
        """
        with self._lock:
            if durable:
                return self._run(change, values).rowcount == 1
            self._run("PRAGMA synchronous = NORMAL")
            try:
                return self._run(change, values).rowcount == 1
            finally:
                self._run("PRAGMA synchronous = FULL")

    def corrupt(self, found: str) -> HostError:
        """Return the error for content that no registry has."""
        return _corrupt(self._path, found)

    def _run(self, statement: str, values: tuple[str, ...] = ()) -> sqlite.Cursor:
        if os.getpid() != self._process:  # SQLite's locks stay with the process that took them: two would write at once
            message = f"{named(self._path)} was opened by process {self._process} and carried across a fork"
            raise HostError("registry-not-written", f"{message}; allowed: a registry of this process; open it here")
        try:
            return self._connection.execute(statement, values)
        except sqlite.DatabaseError as error:
            raise _failure(error, self._path) from None


def _duplicate(directory: int) -> int:
    try:
        return os.dup(directory)
    except OSError as error:
        raise _not_written("state directory", reason(error)) from None


def _judged_path(directory: int) -> str:
    """Return the path of the registry in an open directory that nobody else can write."""
    try:
        path = os.readlink(f"/proc/self/fd/{directory}")
        fault = judged(os.fstat(directory), path)
    except OSError as error:
        raise _not_written("state directory", reason(error)) from None
    if fault:
        raise HostError("registry-not-parent-controlled", f"state directory {fault}")
    return os.path.join(path, NAME)


def _is_missing(state: str) -> bool:
    try:
        with Walk(state, follow_last=True, sticky=True) as way:
            return bool(way.missing)
    except (OSError, ValueError):
        return False  # not to be seen is not missing; opening it says what is wrong


def _is_there(directory: int, path: str) -> bool:
    """Return whether the directory has a registry; ``HostError`` for a file of that name that cannot be one."""
    left = [f"{NAME}{end}" for end in ("-journal", "-wal", "-shm") if _status(directory, f"{NAME}{end}", path)]
    status = _status(directory, NAME, path)  # after the look at what belongs to it, which never is there before it
    if status is None:
        if left:
            raise _corrupt(path, f"is gone, and `{left[0]}` of it is left")
        return False
    if not stat.S_ISREG(status.st_mode):
        raise _corrupt(path, f"is {kind(status)}")
    fault = judged(status, path)
    if fault:
        raise HostError("registry-not-parent-controlled", str(fault))
    if status.st_size == 0:
        raise _corrupt(path, "is empty")
    return True


def _status(directory: int, name: str, path: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _not_written(path, reason(error)) from None


def _create(directory: int, path: str) -> None:
    """Make an empty registry, unless another process is faster."""
    name = f"{NAME}.{os.urandom(8).hex()}.new"
    try:
        os.close(os.open(name, _NEW, 0o600, dir_fd=directory))
        _fill(f"/proc/self/fd/{directory}/{name}")
        _link(directory, name)
        os.fsync(directory)
    except OSError as error:
        raise _not_written(path, reason(error)) from None
    except sqlite.DatabaseError as error:
        raise _failure(error, path) from None
    finally:
        for left in (name, f"{name}-wal", f"{name}-shm"):
            _unlink(directory, left)


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


def _connect(directory: int, path: str) -> sqlite.Connection:
    """Return a connection to a file that proved to be a registry of this version."""
    try:
        connection = _opened(f"/proc/self/fd/{directory}/{NAME}")
    except sqlite.DatabaseError as error:
        raise _failure(error, path) from None
    try:
        for name, expected in (("application_id", _APPLICATION), ("user_version", _VERSION)):
            (found,) = connection.execute(f"PRAGMA {name}").fetchone()
            if found != expected:
                raise _corrupt(path, f"has `{name}` {found}, not {expected}")
        connection.execute("SELECT 1 FROM run LIMIT 1").fetchall()  # the table is there, and so is its first page
        connection.execute("PRAGMA synchronous = FULL")  # some builds of SQLite flush less by default
    except sqlite.DatabaseError as error:
        connection.close()
        raise _failure(error, path) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _opened(path: str) -> sqlite.Connection:
    """Return a connection to a file that exists (``mode=rw`` makes none), each statement a transaction of its own."""
    return sqlite.connect(
        f"file:{path}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )


def _failure(error: sqlite.DatabaseError, path: str) -> HostError:
    """Return which fault an error of SQLite's is; errors without a code are the driver's, about content or about us."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and not isinstance(error, sqlite.OperationalError):
        raise error  # a mistake in this package
    words = shown(str(error), 200)
    return _corrupt(path, words) if code is None or code & 0xFF in _NOT_A_REGISTRY else _not_written(path, words)


def _corrupt(path: str, found: str) -> HostError:
    message = f"{named(path)}: {found}; allowed: a whole registry of this version"
    remedy = "restore it, or move it away together with all reports and receipts: its run ids could then be used again"
    return HostError("registry-corrupt", f"{message}; {remedy}")


def _not_written(path: str, found: str) -> HostError:
    message = f"{named(path)}: {found}; allowed: a file that uid {os.geteuid()} can write, with space left"
    return HostError("registry-not-written", f"{message}; free it, or name another `state_dir` in the site")
