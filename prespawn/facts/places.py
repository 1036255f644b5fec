"""Directories that trusted configuration names, and the ``cwd``: followed to where they really are.

These are compared by what they resolve to, so here links are followed. A place is opened once; kind, identity and
resolved path are all read from that descriptor. A leading ``~`` means the home that the password database has for the
caller, never ``$HOME``; the declaration's ``cwd`` is taken as it stands, relative to the workspace's root.
"""

from __future__ import annotations

import errno
import os
from stat import S_IRUSR, S_ISDIR, S_IXUSR

from prespawn.checker.facts import Place, WorkspaceFact
from prespawn.policy.known import ABSENT, Absent, Unknown
from prespawn.policy.spelling import is_absolute, is_printable_name

from ..site_file import home
from ..trusted_path import named
from .look import FOLLOWED, all_homes, kind_of, unknown, why
from .scan import SHOWN, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .look import Look

FILE_SYSTEM_ROOT, SYSTEM = "the file system root", "the system tree"
WORKERS_HOME = "/home/worker"
_LISTED = S_IRUSR | S_IXUSR
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def expand(given: str) -> str | Unknown:
    """Return a trusted path with a leading ``~`` replaced; ``Unknown`` where the caller has no home."""
    if given != "~" and not given.startswith("~/"):
        return given
    own = home()
    if own is None:
        return unknown(f"{named(given)} lies below a home, and the password database has none for the caller")  # type: ignore[no-any-return]
    return f"{own.rstrip('/')}{given[1:]}" or "/"


def trusted_place(look: Look, given: str, *, relative: bool = False) -> tuple[Place | Unknown, int]:
    """Open a place that the site names; return the fact and its descriptor (-1 where there is none).

    ``relative`` accepts a path that begins at the process's own directory: the driver may hand in a workspace so.
    """
    path = expand(given)
    if isinstance(path, Unknown):
        return path, -1
    if not is_absolute(path) and not relative:
        return unknown(f"{named(given)} is neither absolute nor below `~`"), -1
    return open_place(look, given, path)


def open_place(look: Look, given: str, path: str, root: int | None = None) -> tuple[Place | Unknown, int]:
    """Open any place by its path, relative to ``root`` where that is given."""
    try:
        fd = os.open(path, FOLLOWED, dir_fd=root)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in (*_NOT_THERE, errno.ELOOP):
            return nothing_at(given, path, "link" if error.errno == errno.ELOOP else "missing"), -1
        return why(error, given), -1
    return held_place(look, given, fd)


def held_place(look: Look, given: str, fd: int) -> tuple[Place | Unknown, int]:
    """Return the place that a descriptor stands for, with the descriptor; closed and -1 if it cannot be looked at."""
    try:
        return place_of(look, given, fd), fd
    except (OSError, ValueError) as error:
        os.close(fd)
        return why(error, given), -1


def place_of(look: Look, given: str, fd: int) -> Place:
    """Return the place that a descriptor stands for."""
    status = os.fstat(fd)
    path = os.readlink(f"/proc/self/fd/{fd}")
    if status.st_nlink == 0:
        return nothing_at(given, path.removesuffix(" (deleted)"), "missing")
    if not path.startswith("/"):
        path = unknown(f"{named(given)} cannot be reached from the root of this mount namespace")
    kind = kind_of(status.st_mode)
    return Place(
        given=given, path=path, kind=kind if kind in ("file", "directory") else "special",
        device=status.st_dev, inode=status.st_ino, owner=status.st_uid, filesystem=look.filesystem(fd),
    )  # fmt: skip


def nothing_at(given: str, path: str, kind: str) -> Place:
    """Return the place where nothing is."""
    return Place(given=given, path=path, kind=kind, device=ABSENT, inode=ABSENT, owner=ABSENT, filesystem=ABSENT)


def cwd(look: Look, given: object, root: int) -> Place | Unknown | Absent:
    """Look where the declared ``cwd`` leads from the workspace's root; it is only ever compared."""
    if not isinstance(given, str) or not is_printable_name(given):
        return ABSENT
    place, fd = open_place(look, given, given, root)
    if fd >= 0:
        os.close(fd)
    return place


