"""Do recorded facts answer what this declaration asks? What they leave out is unknown, never absent.

A check gathers one fact for each declared file and key, for each grant of the workspace, and the parts that the profile
has. A document can have lost some of them, and to a condition "absent" means that there is nothing to judge. So before
a replay each part that must be there, and is not, or is about something else, becomes ``Unknown``; facts that were
recorded for this declaration and site come out as they were. It is pure, and asked of recorded facts alone.
"""

from __future__ import annotations

from prespawn.policy.known import ABSENT, Absent, Unknown
from prespawn.policy.spelling import is_canonical, is_printable_name

from .facts import Place, ReplayedFacts, WorkspaceFact
from .selection import profile_of, workspace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from prespawn.policy.bundle import Policy
    from prespawn.policy.profile import Profile
    from prespawn.policy.site import Workspace

    from .declaration import Declaration

_ALWAYS = ("declaration", "now", "state", "run_id_used", "declared_files", "environment", "mounts", "host", "evidence")
_SEEN = ("covers", "credentials", "sockets", "setuid", "devices")
_HOST = ("uid", "worker_uid", "worker_gid", "machine", "system")
_RUNTIME = ("name", "shipped", "enforces", "found", "attests")


def fitted(facts: ReplayedFacts, declaration: Declaration, policy: Policy) -> ReplayedFacts:
    """Return the facts with ``Unknown`` in place of what they should say about this declaration and do not."""
    profile, workspace = profile_of(declaration, policy), workspace_of(declaration, policy.site)
    if not isinstance(profile, Absent) and isinstance(profile.workspace, Absent):
        workspace = None
    facts = _given(facts, *_ALWAYS, *_parts(facts, declaration, profile, workspace))
    return facts.replace(
        workspace=_workspace(facts.workspace, known=workspace is not None),
        cwd=_place(facts.cwd),
        declared_files=_files(facts, declaration.declared_files),
        log=_target(facts.log, declaration.log_path),
        registry=_target(facts.registry, declaration.registry_path),
        state=_state(facts.state),
        environment=_listed(
            facts.environment, "key", _items(declaration.env_keys), "key", "source", "valid", "size"
        ),
        program=_program(facts.program),
        mounts=_mounts(facts, profile, workspace),
        runtime=_given(facts.runtime, *_RUNTIME),
        image=_given(facts.image, "name", "present"),
        host=_given(facts.host, *_HOST),
    )  # fmt: skip


def _parts(
    facts: ReplayedFacts, declaration: Declaration, profile: Profile | Absent, workspace: Workspace | None
) -> Iterator[str]:
    """Yield the parts that are there for this declaration, and would be absent for another one."""
    if isinstance(profile, Absent) or not isinstance(profile.workspace, Absent):
        yield "workspace"
    if workspace is not None and _stands(facts) and _is_name(declaration.cwd):
        yield "cwd"
    if workspace is not None and not isinstance(declaration.log_path, Absent):
        yield "log"
    if not isinstance(declaration.registry_path, Absent):
        yield "registry"
    if isinstance(profile, Absent):
        return
    yield "runtime"
    if profile.image is not None:
        yield "image"
    first = declaration.argv[0] if isinstance(declaration.argv, list) and declaration.argv else None
    if first and _is_name(first) and profile.root.system != "image":
        yield "program"


def _given(record: Any, *names: str) -> Any:
    """Return a record with ``Unknown`` for each of these fields that is absent; what is no such record as it is."""
    if isinstance(record, (Absent, Unknown)):
        return record
    lost = {name: _lost(name) for name in names if getattr(record, name) is ABSENT}
    return record.replace(**lost) if lost else record


def _lost(name: str) -> Unknown:
    return Unknown(reason=f"the recorded facts leave out `{name}`")


def _other(name: str) -> Unknown:
    return Unknown(reason=f"the recorded facts have other `{name}` than the declaration and the site")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and is_printable_name(value)


