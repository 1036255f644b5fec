"""The sentences in which a document is refused, the same whichever engine found the fault.

Value found, then the values allowed, then the remedy. A value is shown only where a rule judged it; where a rule
judges nothing but the type or the length, no value is repeated, so that environment values and credentials that stand
in trusted files never reach a message.
"""

from __future__ import annotations

from .canonical import canonical
from .nearest import nearest
from .spelling import shown_ascii
from .units import EXAMPLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Pointer = tuple[str | int, ...]

_FOUND = {type(None): "null", bool: "a boolean", int: "a number", str: "text", list: "a list", dict: "a mapping"}
_ALLOWED = {
    "null": "null", "boolean": "`true` or `false`", "integer": "a whole number", "string": "text", "none": "`none`",
    "bytes": f"a size such as `{EXAMPLES['bytes']}`", "duration": f"a time such as `{EXAMPLES['duration']}`",
    "list": "a list", "dict": "a mapping", "map": "a mapping", "json": "any value but null",
}  # fmt: skip
_LONG = 120


def place(at: Pointer) -> str:
    """Return a pointer as people write it, in backticks: ```pairs[2].profile```."""
    if not at:
        return "the document"
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{shown_ascii(part)}" for part in at)
    return f"`{text.removeprefix('.')}`"


def value(found: object) -> str:
    """Return a value in backticks: one line, cut where it is long, nothing in it that a terminal obeys."""
    if isinstance(found, str):
        return f"`{shown_ascii(found, _LONG)}`"
    text = canonical(found)
    return f"`{text if len(text) <= _LONG else f'{text[:_LONG]}...'}`"


def unknown_key(at: Pointer, known: Iterable[str]) -> str:
    """Say that a mapping has a key too many; ``at`` ends with it."""
    name, names = str(at[-1]), sorted(known)
    meant = nearest(name, names)
    hint = f"did you mean `{meant}`" if meant else f"allowed here: {_listed(names)}"
    return f"unknown key {place(at)}; {hint}"


def missing_key(at: Pointer) -> str:
    """Say that a mapping lacks a key; ``at`` ends with it."""
    return f"{place(at)} is missing; add it"


def wrong_type(at: Pointer, found: object, kinds: Iterable[str]) -> str:
    """Say that a value is of another JSON type than the ``kinds``."""
    what = _FOUND.get(type(found), type(found).__name__)
    return f"{place(at)} is {what}; allowed here: {' or '.join(dict.fromkeys(_ALLOWED[kind] for kind in kinds))}"


def out_of_range(at: Pointer, found: object, low: int, high: int) -> str:
    """Say that a number is too small or too large."""
    return f"{place(at)} is {value(found)}; allowed here: {low} to {high}"


def amount_out_of_range(at: Pointer, found: str) -> str:
    """Say that the number before a unit is 0 or has too many digits."""
    return f"{place(at)} is {value(found)}; allowed here: 1 to 999999 of a unit; write more in the next larger one"


def not_an_amount(at: Pointer, found: str, kind: str, units: Iterable[str]) -> str:
    """Say that a text is no size or time."""
    return f"{place(at)} is {value(found)}; allowed here: {_ALLOWED[kind]}, in {_listed(units)}"


def no_match(at: Pointer, found: str, pattern: str, form: str | None = None) -> str:
    """Say that a text does not match from its beginning to its end; ``form`` says in words what would."""
    allowed = form or f"text that is `{pattern}` from beginning to end"
    return f"{place(at)} is {value(found)}; allowed here: {allowed}"


def not_allowed(at: Pointer, found: str, allowed: Iterable[str]) -> str:
    """Say that a text is not one of the words."""
    return f"{place(at)} is {value(found)}; allowed here: {_listed(allowed)}"


def wrong_length(at: Pointer, found: str | list[object] | dict[str, object], low: int, high: int | None) -> str:
    """Say that a text, list or mapping is too short or too long; it is not repeated."""
    unit = "characters" if isinstance(found, str) else "entries"
    allowed = f"at least {low}" if high is None else f"{low} to {high}"
    return f"{place(at)} has {len(found)} {unit}; allowed here: {allowed}"


def listed_twice(at: Pointer, found: object) -> str:
    """Say that a list has an entry twice; ``at`` is the second one."""
    return f"{place(at)} is {value(found)}, which stands in the list before; keep one"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "nothing"
