"""The blockers' own cases, made into inputs of the checker.

A case starts from ``blockers/base.yaml``, sets, removes or forgets some of it, and says what must come out. Beside the
roots of the base it may write to ``profile`` (the shipped one that the base declares) and to ``checked`` (the workspace
as an earlier pass saw it: the base's own).
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from prespawn.checker.check import LEVEL_UNKNOWN
from prespawn.policy.codec import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prespawn.checker.verdict import Verdict

_NAMED = ("id", "field", "found", "allowed", "because")  # what a case says of a blocker
UNKNOWN = {"unknown": "taken away by the case"}


def case_input(base: Mapping[str, Any], profile: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return declaration, site, facts, profile, approval and checked workspace of one case as plain values."""
    world: dict[str, Any] = copy.deepcopy({**base, "profile": profile})
    world["checked"] = copy.deepcopy(base["facts"]["workspace"])
    world["approval"]["digests"] = {}
    for path, value in case.get("set", {}).items():
        put(world, path, value)
    if "remove" in case:
        parent, last = _parent(world, case["remove"])
        del parent[last]
    if "forget" in case:
        put(world, case["forget"], UNKNOWN)
    return world


def put(world: dict[str, Any], path: str, value: Any) -> None:
    """Write a copy of a value to a dotted path such as ``facts.mounts[0].place``."""
    parent, last = _parent(world, path)
    parent[last] = copy.deepcopy(value)


def _steps(path: str) -> list[str | int]:
    return [int(step[1:-1]) if step.startswith("[") else step for step in re.findall(r"\[\d+\]|[^.\[\]]+", path)]


def _parent(world: Any, path: str) -> tuple[Any, str | int]:
    *way, last = _steps(path)
    for step in way:
        world = world[step]
    return world, last


def expected(id: str, case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what must come out of a case: nothing, its blocker, and the unknown level where nobody could look."""
    if "blocks" not in case:
        return []
    blocks = {"found": None, **case["blocks"], "id": id}
    level: dict[str, Any] = {"id": LEVEL_UNKNOWN, "field": "level", "found": None, "allowed": [], "because": "unknown"}
    return sorted([blocks, level] if blocks["because"] == "unknown" else [blocks], key=lambda one: str(one["id"]))


def reported(verdict: Verdict) -> list[dict[str, Any]]:
    """Return the blockers of a verdict as a case names them, as JSON values."""
    return [{name: encode(getattr(one, name)) for name in _NAMED} for one in verdict.blockers]


def fact_paths(value: object, at: str = "facts") -> Iterator[str]:
    """Yield the path of every field of a facts document, the outer ones before what is in them."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name != "prespawn":
                yield f"{at}.{name}"
                yield from fact_paths(item, f"{at}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from fact_paths(item, f"{at}[{index}]")
