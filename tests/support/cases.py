"""The blockers' own cases, made into inputs of the checker.

A case starts from ``blockers/base.yaml``, sets, removes or forgets some of it, and says what must come out.
"""

from __future__ import annotations

import copy
import re
from typing import Any

UNKNOWN = {"unknown": "taken away by the case"}


def case_input(base: dict[str, Any], profile: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """Return declaration, site, facts, profile and approval of one case as plain values."""
    world = {**copy.deepcopy(base), "profile": copy.deepcopy(profile)}
    for path, value in case.get("set", {}).items():
        _set(world, path, value)
    if "remove" in case:
        parent, last = _parent(world, case["remove"])
        del parent[last]
    if "forget" in case:
        _set(world, case["forget"], UNKNOWN)
    return world


def _steps(path: str) -> list[str | int]:
    return [int(step[1:-1]) if step.startswith("[") else step for step in re.findall(r"\[\d+\]|[^.\[\]]+", path)]


def _parent(world: Any, path: str) -> tuple[Any, str | int]:
    *way, last = _steps(path)
    for step in way:
        world = world[step]
    return world, last


def _set(world: Any, path: str, value: Any) -> None:
    parent, last = _parent(world, path)
    parent[last] = copy.deepcopy(value)
