"""The declared environment keys: where each value would come from, whether it can be passed, what it looks like.

Values are read, judged and forgotten; no fact and no reason holds one. Of a key that is set in several places every
value is judged: the one that loses today is the one that wins after a change elsewhere.
"""

from __future__ import annotations

import os

from prespawn.checker.facts import EnvironmentFact
from prespawn.policy.known import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prespawn.policy.lists import NamedList

FIXED, SITE, CALLER, NONE = "fixed", "site", "caller", "none"


def values_of(
    key: object, fixed: Mapping[str, str], site: Mapping[str, str], caller: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield every source that has a value for a key, with that value; the first one is what the worker gets.

    What the profile fixes is always set, and the site's value stands before the caller's.
    """
    if isinstance(key, str):
        for source, values in ((FIXED, fixed), (SITE, site), (CALLER, caller)):
            if key in values:
                yield source, values[key]


def values(
    keys: object, fixed: Mapping[str, str], site: Mapping[str, str], caller: Mapping[str, str]
) -> dict[str, str]:
    """Return what the worker gets for the declared keys, for the plan alone: no fact and no message holds a value."""
    found: dict[str, str] = {}
    for key in keys if isinstance(keys, list) else ():
        for _, value in values_of(key, fixed, site, caller):
            found.setdefault(key, value)
    return found


def environment(
    keys: object, fixed: Mapping[str, str], site: Mapping[str, str], caller: Mapping[str, str], shapes: NamedList
) -> tuple[EnvironmentFact, ...]:
    """Return one fact for each declared key, in the declared order; none where what is declared is not a list."""
    if not isinstance(keys, list):
        return ()
    return tuple(_judged(key, tuple(values_of(key, fixed, site, caller)), shapes) for key in keys)


def _judged(key: object, values: tuple[tuple[str, str], ...], shapes: NamedList) -> EnvironmentFact:
    found = (shapes.shape_of(value) for _, value in values)
    return EnvironmentFact(
        key=key,
        source=values[0][0] if values else NONE,
        valid=all(_is_passable(value) for _, value in values),
        shape=next((shape for shape in found if shape is not None), ABSENT),
        size=_size(values[0][1]) if values else 0,
    )


def _is_passable(value: str) -> bool:
    """Say whether ``execve(2)`` can be handed a value: any bytes, but no NUL."""
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _size(value: str) -> int:
    return len(value.encode("utf-8", "surrogatepass"))
