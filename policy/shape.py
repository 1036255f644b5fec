"""The small interpreter of a schema table: is a document of its format, and what does it say in base units?

It runs the *fast table* that ``policy.table`` makes of a Cerberus schema and that is shipped as literals, so neither
Cerberus nor a YAML schema is needed to judge a document. One walk finds every fault and builds the normalised value:
units become integers, ``none`` becomes null, optional keys that were left out get the schema's default.

A table is a tuple of alternatives, a *node*; each is a tuple that begins with its kind::

    ("null",) ("boolean",) ("json",) ("none",) ("bytes",) ("duration",)
    ("integer", low, high)
    ("string", pattern or None, words or None, shortest, longest or None, the pattern in words or None)
    ("list", node of the items, shortest, longest or None, all different)
    ("dict", {name: (required, node) or (False, node, default)})
    ("map", node of the keys, node of the values, shortest, longest or None)

It leaves to others: bytes and syntax (``policy.reader``), references between documents (``policy.loader``), and, for
declarations, every value: there only keys are judged here (``key_faults``), for each boundary has its own blocker.
"""

from __future__ import annotations

from . import wording
from .canonical import canonical
from .record import Record
from .units import MOST, UNITS, amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from .errors import ReadError
    from .reader import Document
    from .wording import Pointer

    Rule = tuple[Any, ...]
    Node = tuple[Rule, ...]

_ANY = (bool, int, str, list, dict)
_HOLDING = frozenset((dict, list))
_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "integer": (int,), "string": (str,), "none": (str,), "bytes": (str, int),
    "duration": (str,), "list": (list,), "dict": (dict,), "map": (dict,), "json": _ANY,
}  # fmt: skip


class Fault(Record):
    """One thing wrong with a document: ``at`` points to it, or with ``key`` to the name of the key there."""

    cause: str
    message: str
    at: Pointer
    key: bool = False


def check(document: Document, node: Node) -> list[ReadError]:
    """Return everything that is wrong with a document, in the order in which it stands there."""
    return errors(document, examine(document.value, node)[1])


def normalise(value: object, node: Node) -> Any:
    """Return the normalised form of a value that ``check`` finds nothing wrong with."""
    result, faults = examine(value, node)
    assert not faults, faults[0]
    return result


def examine(value: object, node: Node, base: object = None) -> tuple[Any, list[Fault]]:
    """Return the normalised value (only of use without faults) and the faults.

    ``base`` is the normalised value that this one changes: keys of a record that are left out are taken from it,
    nothing is required there and no default is set. Lists and free-keyed mappings are replaced as a whole, for only so
    can one with fewer entries be said.
    """
    faults: list[Fault] = []
    return _value(value, node, (), base, faults), faults


def check_keys(document: Document, node: Node, tolerated: Collection[str] = ()) -> list[ReadError]:
    """Return unknown and missing keys at every depth, whatever stands under them; ``tolerated`` names pass anywhere."""
    return errors(document, key_faults(document.value, node, tolerated))


def key_faults(value: object, node: Node, tolerated: Collection[str] = ()) -> list[Fault]:
    """Return the same as ``check_keys`` for a value that no reader has seen."""
    faults: list[Fault] = []
    _keys(value, node, (), tolerated, faults)
    return faults


def errors(document: Document, faults: Collection[Fault]) -> list[ReadError]:
    """Return faults with their places, in the order in which they stand in the document."""
    found = [document.error(fault.cause, fault.message, *fault.at, key=fault.key) for fault in faults]
    return sorted(found, key=lambda error: (error.line, error.column, error.message))


def _value(value: object, node: Node, at: Pointer, base: object, faults: list[Fault]) -> object:
    """Judge by the alternatives of the value's type; if none takes it, the one with the fewest faults speaks."""
    fitting = [rule for rule in node if type(value) in _TYPES[rule[0]]]
    attempts: list[list[Fault]] = []
    for rule in fitting:
        found: list[Fault] = []
        result = _JUDGES[rule[0]](value, rule, at, base, found)
        if not found:
            return result
        attempts.append(found)
    wrong = Fault(cause="type", message=wording.wrong_type(at, value, (rule[0] for rule in node)), at=at)
    fewest: list[Fault] = min(attempts, key=len, default=[wrong])
    faults += fewest
    return value


def _as_it_is(value: object, rule: Rule, at: Pointer, base: object, faults: list[Fault]) -> object:
    return value


def _none(value: str, rule: Rule, at: Pointer, base: object, faults: list[Fault]) -> None:
    if value != "none":
        faults.append(Fault(cause="value", message=wording.not_allowed(at, value, ("none",)), at=at))


def _integer(value: int, rule: Rule, at: Pointer, base: object, faults: list[Fault]) -> int:
    _, low, high = rule
    if not low <= value <= high:
        faults.append(Fault(cause="range", message=wording.out_of_range(at, value, low, high), at=at))
    return value


def _amount(value: str | int, rule: Rule, at: Pointer, base: object, faults: list[Fault]) -> int:
    if isinstance(value, int):
        return _integer(value, ("integer", 1, MOST), at, base, faults)
    units = amount(value, rule[0])
    if units is None:
        message = wording.not_an_amount(at, value, rule[0], UNITS[rule[0]])
        faults.append(Fault(cause="pattern", message=message, at=at))
    elif units < 0:
        faults.append(Fault(cause="range", message=wording.amount_out_of_range(at, value), at=at))
    return units or 0


