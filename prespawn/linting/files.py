"""Which files ``lint`` reads: those named on the line, and those below a directory whose name could be one of ours.

In a directory the walk is in order of names, whatever they hold: no link is followed, nothing but regular files is
opened (a FIFO never blocks), and depth and number of entries are bounded; where a bound is met, that is an error and no
silence. A file that is named may be a link, for its bytes are judged and not where they come from. What the bytes are
is left to ``ours``.
"""

from __future__ import annotations

import os
import stat

from prespawn.policy.errors import ReadError
from prespawn.policy.reader import DEFAULT_BOUNDS, read_error
from prespawn.policy.record import Record

from ..site_file import read_file
from ..trusted_path import reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIXES = (".yaml", ".yml", ".json")
DEEPEST = 32
MOST = 100_000  # entries of directories in one run
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Entry(Record):
    """One file: its bytes (one more than the reader takes, where it is too large), why there are none, or neither for
    what is passed over unopened. ``named`` says that it stands on the line."""

    path: str
    named: bool
    data: bytes | None = None
    error: ReadError | None = None


def entries(paths: Iterable[str]) -> Iterator[Entry]:
    """Yield every file of some paths once, in the order of the line and of names."""
    walk = _Walk()
    for path in paths:
        try:
            is_directory = stat.S_ISDIR(os.stat(path).st_mode)
        except (OSError, ValueError) as error:
            yield _failed(path, f"{reason(error)}; allowed: a file or directory that can be read", named=True)
            continue
        yield from walk.directory(path) if is_directory else walk.named(path)


def beside(directory: str) -> Iterator[Entry]:
    """Yield the YAML files that stand in a directory itself, to know of them; what cannot be read is left out."""
    try:
        names = sorted(name for name in os.listdir(directory or ".") if name.endswith(".yaml"))
        folder = os.open(directory or ".", _DIRECTORY & ~os.O_NOFOLLOW)
    except OSError:
        return
    try:
        found = (_Walk().file(name, os.path.join(directory, name), folder) for name in names[:MOST])
        yield from (entry for entry in found if entry is not None and entry.data is not None)
    finally:
        os.close(folder)


class _TooManyError(Exception):
    """The walk has seen as many entries as it may."""


class _Walk:
    """What one run has seen, by device and inode, and how many entries it may still see."""

    __slots__ = ("_left", "_seen")

    def __init__(self) -> None:
        self._left = MOST
        self._seen: set[tuple[int, int]] = set()

    def named(self, path: str) -> Iterator[Entry]:
        try:
            status = os.stat(path)
            if self._is_new(status):
                yield Entry(path=path, named=True, data=read_file(path, family="policy"))
        except OSError as error:  # gone since
            yield _failed(path, f"{reason(error)}; allowed: a regular file that can be read", named=True)
        except ReadError as error:
            yield Entry(path=path, named=True, error=error)

    def directory(self, path: str) -> Iterator[Entry]:
        try:
            folder = os.open(path, _DIRECTORY & ~os.O_NOFOLLOW)
        except OSError as error:
            yield _failed(path, f"{reason(error)}; allowed: a directory that can be read", named=True)
            return
        try:
            yield from self._below(folder, path, 0)
        except _TooManyError:
            yield _failed(path, f"more than {MOST} entries; allowed: fewer; name a smaller directory", named=True)

    def _below(self, folder: int, path: str, depth: int) -> Iterator[Entry]:
        """Yield what a directory holds, and close it."""
        try:
            names = sorted(os.listdir(folder)) if self._is_new(os.fstat(folder)) else []
            for name in names:
                self._left -= 1
                if self._left < 0:
                    raise _TooManyError
                yield from self._entry(folder, name, os.path.join(path, name), depth)
        except OSError as error:
            yield _failed(path, f"{reason(error)}; allowed: a directory that can be read")
        finally:
            os.close(folder)

    def _entry(self, folder: int, name: str, path: str, depth: int) -> Iterator[Entry]:
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode) and depth == DEEPEST:
                yield _failed(path, f"deeper than {DEEPEST} directories; name a smaller directory")
            elif stat.S_ISDIR(mode):
                yield from self._below(os.open(name, _DIRECTORY, dir_fd=folder), path, depth + 1)
            elif name.endswith(SUFFIXES):
                found = self.file(name, path, folder) if stat.S_ISREG(mode) else Entry(path=path, named=False)
                yield from () if found is None else (found,)
        except OSError as error:
            yield _failed(path, f"{reason(error)}; allowed: a file or directory that can be read")

    def file(self, name: str, path: str, folder: int) -> Entry | None:
        """Return a file of a directory, or None if it was seen before."""
        try:
            with open(os.open(name, _FILE, dir_fd=folder), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    return Entry(path=path, named=False)
                if not self._is_new(status):
                    return None
                return Entry(path=path, named=False, data=file.read(DEFAULT_BOUNDS.bytes + 1))
        except OSError as error:
            return _failed(path, f"{reason(error)}; allowed: a regular file that can be read")

    def _is_new(self, status: os.stat_result) -> bool:
        known, identity = len(self._seen), (status.st_dev, status.st_ino)
        self._seen.add(identity)
        return len(self._seen) > known


def _failed(path: str, message: str, *, named: bool = False) -> Entry:
    return Entry(path=path, named=named, error=read_error("unreadable", message, source=path, family="policy"))
