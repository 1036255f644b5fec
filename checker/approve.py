"""From an allowed verdict to the plan: the only place where one is made.

An approved plan needs a verdict of the ``execute`` or ``launch`` pass without a blocker, on facts that were gathered
from this host; recorded facts give a verdict anywhere and a plan nowhere. Inside the sandbox the workspace stands at
``/workspace``, with its host path as a second name.
"""

from __future__ import annotations

from prespawn.policy.canonical import digest
from prespawn.policy.errors import HostError
from prespawn.policy.filters import NO_FILTER
from prespawn.policy.known import ABSENT, Absent, Unknown

from .approval import TYPED, approver, document
from .contract import contract_of
from .facts import ReplayedFacts
from .plan import _SEAL, ApprovedPlan, Bind, Identity, Plan
from .selection import profile_of, workspace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from prespawn.policy.bundle import Policy
    from prespawn.policy.filters import Filter
    from prespawn.policy.profile import Profile

    from .approval import Approval
    from .declaration import Declaration
    from .facts import Facts, Place, ProgramFact
    from .verdict import Verdict

WORKSPACE = "/workspace"
INNER_ID = 1000  # what the worker sees as its own uid and gid, whoever it is on the host


def draft(
    declaration: Declaration, policy: Policy, facts: Facts, verdict: Verdict, *,
    run_id: str, values: Mapping[str, str], search_path: Sequence[str], filter: Filter | None,
) -> Plan:  # fmt: skip
    """Return the plan of an allowed verdict, to be shown and not started.

    ``values`` are those of the declared environment keys, ``search_path`` the directories of ``PATH`` inside,
    ``filter`` is the filter of system calls that the profile names, for this machine, None where it names none.
    ``TypeError`` and ``ValueError`` say that a caller tried to make a plan out of something else.
    """
    return Plan(approval={}, **_parts(declaration, policy, facts, verdict, run_id, values, search_path, filter))


def approve(
    declaration: Declaration, policy: Policy, facts: Facts, verdict: Verdict, approval: Approval, *,
    run_id: str, values: Mapping[str, str], search_path: Sequence[str], filter: Filter | None,
) -> ApprovedPlan:  # fmt: skip
    """Return the plan that may be started; arguments and errors as for ``draft``."""
    if verdict.phase == "check":
        raise ValueError("a plan to be started is made from a verdict that took the approval into account")
    decided = {
        "id": approval.id, "digest": digest(document(approval)), "origin": approval.origin,
        "operator": approval.operator, "uid": approval.uid, "approver": approver(approval, facts.host),
        "accepted": list(verdict.accepted),
    }  # fmt: skip
    parts = _parts(declaration, policy, facts, verdict, run_id, values, search_path, filter)
    if approval.origin == TYPED and isinstance(declaration.log_path, Absent):
        parts["log"] = None  # whoever typed it reads what it says
    return ApprovedPlan(seal=_SEAL, approval=decided, **parts)


def _parts(
    declaration: Declaration, policy: Policy, facts: Facts, verdict: Verdict,
    run_id: str, values: Mapping[str, str], search_path: Sequence[str], filter: Filter | None,
) -> dict[str, Any]:  # fmt: skip
    if isinstance(facts, ReplayedFacts):
        raise TypeError("a plan is never made from recorded facts")
    if not verdict.allowed or verdict.digests["declaration"] != declaration.digest:
        raise ValueError("a plan is made from the allowed verdict on this declaration alone")
    profile = profile_of(declaration, policy)
    place, argv = facts.workspace.place, declaration.argv
    assert not isinstance(profile, Absent) and not isinstance(place, Absent) and isinstance(argv, list)
    if unseen := next(_unseen(facts), None):
        found = f"{unseen} could not be looked at, which an operator accepted"
        raise HostError("plan-not-expressible", f"{found}; allowed here: what a sandbox is made of is known")
    if not _is_named(filter, profile, facts):
        raise ValueError("a plan takes the filter that its profile names, for the machine that the facts show")
    return {
        "run_id": run_id,
        "profile": profile,
        "adapter": verdict.adapter,
        "level": verdict.level.earned,
        "digests": verdict.digests,
        "launcher": profile.launcher,
        "runtime": facts.runtime,
        "identity": _identity(facts),
        "argv": tuple(argv),
        "program": _program(facts),
        "cwd": WORKSPACE,
        "workspace": _workspace(place, facts, writable=_writable(declaration, profile)),
        "alias": place.path,
        "read_only": _read_only(facts, profile),
        "toolchains": tuple(_bind(mount.place, mount.place.path, writable=False) for mount in facts.mounts),
        "system": facts.host.system,
        "zoneinfo": facts.host.zoneinfo,
        "environment": tuple(sorted({**profile.environment.fixed, **values}.items())),
        "search_path": tuple(search_path),
        "limits": profile.limits,
        "log": _log(declaration, policy, profile, run_id),
        "filter": filter,
        "contract": contract_of(declaration),
    }


