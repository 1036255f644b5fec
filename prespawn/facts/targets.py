"""What the parent itself will write: the site's ``state_dir``, the log and the registry.

The state directory is trusted configuration: links on the way to it are followed, and ``trusted_path`` asks of each
directory and link passed whose it is; sticky directories of root pass on the way, never as the directory itself.
Below it no link is followed at all, for log and registry alike: a link on the way, or in the place of the file, counts
as leaving. Nothing is created here.
"""

from __future__ import annotations

import os
from stat import S_ISDIR

from prespawn.checker.facts import Place, StateFact, TargetFact
from prespawn.policy.known import ABSENT, Absent, Unknown
from prespawn.policy.record import Record
from prespawn.policy.spelling import is_absolute, is_canonical, is_printable_name

from ..trusted_path import Walk, judged, named
from .look import unknown, why
from .places import expand, nothing_at, place_of
from .walk import descend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .look import Look


class Opened(Record):
    """The state directory as it was opened: ``fd`` is -1 where nothing is there, ``path`` is where it is or would be.

    ``controlled`` and ``writable`` as in ``StateFact``.
    """

    place: Place | Unknown
    controlled: bool | Unknown
    writable: bool | Unknown
    fd: int
    path: str | Unknown


def open_state(look: Look, given: str) -> Opened:
    """Open the state directory and say whether only the caller controls it; a missing one is judged by its parents."""
    path = expand(given)
    if not isinstance(path, Unknown) and not is_absolute(path):
        path = unknown(f"{named(given)} is neither absolute nor below `~`")
    if isinstance(path, Unknown):
        return _unseen(path)
    try:
        with Walk(path, follow_last=True, sticky=True) as way:
            return _opened(look, given, way)
    except (OSError, ValueError) as error:
        return _unseen(why(error, given))


def _unseen(reason: Unknown) -> Opened:
    return Opened(place=reason, controlled=reason, writable=reason, fd=-1, path=reason)


def _opened(look: Look, given: str, way: Walk) -> Opened:
    # What is missing will be made in the last directory that is there.
    writable = os.access(f"/proc/self/fd/{way.descriptor}", os.W_OK | os.X_OK, effective_ids=True)
    if way.missing:
        path = "/".join([way.path.rstrip("/"), *way.missing])
        place = nothing_at(given, path, "missing")
        return Opened(place=place, controlled=way.fault is None, writable=writable, fd=-1, path=path)
    place = place_of(look, given, way.descriptor)
    controlled = way.fault is None and judged(way.status, way.path) is None
    fd = os.dup(way.descriptor)
    return Opened(place=place, controlled=controlled, writable=writable, fd=fd, path=way.path)


def state(
    look: Look, opened: Opened, registry: Any, grants: Iterable[tuple[str, Place | Unknown | Absent]]
) -> StateFact:
    """Return the fact; ``grants`` are the trees that the worker sees, each with the words for it.

    ``registry`` is how the registry stands there, which the registry itself knows.
    """
    exposed = _exposed(look, opened.path, tuple(grants))
    seen: dict[str, Any] = {"place": opened.place, "controlled": opened.controlled, "writable": opened.writable}
    return StateFact(registry=registry, exposed=exposed, **seen)


def _exposed(look: Look, path: str | Unknown, grants: tuple[tuple[str, Place | Unknown | Absent], ...]) -> Any:
    """Return the words for the first grant that holds the state directory or lies in it."""
    if isinstance(path, Unknown):
        return path
    lost: Any = ABSENT
    for words, place in grants:
        root: Any = place.path
        if isinstance(root, Unknown):
            lost = root
        elif isinstance(root, str) and (look.holds(root, path) or look.holds(path, root)):
            return words
    return lost


def target(opened: Opened, directory: str, path: object) -> tuple[TargetFact, int]:
    """Look at a file below the state directory, and return a descriptor of the directory it will stand in (or -1).

    ``path`` is the declared value, relative to the state directory; ``directory`` is the part of it that the site
    reserves for such files (empty: all of it) and that the parent makes where it is missing, so it is always ready. A
    name that no file can have is not looked for.
    """
    root: Any = opened.path if isinstance(opened.path, Unknown) or not directory else f"{opened.path}/{directory}"
    if directory and not is_canonical(directory):
        root = unknown(f"{named(directory)} is no directory below the state directory")
    if not isinstance(path, str) or not is_printable_name(path) or not is_canonical(path):
        return _target(path, root, ABSENT), -1
    if isinstance(root, Unknown):
        return _target(path, root, root), -1
    if directory and not path.startswith(f"{directory}/"):
        return _target(path, root, ABSENT).replace(leaves=True), -1
    nothing = TargetFact(path=path, root=root, leaves=False, exists=False, ready=path.rpartition("/")[0] == directory)
    if opened.fd < 0:
        return nothing, -1
    try:
        return _below(opened.fd, path, nothing)
    except OSError as error:
        return _target(path, root, why(error, path)), -1


def _below(state_fd: int, path: str, nothing: TargetFact) -> tuple[TargetFact, int]:
    above, _, name = path.rpartition("/")
    parent = descend(state_fd, above)
    if parent.linked or parent.status is None or not S_ISDIR(parent.status.st_mode):
        if parent.fd >= 0:
            os.close(parent.fd)
        if parent.linked:
            return _target(path, nothing.root, ABSENT).replace(leaves=True), -1
        return nothing.replace(ready=nothing.ready and parent.status is None), -1
    try:
        found = descend(parent.fd, name)
    except OSError as error:
        os.close(parent.fd)
        raise OSError(error.errno, error.strerror, above) from error
    if found.fd >= 0:
        os.close(found.fd)
    if found.linked:
        os.close(parent.fd)
        return _target(path, nothing.root, ABSENT).replace(leaves=True), -1
    return nothing.replace(exists=found.status is not None, ready=True), parent.fd


def _target(path: object, root: Any, value: Any) -> TargetFact:
    return TargetFact(path=path, root=root, leaves=value, exists=value, ready=value)
