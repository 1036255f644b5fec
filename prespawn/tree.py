"""A workspace as it is now, as far as a file contract asks: types, modes, links, contents.

The walk goes by descriptors, follows no link and opens nothing but directories and regular files, these without ever
blocking. What the contract lets a run change is neither read nor kept, so a contract of ``**`` costs one listing. A
second walk is told what the first one saw: it reads a file only where the size is the same, so that a run cannot make
its parent read what it wrote. Both are bounded by a number of entries that is handed in; beyond it nothing is claimed.

It descends into file systems that are mounted below, and it is only worth something while nobody writes there: before
the worker's first instruction, and after its last process is gone.
"""

from __future__ import annotations

import errno
import os
from stat import S_ISDIR, S_ISLNK, S_ISREG

from prespawn.checker.contract import GIT, ROOT, Cover
from prespawn.policy.canonical import digest

from .facts.scan import is_closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from prespawn.checker.contract import Contract, Entry, Tree

    Level = tuple[str, int, Iterator[tuple[str, bool]]]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
_AT_ONCE = 1 << 20  # bytes that are read at once


def tree(root: int, contract: Contract, most: int, *, held: tuple[str, ...] = (), before: Tree | None = None) -> Tree:
    """Return what the contract does not let a run change, of the tree below a descriptor, by relative path.

    ``held`` are directories or files that the run cannot write at all; they are left out. ``before`` is the first
    look, for a second one. ``OverflowError`` if there are more than ``most`` entries, ``OSError`` with the place as
    its ``filename`` if something cannot be looked at or changes meanwhile: then nothing is known.
    """
    walk = _Walk(Cover(contract), most, frozenset(held), before)
    try:
        walk.run(root)
    except OSError as error:
        raise OSError(error.errno, _reason(error), walk.place) from error
    return walk.found


def tree_digest(seen: Tree) -> str:
    """Return the digest of a tree: two trees have the same only if they are the same."""
    return digest([[path, *entry[:3], entry[3].hex()] for path, entry in sorted(seen.items())])


def _reason(error: OSError) -> str:
    return "it changed while it was looked at" if error.errno in _CHANGED else error.strerror or "no reason given"


class _Walk:
    """Depth first, one descriptor a level; a tree that is deeper than descriptors last is not known."""

    __slots__ = ("before", "cover", "found", "held", "left", "place", "sha256")

    def __init__(self, cover: Cover, most: int, held: frozenset[str], before: Tree | None) -> None:
        from hashlib import sha256  # with the processor's own instructions; 3 ms to import

        self.cover, self.left, self.held, self.before = cover, most, held, before
        self.found: dict[str, Entry] = {}
        self.place = ROOT
        self.sha256: Callable[[bytes], Any] = sha256

    def run(self, root: int) -> None:
        levels: list[Level] = []
        try:
            fd = os.open(ROOT, _DIRECTORY, dir_fd=root)
            if not self.cover.everything:
                self.found[ROOT] = _plain(os.fstat(fd))
            levels.append(self._level("", fd, self.cover.everything))
            while levels:
                prefix, fd, below = levels[-1]
                name, free = next(below, ("", False))
                if not name:
                    os.close(levels.pop()[1])
                    continue
                self.place = prefix + name
                opened = self._enter(fd, name, self.place)
                if opened >= 0:
                    levels.append(self._level(f"{self.place}/", opened, free))
        finally:
            for _, fd, _ in levels:
                os.close(fd)

    def _level(self, prefix: str, fd: int, free: bool) -> Level:
        """Look at the entries of one directory and return what is below it; owns ``fd`` until then.

        ``free``: everything below may be changed, but for what is called ``.git``.
        """
        below: list[tuple[str, bool]] = []
        bases, exact, held, left = self.cover.bases, self.cover.exact, self.held, self.left
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        raise OverflowError
                    name = entry.name
                    path = prefix + name
                    if path in held:
                        continue
                    self.place = path
                    covered = name != GIT if free else path in exact  # above it nothing is covered
                    if entry.is_dir(follow_symlinks=False):
                        below.append((name, (free and covered) or path in bases))
                        if not covered:
                            self.found[path] = _plain(entry.stat(follow_symlinks=False))
                    elif not covered:
                        self.found[path] = self._entry(fd, name, path, entry.is_file(follow_symlinks=False))
        except BaseException:
            os.close(fd)
            raise
        self.left = left
        return prefix, fd, iter(below)

    def _entry(self, directory: int, name: str, path: str, is_file: bool) -> Entry:
        if is_file:
            return self._file(directory, name, path)
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if S_ISREG(status.st_mode) or S_ISDIR(status.st_mode):
            raise OSError(errno.ENOTDIR, "")
        if S_ISLNK(status.st_mode):
            return status.st_mode, status.st_nlink, status.st_size, os.fsencode(os.readlink(name, dir_fd=directory))
        return status.st_mode, status.st_nlink, 0, b"%d" % status.st_rdev

    def _file(self, directory: int, name: str, path: str) -> Entry:
        try:
            fd = os.open(name, _FILE, dir_fd=directory)
        except PermissionError:
            return _unread(os.stat(name, dir_fd=directory, follow_symlinks=False))
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode):
                raise OSError(errno.ENOTDIR, "")
            size = status.st_size
            content = self._content(fd, size) if self._is_asked(path, size) else b""
            return status.st_mode, status.st_nlink, size, content
        finally:
            os.close(fd)

    def _is_asked(self, path: str, size: int) -> bool:
        """Say whether the content could still be the one from before."""
        if self.before is None:
            return True
        entry = self.before.get(path)
        return entry is not None and S_ISREG(entry[0]) and entry[2] == size

    def _content(self, fd: int, size: int) -> bytes:
        """Return the digest of a file; one that does not have the size that it said is being written to."""
        piece = os.read(fd, min(size, _AT_ONCE) + 1)
        if len(piece) == size:
            return self.sha256(piece).digest()  # type: ignore[no-any-return]
        state, read = self.sha256(piece), len(piece)
        while piece and read <= size:
            piece = os.read(fd, _AT_ONCE)
            state.update(piece)
            read += len(piece)
        if read != size:
            raise OSError(errno.ELOOP, "")
        return state.digest()  # type: ignore[no-any-return]

    def _enter(self, fd: int, name: str, path: str) -> int:
        """Open a directory below; -1 if nothing in it can be reached by this caller, nor by their worker."""
        try:
            return os.open(name, _DIRECTORY, dir_fd=fd)
        except PermissionError:
            if not is_closed(fd, name):
                raise
            self.found[path] = _unread(os.stat(name, dir_fd=fd, follow_symlinks=False))
            return -1


def _plain(status: os.stat_result) -> Entry:
    """Return a directory: its links and size follow from what is in it."""
    return status.st_mode, 0, 0, b""


def _unread(status: os.stat_result) -> Entry:
    """Return what may not be read: nobody can write it either without its times being set by the kernel."""
    stamp = f"{status.st_dev} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"
    return status.st_mode, status.st_nlink, status.st_size, stamp.encode("ascii")
