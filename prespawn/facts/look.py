"""What all questions about the host share: who asks, the mount table, the password database, each read at most once.

``Look`` is made for one gathering and thrown away after it. It also keeps what the caller handed in: the policy's
lists, the bound on walks and the memo.
"""

from __future__ import annotations

import os
from stat import S_ISBLK, S_ISCHR, S_ISDIR, S_ISFIFO, S_ISLNK, S_ISREG, S_ISSOCK

from prespawn.policy.known import Unknown

from ..trusted_path import named, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping
    from typing import Any

    from prespawn.policy.lists import NamedList

    Identity = tuple[int, int]  # device and inode

FOLLOWED = os.O_PATH | os.O_CLOEXEC


def unknown(reason: str) -> Any:
    """Return ``Unknown``; typed as anything, because every field of a fact may be unknown."""
    return Unknown(reason=reason)


def why(error: OSError | ValueError, what: str) -> Any:
    """Return ``Unknown`` for an error of the system: what was looked at, where it stopped, and the system's word."""
    place = error.filename if isinstance(error, OSError) and isinstance(error.filename, str) else what
    stopped = f" at {named(place)}" if place != what else ""
    return unknown(f"{named(what)} cannot be looked at: {reason(error)}{stopped}")


def kind_of(mode: int) -> str:
    """Return the word for a file type."""
    for is_kind, word in _KINDS:
        if is_kind(mode):
            return word
    return "special"


_KINDS = (
    (S_ISREG, "file"), (S_ISDIR, "directory"), (S_ISLNK, "link"), (S_ISFIFO, "fifo"), (S_ISSOCK, "socket"),
    (S_ISCHR, "device"), (S_ISBLK, "device"),
)  # fmt: skip


def is_within(path: str, root: str) -> bool:
    """Say whether an absolute resolved path is a root or lies below it, by whole components."""
    return path == root or root == "/" or path.startswith(f"{root}/")


class Look:
    """One look at the host; see the module's text.

    ``most_entries`` bounds every walk through a tree; ``memo`` maps names to JSON values that an earlier look wrote.
    """

    __slots__ = ("_identities", "_mounts", "_resolved", "gid", "lists", "memo", "most_entries", "uid")

    def __init__(self, lists: Mapping[str, NamedList], most_entries: int, memo: MutableMapping[str, object]) -> None:
        self.uid, self.gid = os.geteuid(), os.getegid()
        self.lists, self.most_entries, self.memo = lists, most_entries, memo
        self._mounts: bytes | None = None
        self._resolved: dict[str, str] = {}
        self._identities: dict[str, Identity | None] = {}

    def filesystem(self, fd: int) -> str:
        """Return the type of the file system that a descriptor is on, by the descriptor's own mount."""
        _, found, rest = self._table().partition(b"\n%d " % _mount_of(fd))
        if not found:
            return unknown("its mount is not in this mount namespace")  # type: ignore[no-any-return]
        return rest.partition(b"\n")[0].partition(b" - ")[2].split(b" ")[0].decode("ascii", "backslashreplace")

    def mounted_below(self, fd: int, path: str) -> tuple[str, ...]:
        """Return what is mounted below a directory, as sorted paths relative to it; ``path`` is where it is.

        By the table and not by device numbers, for a second mount of the same file system has the same. What is below
        in name alone, because another mount hides it there, does not count.
        """
        prefix = _as_listed(path.rstrip("/")) + b"/"
        if b" " + prefix not in self._table():
            return ()
        rows = [line.split(b" ", 5) for line in self._table().split(b"\n") if line]
        above = {int(row[0]): int(row[1]) for row in rows}
        own = _mount_of(fd)
        below = (row for row in rows if row[4].startswith(prefix) and own in _and_parents(int(row[0]), above))
        return tuple(sorted(_unlisted(row[4][len(prefix) :]) for row in below))

    def _table(self) -> bytes:
        if self._mounts is None:
            self._mounts = b"\n" + content("/proc/self/mountinfo")
        return self._mounts

    def identity(self, path: str) -> Identity | None:
        """Return device and inode of a path, or None where it cannot be seen; remembered for this look."""
        if path not in self._identities:
            try:
                status = os.stat(path)
            except (OSError, ValueError):
                self._identities[path] = None
            else:
                self._identities[path] = status.st_dev, status.st_ino
        return self._identities[path]

    def resolved(self, path: str) -> str:
        """Return a trusted path without its links, as far as they can be read; remembered for this look."""
        if path not in self._resolved:
            try:
                self._resolved[path] = os.path.realpath(path)
            except OSError:  # it changed while it was read: its own name is what is left
                self._resolved[path] = path
        return self._resolved[path]

    def holds(self, root: str, path: str) -> bool:
        """Say whether a resolved directory is another resolved path or an ancestor of it.

        By whole components, and by identity: a directory that is mounted a second time elsewhere holds the same tree.
        """
        if is_within(path, root):
            return True
        wanted = self.identity(root)
        return wanted is not None and any(self.identity(above) == wanted for above in _and_above(path))


def all_homes() -> tuple[tuple[int, str], ...]:
    """Return owner and home of every account that the password database lists."""
    import pwd  # the first look-up loads the system's name services: about 1 ms

    return tuple((entry.pw_uid, entry.pw_dir) for entry in pwd.getpwall() if entry.pw_dir.startswith("/"))


def content(path: str) -> bytes:
    """Return what a file of the kernel's holds."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _mount_of(fd: int) -> int:
    (mount,) = (line for line in content(f"/proc/self/fdinfo/{fd}").split(b"\n") if line.startswith(b"mnt_id:"))
    return int(mount[7:])


def _and_parents(mount: int, above: dict[int, int]) -> set[int]:
    """Return a mount's number and those of all that it is mounted on."""
    passed: set[int] = set()
    while mount in above and mount not in passed:  # the first of all may be its own parent
        passed.add(mount)
        mount = above[mount]
    return passed


_ESCAPED = ((b"\\", b"\\134"), (b" ", b"\\040"), (b"\t", b"\\011"), (b"\n", b"\\012"), (b"#", b"\\043"))


def _as_listed(path: str) -> bytes:
    """Return a path as mountinfo writes it."""
    listed = os.fsencode(path)
    for character, escape in _ESCAPED:
        listed = listed.replace(character, escape)
    return listed


def _unlisted(path: bytes) -> str:
    for character, escape in reversed(_ESCAPED):
        path = path.replace(escape, character)
    return os.fsdecode(path)


def _and_above(path: str) -> Iterator[str]:
    yield "/"
    for end, character in enumerate(path):
        if character == "/" and end:
            yield path[:end]
    yield path
