"""What kind of host this is: who calls, whom the worker will run as, and the pieces of the system tree.

An ordinary caller's worker is the caller. Root's worker is the owner of the workspace, in that account's own group:
never in the group of the directory, which may be one that opens doors, and in the kernel's overflow group where the
owner has no account. Where that owner is root itself, the worker has the site's own id for it, and root's files are
mapped to that on their mount.
"""

from __future__ import annotations

import os

from prespawn.checker.facts import HostFact, SystemEntry
from prespawn.policy.known import ABSENT, Unknown

from .look import content, kind_of, unknown, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .look import Look

SWITCH = "setpriv"  # how root's launcher becomes the worker
LOCALTIME = "/etc/localtime"
PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_ANY_CHILD, _ADMIN_ALONE = 1, 2  # the highest scopes in which anybody may trace a child, and in which root may


def host(look: Look, owner: Any, worker_id: int | None) -> HostFact:
    """Return the fact.

    ``owner`` is the uid that the workspace belongs to, ``ABSENT`` without one; ``worker_id`` whom root's own files are
    mapped to, None where they cannot be.
    """
    mapped = look.uid == 0 and owner == 0 and worker_id is not None
    ids: tuple[Any, Any] = (worker_id, worker_id) if mapped else worker_of(look, owner)
    uid, gid = ids
    switch: Any = uid
    if not isinstance(uid, Unknown):
        switch = ABSENT if uid == look.uid else on_search_path(look, SWITCH) is not None
    return HostFact(
        uid=look.uid, worker_uid=uid, worker_gid=gid, identity_switch=switch, machine=os.uname().machine,
        traces=_traces(look.uid), zoneinfo=_link_text(LOCALTIME), system=_system(look.lists["system-tree"].names),
        mapped_owner=owner if mapped else _unmapped(look, owner, worker_id),
        worker_account=_account(worker_id) if mapped else ABSENT,
    )  # fmt: skip


def worker_of(look: Look, owner: Any) -> tuple[Any, Any]:
    """Return uid and gid that the worker runs as on the host."""
    if look.uid != 0:
        return look.uid, look.gid
    if isinstance(owner, Unknown):
        return owner, owner
    if owner is ABSENT:
        reason = unknown("root runs a worker as the owner of its workspace, and there is none")
        return reason, reason
    try:
        return owner, _group_of(owner)
    except (OSError, ValueError) as error:
        return owner, why(error, "/proc/sys/kernel/overflowgid")


def _unmapped(look: Look, owner: Any, worker_id: int | None) -> Any:
    """Return that there is no mapping, or that nobody knows whether there is to be one."""
    lost = look.uid == 0 and worker_id is not None and isinstance(owner, Unknown)
    return owner if lost else ABSENT


def _account(id: Any) -> Any:
    """Return the name of the account or group that has an id, which then is not the worker's alone."""
    import grp
    import pwd

    for kind, find in (("user", pwd.getpwuid), ("group", grp.getgrgid)):
        try:
            return f"{kind} {find(id)[0]}"
        except KeyError:  # the good answer: nobody has this id
            continue
    return ABSENT


def on_search_path(look: Look, name: str) -> str | None:
    """Return the first program of a name in the fixed directories, or None."""
    places = (f"{directory}/{name}" for directory in look.lists["search-path"].names)
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


def _group_of(uid: int) -> int:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return int(content("/proc/sys/kernel/overflowgid"))


def _traces(uid: int) -> Any:
    """Say whether a parent may trace its own child; ``ABSENT`` where the kernel has no such switch."""
    try:
        scope = int(content(PTRACE_SCOPE))
    except FileNotFoundError:
        return ABSENT
    except (OSError, ValueError) as error:
        return why(error, PTRACE_SCOPE)
    return scope <= (_ADMIN_ALONE if uid == 0 else _ANY_CHILD)


def _system(names: Iterable[str]) -> Any:
    """Return the pieces that are there, in the list's order; unknown as a whole if one of them is something odd."""
    entries = []
    for name in names:
        try:
            status = os.lstat(name)
            kind = kind_of(status.st_mode)
            link: Any = os.readlink(name) if kind == "link" else ABSENT
        except FileNotFoundError:  # `/lib32`, say: the sandbox has as little of it as the host
            continue
        except OSError as error:
            return why(error, name)
        if kind not in ("directory", "file", "link"):
            return unknown(f"`{name}` is a {kind}; a system tree has directories, files and links")
        entries.append(SystemEntry(path=name, kind=kind, link=link))
    return tuple(entries)


def _link_text(path: str) -> Any:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return ABSENT if os.path.exists(path) else why(error, path)