def _log(declaration: Declaration, policy: Policy, profile: Profile, run_id: str) -> str | None:
    """Return where the log will stand below the state directory: as declared, else by the run's id."""
    if profile.output.log == "none":
        return None
    if isinstance(declaration.log_path, str):
        return declaration.log_path
    workspace = workspace_of(declaration, policy.site)
    return None if workspace is None else f"{workspace.reports}/{run_id}.log"


def _unseen(facts: Facts) -> Iterator[str]:
    """Yield what a plan cannot be without: accepting that nobody saw it makes it no better known."""
    host, place = facts.host, facts.workspace.place
    mounts = (mount.place for mount in facts.mounts)
    if any(isinstance(value, Unknown) for one in (place, *mounts) for value in (one, *_identity_of(one))):
        yield "the identity of a mount"
    if any(isinstance(value, Unknown) for value in (host.worker_uid, host.worker_gid, host.system, host.zoneinfo)):
        yield "the host"
    if isinstance(facts.workspace.git, Unknown):
        yield "`.git` of the workspace"


def _program(facts: Facts) -> ProgramFact | Absent:
    """Return the program that was seen; of one that nobody could see, as an operator accepted, nothing is compared."""
    program = facts.program
    if isinstance(program, (Absent, Unknown)) or isinstance(program.device, Unknown):
        return ABSENT
    return program


def _identity_of(place: Place | Absent) -> tuple[object, ...]:
    return () if isinstance(place, (Absent, Unknown)) else (place.path, place.device, place.inode)


def _is_named(filter: Filter | None, profile: Profile, facts: Facts) -> bool:
    """Say whether a filter is the profile's: where one is named, none at all would be a freer run."""
    if filter is None:
        return profile.process.seccomp == NO_FILTER
    return (filter.name, filter.machine) == (profile.process.seccomp, facts.host.machine)


def _identity(facts: Facts) -> Identity:
    host = facts.host
    return Identity(uid=host.worker_uid, gid=host.worker_gid, inner_uid=INNER_ID, inner_gid=INNER_ID)


def _bind(place: Place, target: str, *, writable: bool) -> Bind:
    assert not isinstance(place.device, Absent) and not isinstance(place.inode, Absent)
    return Bind(source=place.path, target=target, device=place.device, inode=place.inode, writable=writable)


def _workspace(place: Place, facts: Facts, *, writable: bool) -> Bind:
    """Return the bind of the workspace; what root owns is the worker's inside."""
    owner = facts.host.mapped_owner
    return _bind(place, WORKSPACE, writable=writable).replace(mapped=None if isinstance(owner, Absent) else owner)


def _writable(declaration: Declaration, profile: Profile) -> bool:
    """A contract that says read-only makes the mount read-only: what the kernel refuses need not be compared."""
    rule = profile.workspace
    return not isinstance(rule, Absent) and rule.access == "write" and declaration.mode == "mutation"


def _read_only(facts: Facts, profile: Profile) -> tuple[str, ...]:
    rule = profile.workspace
    covered = not isinstance(rule, Absent) and rule.git == "read-only" and not isinstance(facts.workspace.git, Absent)
    return (".git",) if covered else ()
