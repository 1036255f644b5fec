"""What ``argv[0]`` leads to: looked up once, on a fixed search path, and resolved through links to the final file.

Here following links is right, because what counts is what will run. Where it is found says whose it is, and so does
every link passed on the way: a name on the search path that leads through the workspace is the worker's to change, and
one that leads to where the worker's root has nothing would not run.
"""

from __future__ import annotations

import os
from stat import S_ISREG, S_IXGRP, S_IXOTH, S_IXUSR

from prespawn.checker.facts import ProgramFact
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.record import Record
from prespawn.policy.spelling import climbs, is_absolute, is_printable_name

from .look import is_within, why
from .walk import descend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from prespawn.policy.known import Absent

    from .walk import Descent

_ELF = b"\x7fELF"
_LOOKED_AT = 256  # BINPRM_BUF_SIZE: how far the kernel reads for `#!` and its interpreter
SEARCH_PATH, ABSOLUTE, WORKSPACE, OUTSIDE = "search-path", "absolute", "workspace", "outside"


class Trees(Record):
    """Where programs may stand, as resolved paths: ``workspace`` (None without one), ``search`` directories in order,
    and ``visible``, the trees that the worker sees beside the workspace (``/`` for a process of the host)."""

    workspace: str | Unknown | None
    search: tuple[str, ...]
    visible: tuple[str, ...]


class Worker(Record):
    """Whom the program will run as, for the question whether its mode bits allow that.

    ``mapped`` is the id whose files in the workspace are the worker's, None where every file is whose it is.
    """

    uid: int
    gids: frozenset[int]
    mapped: int | None = None


def program(argv: object, trees: Trees, worker: Worker) -> ProgramFact | Absent:
    """Return what the first element of a vector leads to; ``ABSENT`` where that is no name that a file can have."""
    given = argv[0] if isinstance(argv, list) and argv else None
    if not isinstance(given, str) or given == "" or not _is_a_name(given):
        return ABSENT
    if not is_printable_name(given):  # the kernel may have it; no report can name it, so nothing looks for it
        return _nowhere(given, ABSENT)
    if isinstance(trees.workspace, Unknown) and "/" in given and not is_absolute(given):
        return _nowhere(given, trees.workspace)
    try:
        top = os.open("/", os.O_PATH | os.O_CLOEXEC)
        try:
            return _first(given, _candidates(given, trees), trees, worker, top)
        finally:
            os.close(top)
    except (OSError, ValueError) as error:
        return _nowhere(given, why(error, given))


def _is_a_name(given: str) -> bool:
    return "\0" not in given and not any("\ud800" <= character <= "\udfff" for character in given)


def _candidates(given: str, trees: Trees) -> Iterable[str]:
    if is_absolute(given):
        return (given,)
    if "/" not in given:
        return (f"{directory}/{given}" for directory in trees.search)
    return (f"{trees.workspace}/{given}",) if isinstance(trees.workspace, str) else ()


def _first(given: str, candidates: Iterable[str], trees: Trees, worker: Worker, top: int) -> ProgramFact:
    """Return the first candidate that can be executed, as ``execvp(3)`` finds it, or the first that is there at all."""
    searching = "/" not in given
    there = _nowhere(given, ABSENT)
    for candidate in candidates:
        try:
            found = descend(top, candidate, beneath=False)
        except PermissionError:
            if not searching:
                raise
            continue  # the worker cannot look there either
        if found.status is None:
            continue
        try:
            ours = _is_ours(f"/{found.path}", trees)
            permitted = S_ISREG(found.status.st_mode) and _may_execute(found.status, worker, ours=ours)
            head = _head(found.fd) if permitted else b""
        finally:
            os.close(found.fd)
        path, way = f"/{found.path}", _way(found)
        interpreter = _interpreter(head, top) if head is not None and head.startswith(b"#!") else None
        executable = permitted and (head is None or head.startswith(_ELF) or interpreter is not None)
        fact = ProgramFact(
            given=given, found=True, executable=executable, origin=_origin(given, way, trees), path=path,
            name=path.rpartition("/")[2], device=found.status.st_dev, inode=found.status.st_ino,
            **_surroundings(way, interpreter, trees),
        )  # fmt: skip
        if permitted or not searching:  # one that the kernel then refuses ends the search as well
            return fact
        there = there if there.found else fact
    return there


