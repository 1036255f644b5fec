"""The blockers' own cases, made into inputs of the checker.

A case starts from ``blockers/base.yaml``, sets, removes or forgets some of it, and says what must come out. Beside the
roots of the base it may write to ``profile`` (the shipped one that the base declares) and to ``checked`` (the workspace
as an earlier pass saw it: the base's own).
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