def workspace(
    look: Look, name: str, place: Any, fd: int, own: Mapping[str, str], system: tuple[str, ...]
) -> WorkspaceFact:
    """Say what the run's root is, what it holds and what it must not hold.

    ``own`` maps words (``the state directory``) to the resolved path of what belongs to the parent; ``system`` are
    the pieces of the host that the worker's root repeats, empty where it repeats none.
    """
    if fd < 0:
        return _unseen(name, place, place if isinstance(place, Unknown) else ABSENT)
    found = scan(fd, look.most_entries, top=look.lists["credential-entries"], capabilities=look.uid == 0)
    return WorkspaceFact(
        known=True, name=name, place=place, covers=_covers(look, place, own, system), credentials=found.top,
        git=_git(fd), sockets=found.sockets, setuid=found.setuid, devices=found.devices,
        mounts=mounted_below(look, place, fd), enterable=_enterable(look, fd),
    )  # fmt: skip


def no_workspace(name: str) -> WorkspaceFact:
    """Return the fact for a name that the site does not know."""
    return _unseen(name, ABSENT, ABSENT).replace(known=False)


def _unseen(name: str, place: Any, value: Any) -> WorkspaceFact:
    return WorkspaceFact(
        known=True, name=name, place=place, covers=value, credentials=value, git=value, sockets=value, setuid=value,
        devices=value, mounts=value, enterable=value,
    )  # fmt: skip


def mounted_below(look: Look, place: Place, fd: int) -> tuple[str, ...]:
    """Return a few of the mounts below a tree, relative to it; ``fd`` is a descriptor of its root."""
    path: Any = place.path
    if isinstance(path, Unknown):
        return path  # type: ignore[return-value]
    try:
        return look.mounted_below(fd, path)[:SHOWN]
    except (OSError, ValueError) as error:
        return why(error, place.given)  # type: ignore[no-any-return]


def _git(root: int) -> Any:
    """Return what stands as ``.git`` at the top, or ``ABSENT``."""
    try:
        return kind_of(os.stat(".git", dir_fd=root, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return why(error, ".git")


def _enterable(look: Look, fd: int) -> Any:
    """Say whether the worker may list and enter a tree: it is the owner under root, and the caller otherwise."""
    if look.uid == 0:
        return os.fstat(fd).st_mode & _LISTED == _LISTED
    return os.access(f"/proc/self/fd/{fd}", os.R_OK | os.X_OK, effective_ids=True)


def _covers(look: Look, place: Place, own: Mapping[str, str], system: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a workspace covers, or what its worker's own root would have to be at the same path."""
    found: Any = covers(look, place, own)
    path: Any = place.path
    if isinstance(found, Unknown) or found or not system:
        return found  # type: ignore[no-any-return]
    built = [SYSTEM] if any(look.holds(name, path) or look.holds(path, name) for name in system) else []
    built += ["the worker's home"] if path == WORKERS_HOME else []
    return tuple(built)


def covers(look: Look, place: Place, own: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a tree is or contains that no worker may be given, in words; empty if nothing."""
    path: Any = place.path
    if isinstance(path, Unknown):
        return path  # type: ignore[return-value]
    if (place.device, place.inode) == look.identity("/"):
        return (FILE_SYSTEM_ROOT,)
    found = ["a home directory"] if _is_home(look, path, place.owner) else []
    found += [words for words, mine in own.items() if look.holds(path, mine)]
    return (*found, *forbidden(look, path))


def forbidden(look: Look, path: str) -> tuple[str, ...]:
    """Return the entries of the list ``forbidden-mounts`` that a resolved path is, holds or lies in."""
    listed = look.lists["forbidden-mounts"]
    held = [name for name in listed.names if is_absolute(name) and _reaches(look, path, name)]
    inside = [prefix for prefix in listed.prefixes if path.startswith(prefix)]
    ends = [suffix for suffix in listed.suffixes if path.endswith(suffix)]
    return tuple(f"`{name}`" for name in (*held, *inside, *ends))


def _reaches(look: Look, path: str, name: str) -> bool:
    """Say whether a tree holds what a name leads to, by the name itself or where its links end."""
    return look.holds(path, name) or look.holds(path, look.resolved(name))


def _is_home(look: Look, path: str, owner: object) -> bool:
    """Say whether a tree is or contains a home.

    The caller's own always counts; of the other accounts, those whose home is theirs: a service's ``/`` or ``/bin`` is
    not. Below the caller's home nobody else's is looked for, which spares the usual run the enumeration.
    """
    mine = home()
    if mine is not None and mine != "/":
        mine = look.resolved(mine)
        if look.holds(path, mine):
            return True
        if owner == look.uid and look.holds(mine, path):
            return False
    return any(_belongs(home, uid) and look.holds(path, look.resolved(home)) for uid, home in all_homes())


def _belongs(home: str, uid: int) -> bool:
    try:
        status = os.stat(home)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # there, and cannot be seen: it is compared by its name
    return status.st_uid == uid and S_ISDIR(status.st_mode)
