"""The blockers' cases as vectors: each says everything that an adapter has to know, and what must come of it.

``vector/v1`` is a JSON object::

    prespawn      vector/v1
    name          the blocker that it is about, and the case, as `env-key-not-allowed: a listed key in another case`
    phase         which pass: check
    declaration   what the driver asks for (`declaration/v1`, or what only looks like it)
    site          the site (`site/v1`), profile: the profile as it is in force, facts: what the host showed (`facts/v1`)
    expect        allowed: whether the run may start; blockers: the ids that must be reported, others may stand beside
                  them only if they are the adapter's own (`vendor/…`); level_at_most: the highest level that may be
                  claimed; levels: all of them, lowest first

The answer is a JSON object with ``allowed`` (boolean), ``blockers`` (ids) and ``level`` (the level that was reached).
New keys may come in ``vector/v1``; what a key means does not change.
"""

from __future__ import annotations

import copy

from prespawn.blockers import shipped as blockers
from prespawn.blockers.rule import compile_rules
from prespawn.checker.admission import Refused, admit
from prespawn.checker.check import LEVEL_UNKNOWN, Checker, declaration_invalid
from prespawn.checker.facts import Facts
from prespawn.pages import document, ids
from prespawn.policy import catalogue, shipped
from prespawn.policy.bundle import Policy
from prespawn.policy.canonical import digest
from prespawn.policy.codec import decode
from prespawn.policy.profile import Profile
from prespawn.policy.shape import normalise
from prespawn.policy.site import site_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from prespawn.checker.verdict import Verdict

FORMAT = "vector/v1"
PHASE = "check"  # before anything is approved or started: what every adapter has
UNKNOWN = {"unknown": "taken away by the case"}


def vectors(*, everything: bool = False) -> tuple[dict[str, Any], ...]:
    """Return the vectors of the portable blockers, or of every blocker of the first pass, sorted by name."""
    base = document("base")
    profile = shipped.PROFILES[base["declaration"]["profile"]]
    pages = (document(id) for id in ids())
    chosen = [page for page in pages if page["phase"] == PHASE and (everything or page["portable"])]
    found = [vector for page in chosen for vector in _of(page, base, profile)]
    return tuple(sorted(found, key=lambda vector: str(vector["name"])))


def _of(page: Mapping[str, Any], base: Mapping[str, Any], profile: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for case in page["cases"]:
        if case.get("phase", PHASE) != PHASE:
            continue
        world = _world(base, profile, case)
        blocks = case.get("blocks")
        wanted = set() if blocks is None else {page["id"]}
        if blocks is not None and blocks.get("because", "fail") == "unknown":
            wanted.add(LEVEL_UNKNOWN)
        levels = [level.id for level in catalogue.levels().levels]
        most = verdict_of(world).level.earned
        yield {
            "prespawn": FORMAT, "name": f"{page['id']}: {case['name']}", "phase": PHASE,
            **{name: world[name] for name in ("declaration", "site", "profile", "facts")},
            "expect": {"allowed": not wanted, "blockers": sorted(wanted), "level_at_most": most, "levels": levels},
        }  # fmt: skip


def _world(base: Mapping[str, Any], profile: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case's input: the base with what the case sets, removes or forgets."""
    world: dict[str, Any] = copy.deepcopy({**base, "profile": profile, "checked": base["facts"]["workspace"]})
    for path, value in case.get("set", {}).items():
        _put(world, path, value)
    if case.get("remove") is not None:
        parent, last = _parent(world, case["remove"])
        del parent[last]
    if case.get("forget") is not None:
        _put(world, case["forget"], UNKNOWN)
    return world


def _put(world: dict[str, Any], path: str, value: object) -> None:
    parent, last = _parent(world, path)
    parent[last] = copy.deepcopy(value)


def _parent(world: Any, path: str) -> tuple[Any, str | int]:
    steps: list[str | int] = []
    for part in path.split("."):
        name, *indexes = part.split("[")
        steps += [*([name] if name else []), *(int(index.removesuffix("]")) for index in indexes)]
    *way, last = steps
    for step in way:
        world = world[step]
    return world, last


def verdict_of(world: Mapping[str, Any]) -> Verdict:
    """Return the core's own verdict."""
    normal = normalise(world["site"], catalogue.table("site/v1"))
    site = site_of({name: value for name, value in normal.items() if name != "prespawn"})
    profile, lists = decode(Profile, world["profile"], unknowns=False), catalogue.named_lists()
    policy = Policy(
        site=site, profiles={**catalogue.profiles(), profile.id: profile}, adapters=catalogue.adapters(),
        levels=catalogue.levels(), lists=lists, digest=digest([site, profile]),
    )  # fmt: skip
    names = frozenset(lists["forbidden-fields"].names)
    declaration = admit(world["declaration"], catalogue.table("declaration/v1"), names)
    if isinstance(declaration, Refused):
        return declaration_invalid(policy, declaration.found, declaration.field)
    fields = {name: value for name, value in world["facts"].items() if name != "prespawn"}
    facts = decode(Facts, {"declaration": declaration.digest, **fields})
    return Checker(policy, compile_rules(blockers.RULES.values(), lists)).check(declaration, facts)