def _string(value: str, rule: Rule, at: Pointer, base: object, faults: list[Fault]) -> str:
    _, pattern, words, low, high, form = rule
    if words is not None and value not in words:
        faults.append(Fault(cause="value", message=wording.not_allowed(at, value, words), at=at))
    if pattern is not None and not _matches(pattern, value):
        faults.append(Fault(cause="pattern", message=wording.no_match(at, value, pattern, form), at=at))
    _length(value, low, high, at, faults)
    return value


def _list(value: list[Any], rule: Rule, at: Pointer, base: object, faults: list[Fault]) -> list[Any]:
    _, node, low, high, different = rule
    _length(value, low, high, at, faults)
    seen: set[str] = set()
    for index, item in enumerate(value if different else ()):
        text = canonical(item)
        if text in seen:
            message = wording.listed_twice((*at, index), item)
            faults.append(Fault(cause="duplicate-item", message=message, at=(*at, index)))
        seen.add(text)
    return [_value(item, node, (*at, index), None, faults) for index, item in enumerate(value)]


def _dict(value: dict[str, Any], rule: Rule, at: Pointer, base: object, faults: list[Fault]) -> dict[str, Any]:
    fields, below = rule[1], base if isinstance(base, dict) else {}
    for name in value:
        if name not in fields:
            message = wording.unknown_key((*at, name), fields)
            faults.append(Fault(cause="unknown-key", message=message, at=(*at, name), key=True))
    result: dict[str, Any] = {}
    for name, (required, node, *default) in fields.items():
        if name in value:
            result[name] = _value(value[name], node, (*at, name), below.get(name), faults)
        elif name in below:
            result[name] = below[name]
        elif required:
            faults.append(Fault(cause="missing-key", message=wording.missing_key((*at, name)), at=(*at, name)))
        elif default:
            result[name] = default[0]
    return result


def _map(value: dict[str, Any], rule: Rule, at: Pointer, base: object, faults: list[Fault]) -> dict[str, Any]:
    _, keys, values, low, high = rule
    _length(value, low, high, at, faults)
    for name in value:
        found: list[Fault] = []
        _value(name, keys, (*at, name), None, found)
        faults += (fault.replace(key=True) for fault in found)
    return {name: _value(item, values, (*at, name), None, faults) for name, item in value.items()}


_JUDGES: Mapping[str, Callable[[Any, Rule, Pointer, object, list[Fault]], object]] = {
    "null": _as_it_is, "boolean": _as_it_is, "json": _as_it_is, "none": _none, "integer": _integer, "string": _string,
    "bytes": _amount, "duration": _amount, "list": _list, "dict": _dict, "map": _map,
}  # fmt: skip


def _matches(pattern: str, value: str) -> bool:
    import re  # only where a pattern is judged: 5 ms that a line with the built-in site does not pay

    return re.fullmatch(pattern, value) is not None


def _length(value: Any, low: int, high: int | None, at: Pointer, faults: list[Fault]) -> None:
    if len(value) < low or (high is not None and len(value) > high):
        faults.append(Fault(cause="length", message=wording.wrong_length(at, value, low, high), at=at))


def _keys(value: object, node: Node, at: Pointer, tolerated: Collection[str], faults: list[Fault]) -> None:
    if type(value) not in _HOLDING:
        return
    attempts: list[list[Fault]] = []
    for rule in node:
        if type(value) in _TYPES[rule[0]] and rule[0] in _KEY_JUDGES:
            found: list[Fault] = []
            _KEY_JUDGES[rule[0]](value, rule, at, tolerated, found)
            attempts.append(found)
    fewest: list[Fault] = min(attempts, key=len, default=[])
    faults += fewest


def _keys_of_dict(
    value: dict[str, Any], rule: Rule, at: Pointer, tolerated: Collection[str], faults: list[Fault]
) -> None:
    fields = rule[1]
    for name, item in value.items():
        if name in fields:
            if type(item) in _HOLDING:
                _keys(item, fields[name][1], (*at, name), tolerated, faults)
        elif name not in tolerated:
            message = wording.unknown_key((*at, name), fields)
            faults.append(Fault(cause="unknown-key", message=message, at=(*at, name), key=True))
    for name, field in fields.items():
        if field[0] and name not in value:
            faults.append(Fault(cause="missing-key", message=wording.missing_key((*at, name)), at=(*at, name)))


def _keys_of_list(value: list[Any], rule: Rule, at: Pointer, tolerated: Collection[str], faults: list[Fault]) -> None:
    if any(below[0] in _KEY_JUDGES for below in rule[1]):  # ten thousand plain names have no keys
        for index, item in enumerate(value):
            _keys(item, rule[1], (*at, index), tolerated, faults)


def _keys_of_map(
    value: dict[str, Any], rule: Rule, at: Pointer, tolerated: Collection[str], faults: list[Fault]
) -> None:
    for name, item in value.items():
        _keys(item, rule[2], (*at, name), tolerated, faults)


_KEY_JUDGES: Mapping[str, Callable[[Any, Rule, Pointer, Collection[str], list[Fault]], None]] = {
    "dict": _keys_of_dict, "list": _keys_of_list, "map": _keys_of_map,
}  # fmt: skip