def _way(found: Descent) -> tuple[str, ...]:
    """Return where a path leads, and every link on the way there."""
    return (f"/{found.path}", *(f"/{entry.path}" for entry in found.passed if entry.is_link))


def _head(fd: int) -> bytes | None:
    """Return what the kernel looks at; None for a program that may be executed and not read."""
    try:
        opened = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return None
    try:
        return os.read(opened, _LOOKED_AT)
    finally:
        os.close(opened)


def _interpreter(head: bytes, top: int) -> tuple[str, tuple[str, ...]] | None:
    """Return what a ``#!`` names and the way that it leads; None where nothing is.

    As the kernel reads it: only blanks and tabs end the name, so the CR of a line that ends in CR LF is part of it. A
    relative name would depend on where the program is started, and counts as none.
    """
    words = head[2:].partition(b"\n")[0].partition(b"\0")[0].replace(b"\t", b" ").strip(b" ").split(b" ", 1)
    name = os.fsdecode(words[0])
    if not is_absolute(name):
        return None
    found = descend(top, name, beneath=False)
    if found.status is None:
        return None
    os.close(found.fd)
    return name, _way(found)


def _surroundings(
    way: tuple[str, ...], interpreter: tuple[str, tuple[str, ...]] | None, trees: Trees
) -> dict[str, str]:
    """Return the fields about what a program needs beside itself."""
    fields: dict[str, str] = {}
    if interpreter is not None:
        name, leads = interpreter
        fields = {"interpreter": leads[0], "interpreter_origin": _origin(name, leads, trees)}
        way = (*way, *leads)
    outside = [place for place in way if not _is_ours(place, trees) and not _is_visible(place, trees)]
    if outside and (root := _toolchain(outside)) is not None:
        fields["toolchain"] = root
    return fields


def _toolchain(outside: list[str]) -> str | None:
    """Return the directory above ``bin`` in which all of these places are."""
    root, _, below = outside[0].rpartition("/bin/")
    return root if root and "/" not in below and all(is_within(place, root) for place in outside) else None


def _is_ours(place: str, trees: Trees) -> bool:
    return isinstance(trees.workspace, str) and is_within(place, trees.workspace)


def _origin(given: str, way: tuple[str, ...], trees: Trees) -> str:
    """Say whose a program is by all places that the name leads through, the last of them first in ``way``."""
    own = [_is_ours(place, trees) for place in way]
    visible = [mine or _is_visible(place, trees) for place, mine in zip(way, own, strict=True)]
    named_below = "/" in given and not is_absolute(given)
    if not all(visible) or (named_below and climbs(given) and not own[0]):
        return OUTSIDE
    if named_below or any(own):
        return WORKSPACE
    return ABSOLUTE if is_absolute(given) else SEARCH_PATH


def _is_visible(place: str, trees: Trees) -> bool:
    return any(is_within(place, tree) for tree in trees.visible)


def _nowhere(given: str, value: Any) -> ProgramFact:
    """Return the fact for a program that is not there, or (``value`` is ``Unknown``) that could not be looked for."""
    found: Any = False if value is ABSENT else value
    origin = SEARCH_PATH if "/" not in given else ABSOLUTE if is_absolute(given) else WORKSPACE
    return ProgramFact(
        given=given, found=found, executable=value, origin=origin, path=value, name=value, device=value, inode=value
    )


def _may_execute(status: os.stat_result, worker: Worker, *, ours: bool) -> bool:
    """Say whether a file's mode lets the worker execute it; ``ours`` are files of the workspace."""
    uid, gids = worker.uid, worker.gids
    if ours and worker.mapped is not None:
        uid, gids = worker.mapped, frozenset((worker.mapped,))
    if worker.uid == 0:
        bits = S_IXUSR | S_IXGRP | S_IXOTH
    elif uid == status.st_uid:
        bits = S_IXUSR
    else:
        bits = S_IXGRP if status.st_gid in gids else S_IXOTH
    return bool(status.st_mode & bits)


def bin_directories(roots: Iterable[str]) -> Iterator[str]:
    """Yield the directory of programs of each toolchain that has one."""
    return (f"{root}/bin" for root in roots if os.path.isdir(f"{root}/bin"))
