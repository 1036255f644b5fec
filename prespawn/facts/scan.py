"""One walk through a tree that a run will see: sockets, setuid files, devices, names of credentials.

The walk goes by descriptors, follows no link, reads no file and opens nothing but directories. It descends into what is
mounted below as well, and does not see what lies beneath there: that there are mounts is another fact. It is bounded
by a number that is handed in; beyond it nothing is claimed.
"""

from __future__ import annotations

import errno
import os
from stat import S_ISBLK, S_ISCHR, S_ISGID, S_ISREG, S_ISSOCK, S_ISUID

from prespawn.policy.record import Record

from .look import unknown, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from prespawn.policy.lists import NamedList

SHOWN = 5  # of each kind, the first by name: enough to act on, and a message stays readable
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGED = (errno.ENOTDIR, errno.ELOOP)


class Scan(Record):
    """What was found, relative paths sorted, at most ``SHOWN`` of each: ``sockets``, ``setuid`` files (or setgid, or
    with capabilities), ``devices``, ``top`` (names of the top level) and ``named`` (at any depth) that their lists
    hold."""

    sockets: tuple[str, ...]
    setuid: tuple[str, ...]
    devices: tuple[str, ...]
    top: tuple[str, ...]
    named: tuple[str, ...]


def scan(
    root: int, most: int, *, top: NamedList | None = None, anywhere: NamedList | None = None, capabilities: bool = False
) -> Scan:
    """Walk the tree below a descriptor; with ``capabilities`` each file is also asked for some of its own.

    Every field is ``Unknown`` if there are more than ``most`` entries, or something there cannot be read.
    """
    walk = _Walk(most, anywhere, capabilities)
    try:
        walk.run(root)
    except OverflowError:
        return _unseen(unknown(f"more than {most} entries"))
    except OSError as error:
        return _unseen(why(OSError(error.errno, error.strerror), walk.place))
    names = walk.top if top is not None else ()
    return Scan(
        sockets=_some(walk.sockets), setuid=_some(walk.setuid), devices=_some(walk.devices),
        top=tuple(sorted(name for name in names if top is not None and top.holds(name))), named=_some(walk.named),
    )  # fmt: skip


def _some(found: list[str]) -> tuple[str, ...]:
    return tuple(sorted(found)[:SHOWN])


def _unseen(reason: Any) -> Scan:
    return Scan(sockets=reason, setuid=reason, devices=reason, top=reason, named=reason)


class _Walk:
    """Depth first, one descriptor a level; a tree that is deeper than descriptors last is not known."""

    __slots__ = ("anywhere", "capabilities", "devices", "left", "named", "place", "setuid", "sockets", "top")

    def __init__(self, most: int, anywhere: NamedList | None, capabilities: bool) -> None:
        self.left, self.anywhere, self.capabilities = most, anywhere, capabilities
        self.place = "."
        self.top: list[str] = []
        self.sockets: list[str] = []
        self.setuid: list[str] = []
        self.devices: list[str] = []
        self.named: list[str] = []

    def run(self, root: int) -> None:
        levels: list[tuple[str, int, Iterator[str]]] = []
        try:
            levels.append(self._level("", os.open(".", _DIRECTORY, dir_fd=root), self.top))
            while levels:
                prefix, fd, names = levels[-1]
                name = next(names, None)
                if name is None:
                    os.close(levels.pop()[1])
                    continue
                self.place = prefix + name
                below = self._enter(fd, name)
                if below >= 0:
                    levels.append(self._level(f"{prefix}{name}/", below, None))
        finally:
            for _, fd, _ in levels:
                os.close(fd)

    def _level(self, prefix: str, fd: int, names: list[str] | None) -> tuple[str, int, Iterator[str]]:
        """Look at the entries of one directory and return what is needed to go below it; owns ``fd`` until then."""
        directories: list[str] = []
        left, anywhere = self.left, self.anywhere
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        raise OverflowError
                    if names is not None:
                        names.append(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(entry.name)
                    elif not entry.is_symlink():
                        self._file(prefix, entry, fd)
                    if anywhere is not None and _is_named(anywhere, prefix, entry.name):
                        self.named.append(prefix + entry.name)
        except BaseException:
            os.close(fd)
            raise
        self.left = left
        return prefix, fd, iter(directories)

    def _file(self, prefix: str, entry: os.DirEntry[str], fd: int) -> None:
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except FileNotFoundError:
            return  # removed since it was listed
        if S_ISREG(mode):
            if mode & (S_ISUID | S_ISGID) or (self.capabilities and _has_capabilities(fd, entry.name)):
                self.setuid.append(prefix + entry.name)
        elif S_ISSOCK(mode):
            self.sockets.append(prefix + entry.name)
        elif S_ISCHR(mode) or S_ISBLK(mode):
            self.devices.append(prefix + entry.name)

    def _enter(self, fd: int, name: str) -> int:
        """Open a directory below; -1 if it is gone, or if nothing in it can be reached by this caller either."""
        try:
            return os.open(name, _DIRECTORY, dir_fd=fd)
        except FileNotFoundError:
            return -1
        except PermissionError:
            if is_closed(fd, name):
                return -1
            raise
        except OSError as error:
            if error.errno in _CHANGED:
                raise OSError(error.errno, "it changed while it was looked at") from error
            raise


def _has_capabilities(fd: int, name: str) -> bool:
    """Say whether a file gives capabilities to whoever executes it; see ``capabilities(7)``."""
    try:
        os.getxattr(f"/proc/self/fd/{fd}/{name}", "security.capability", follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP, errno.ENOENT):  # none, none on this file system, removed since
            return False
        raise
    return True


def _is_named(names: NamedList, prefix: str, name: str) -> bool:
    """Say whether a list holds a name, alone or with the directory it stands in (``.aws/credentials``)."""
    parent = prefix[:-1].rpartition("/")[2]
    return names.holds(name) or (parent != "" and names.holds(f"{parent}/{name}"))


def is_closed(fd: int, name: str) -> bool:
    """Say whether a directory belongs to somebody else and cannot be searched.

    An ordinary caller's worker has the caller's own identity: what the caller cannot reach and cannot open up, it
    cannot reach either. Root's worker is somebody else, so for root nothing is closed.
    """
    if os.geteuid() == 0:
        return False
    pinned = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    try:
        if os.fstat(pinned).st_uid == os.geteuid():
            return False
        os.close(os.open(".", os.O_PATH | os.O_CLOEXEC, dir_fd=pinned))
    except PermissionError:
        return True
    finally:
        os.close(pinned)
    return False
