"""From a JSON value to a declaration: are the keys the format's, and nothing else?

Values are not judged here, whatever they are: each boundary has its own blocker for that. A name that no declaration
may bring is let through as well, so that ``request-field-forbidden`` can say so. What is admitted is a copy: the
caller's own value may change afterwards, the declaration does not.
"""

from __future__ import annotations

from prespawn.policy.reader import DEFAULT_BOUNDS
from prespawn.policy.record import Record
from prespawn.policy.shape import key_faults
from prespawn.policy.wording import place

from .declaration import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from prespawn.policy.shape import Node

    from .declaration import Declaration

FORMAT = "declaration/v1"
_PLAIN = frozenset((str, bool, type(None)))
_HOLDING = frozenset((list, dict))
_STRING = frozenset((str,))
_INTEGERS = range(-(2**63), 2**63)  # the reader's; a longer one could not even be written down


class Refused(Record):
    """Why a value is no declaration: ``field`` is the dotted place, ``found`` says what stands there."""

    field: str
    found: str


class _NotJson(Exception):
    """A value that no JSON text could say, or one beyond the reader's bounds."""


def admit(value: object, keys: Node, forbidden: frozenset[str]) -> Declaration | Refused:
    """Return the declaration of any Python value, or why it is none.

    ``keys`` is the key table of ``declaration/v1``, ``forbidden`` the names that pass here to be blocked later. The
    bounds on depth and number of values are the strict reader's.
    """
    try:
        names: set[str] = set()
        # as the one entry of a list: so whatever it is, it is judged as a part is
        raw = _copied([value], DEFAULT_BOUNDS.depth + 1, [DEFAULT_BOUNDS.nodes], names)[0]
    except _NotJson as wrong:
        return Refused(field="", found=str(wrong))
    if not isinstance(raw, dict):
        return Refused(field="", found=f"a {type(raw).__name__} in place of a mapping")
    for fault in key_faults(raw, keys, forbidden):
        return Refused(field=place(fault.at).strip("`"), found=fault.message)
    if raw["prespawn"] != FORMAT:
        return Refused(field="prespawn", found=f"another format than {FORMAT}")
    return declaration(raw, forbidden & names)


def _copied(value: Any, depth: int, left: list[int], names: set[str]) -> Any:
    """Return the same list or mapping, holding nothing but JSON.

    ``left`` counts what may still come, ``names`` collects every key. One walk does all of it: this is half of what an
    admission costs.
    """
    left[0] -= len(value)
    if value and (depth <= 0 or left[0] < 0):
        raise _NotJson(_beyond(depth))
    if type(value) is list:
        return [item if type(item) in _PLAIN else _part(item, depth - 1, left, names) for item in value]
    if not _STRING.issuperset(map(type, value)):
        raise _NotJson("a value of type dict, which is no JSON")
    names.update(value)
    return {key: item if type(item) in _PLAIN else _part(item, depth - 1, left, names) for key, item in value.items()}


def _beyond(depth: int) -> str:
    if depth <= 0:
        return f"a value nested deeper than {DEFAULT_BOUNDS.depth} levels"
    return f"a value of more than {DEFAULT_BOUNDS.nodes} parts, each word of a vector being one"


def _part(value: Any, depth: int, left: list[int], names: set[str]) -> Any:
    """Return a value that is no plain one, if JSON has such a one at all."""
    kind = type(value)
    if kind in _HOLDING:
        return _copied(value, depth, left, names)
    if kind is not int:
        raise _NotJson(f"a value of type {kind.__name__}, which is no JSON")
    if value not in _INTEGERS:
        raise _NotJson("an integer larger than a declaration may hold")
    return value