def _items(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else ()


def _stands(facts: ReplayedFacts) -> bool:
    """Say whether the recorded workspace was looked into, as far as it says."""
    workspace: Any = facts.workspace
    return isinstance(workspace, WorkspaceFact) and workspace.place.kind == "directory"


def _place(place: Any) -> Any:
    place = _given(place, "given", "path", "kind")
    if isinstance(place, Place) and place.kind == "directory":
        return _given(place, "device", "inode", "owner")
    return place


def _workspace(fact: Any, *, known: bool) -> Any:
    """``known`` is what the site says: recorded facts in which it has no such workspace were recorded elsewhere."""
    if not isinstance(fact, WorkspaceFact):
        return fact
    fact = _given(fact, "known", "name", *(("place",) if known else ()))
    if known and fact.known is False:
        fact = fact.replace(known=_other("workspace"))
    place: Any = _place(fact.place)
    fact = fact.replace(place=place)
    return _given(fact, *_SEEN) if place.kind == "directory" or isinstance(place, Unknown) else fact


def _listed(facts: Any, name: str, declared: tuple[object, ...], *needed: str) -> Any:
    """Return a list of facts, one for each of what was declared, with no field left out that all of them have."""
    if isinstance(facts, Unknown):
        return facts
    if not _same([getattr(fact, name) for fact in facts], declared):
        return _other(name)
    return tuple(_given(fact, *needed) for fact in facts)


def _same(found: list[Any], declared: tuple[object, ...]) -> bool:
    """Say whether values are the declared ones, where null and a left out value are one."""
    told = [None if value is ABSENT else value for value in found]
    return len(told) == len(declared) and all(
        isinstance(one, Unknown) or (type(one) is type(other) and one == other)
        for one, other in zip(told, declared, strict=True)
    )


def _files(facts: ReplayedFacts, declared: object) -> Any:
    files = _listed(facts.declared_files, "path", _items(declared))
    if isinstance(files, Unknown) or not _stands(facts):
        return files
    return tuple(_file(fact) for fact in files)


def _file(fact: Any) -> Any:
    if not _is_name(fact.path) or not is_canonical(fact.path):
        return fact
    fact = _given(fact, "leaves", "linked")
    if fact.leaves is True or fact.linked is True:
        return fact
    fact = _given(fact, "present")
    if fact.present is False:
        return fact
    fact = _given(fact, "kind", "device", "inode")
    return _given(fact, "links") if fact.kind == "file" else fact


def _target(fact: Any, declared: object) -> Any:
    if isinstance(fact, (Absent, Unknown)):
        return fact
    if not _same([fact.path], (declared,)):
        return _other("path")
    fact = _given(fact, "root")
    if not _is_name(declared) or not is_canonical(str(declared)):
        return fact
    fact = _given(fact, "leaves")
    return fact if fact.leaves is True else _given(fact, "exists", "ready")


def _state(fact: Any) -> Any:
    if isinstance(fact, (Absent, Unknown)):
        return fact
    fact = _given(fact, "place", "controlled", "registry", "writable")
    return fact.replace(place=_place(fact.place))


def _program(fact: Any) -> Any:
    if isinstance(fact, (Absent, Unknown)):
        return fact
    fact = _given(fact, "given", "found", "origin")
    if fact.found is False:
        return fact
    fact = _given(fact, "executable", "path", "name", "device", "inode")
    return fact if fact.interpreter is ABSENT else _given(fact, "interpreter_origin")


def _mounts(facts: ReplayedFacts, profile: Profile | Absent, workspace: Workspace | None) -> Any:
    names: tuple[str, ...] = ()
    leased = False
    if workspace is not None:
        leased = not isinstance(profile, Absent) and profile.workspace.source == "lease"
        names = (*workspace.toolchains, *_leases(workspace)) if leased else workspace.toolchains
    grants = _listed(facts.mounts, "name", names, "name", "purpose", "place")
    return grants if isinstance(grants, Unknown) else tuple(_mount(grant) for grant in grants)


def _leases(workspace: Workspace) -> tuple[str, ...]:
    return ("workspace",) if workspace.state is None else ("workspace", "state")


def _mount(fact: Any) -> Any:
    fact = fact.replace(place=_place(fact.place))
    if fact.purpose == "leases":
        fact = _given(fact, "inside")
    return _given(fact, "credentials") if fact.place.kind == "directory" else fact
