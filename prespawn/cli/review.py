"""What a profile permits, for the person who activates it: every field, in the units in which people write them."""

from __future__ import annotations

from prespawn.policy.canonical import canonical, digest
from prespawn.policy.catalogue import table
from prespawn.policy.known import Absent
from prespawn.policy.spelling import shown
from prespawn.policy.units import UNITS, written

from .listing import lacking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prespawn.policy.profile import Profile
    from prespawn.policy.record import Record
    from prespawn.policy.shape import Node


def review(profile: Profile) -> Iterator[str]:
    """Yield what the profile lets a worker touch and what holds it."""
    yield shown(f"{profile.id}: {profile.title}")
    yield f"  digest {digest(profile)}{f'; extends {profile.extends}' if profile.extends else ''}"
    yield f"  launcher {profile.launcher}; level {profile.level.minimum} at least, {profile.level.promises} at most"
    for missing in lacking(profile):
        yield f"  missing here: {missing}"
    yield from _seen(profile)
    yield from _bounds(profile)
    yield from (shown(f"  stays possible: {allowance.act}, {allowance.reason}") for allowance in profile.still_allowed)


def _seen(profile: Profile) -> Iterator[str]:
    workspace, process = profile.workspace, profile.process
    if isinstance(workspace, Absent):
        yield "  workspace: none"
    else:
        yield f"  workspace: {workspace.access}, .git {workspace.git}, from the {workspace.source}"
    if not isinstance(profile.state, Absent):
        yield f"  state: {profile.state.access}"
    yield f"  system tree: {profile.root.system}; image: {profile.image or 'none'}; network: {profile.network.mode}"
    yield (
        f"  identity: {process.uid}; capabilities: {_listed(process.capabilities)}; no_new_privs: "
        f"{canonical(process.no_new_privs)}; seccomp: {process.seccomp}; user namespaces: {process.user_namespaces}"
    )
    environment = profile.environment
    yield f"  argument vectors: {profile.argv}; log: {profile.output.log}; artifact: {profile.output.artifact}"
    yield f"  environment: always {_listed(environment.fixed)}; allowed {_listed(environment.allowed_keys)}"


def _bounds(profile: Profile) -> Iterator[str]:
    yield f"  limits: {_amounts(profile.limits, 'limits')}"
    unbounded = [name for name, value in profile.limits if value is None]
    if unbounded:
        yield f"  not limited: {_listed(unbounded)}"
    if not isinstance(profile.provider, Absent):
        yield f"  provider: {_amounts(profile.provider, 'provider')}"
    if not isinstance(profile.quotas, Absent):
        for name, quota in profile.quotas:
            yield f"  quota of {name}: {_amounts(quota, 'quotas', name)}"


def _amounts(bounds: Record, *at: str) -> str:
    """Return bounds as they are written in a profile; the format's own table says which of them has a unit."""
    fields = _fields(table("profile/v1"), at)
    return ", ".join(f"{name} {_amount(value, fields[name][1])}" for name, value in bounds if value is not None)


def _fields(node: Node, at: tuple[str, ...]) -> dict[str, tuple[object, Node]]:
    fields: dict[str, tuple[object, Node]] = next(rule[1] for rule in node if rule[0] == "dict")
    return _fields(fields[at[0]][1], at[1:]) if at else fields


def _amount(value: int, node: Node) -> str:
    kind = next((rule[0] for rule in node if rule[0] in UNITS), None)
    return str(value) if kind is None else written(value, kind)


def _listed(words: Iterable[str]) -> str:
    return shown(", ".join(words)) or "none"
