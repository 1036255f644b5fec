"""The code that a condition is shipped as, run in a test: the product itself never runs text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prespawn.blockers import source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prespawn.blockers.conditions import Condition
    from prespawn.policy.lists import NamedList


def written(condition: object, lists: Mapping[str, NamedList]) -> Condition:
    """Return the function that ``source`` writes for a condition."""
    text = source.module("from __future__ import annotations", {"one": condition}, lists)
    names: dict[str, Any] = {"__name__": "prespawn.blockers.written", "__package__": "prespawn.blockers"}
    exec(compile(text, "written", "exec"), names)
    made: Condition = names["CONDITIONS"]["one"]
    return made
