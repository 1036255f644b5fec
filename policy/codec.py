"""Records to JSON values and back.

A record's ``nested`` table names the fields that hold records (a class), tuples of records (a one-element tuple
with the class) or mappings to records (``{"*": class}``); every other field is a JSON value as it stands, a list made
a tuple. ``Unknown`` is written ``{"unknown": reason}`` and ``ABSENT`` is written ``null``, so recorded facts say which
of the two it was.

The shape of what is decoded has been checked before (``policy.shape``); ``decode`` trusts it.
"""

from __future__ import annotations

from .known import ABSENT, Absent, Unknown
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    Kind = TypeVar("Kind", bound=Record)

Nested = type[Record] | tuple[type[Record]] | dict[str, type[Record]]


_SCALARS = frozenset((str, int, bool, type(None)))


def encode(value: object) -> object:
    """Return the JSON value of a record, a tuple of records, or a plain value."""
    return value if type(value) in _SCALARS else _FORMS[type(value)](value)


class _Forms(dict[type, "Callable[[Any], object]"]):
    """How each type is encoded; a class of records gets its own form when the first of them comes."""

    def __missing__(self, kind: type) -> Callable[[Any], object]:
        self[kind] = form = _form_of_record(kind) if issubclass(kind, Record) else _as_it_is
        return form


def _form_of_record(kind: type[Record]) -> Callable[[Any], object]:
    names, read = kind._fields, kind._read

    def form(record: Record) -> object:
        values = zip(names, read(record), strict=False)
        return {name: item if type(item) in _SCALARS else _FORMS[type(item)](item) for name, item in values}

    return form


def _as_it_is(value: object) -> object:
    return value


def _sequence(value: list[object] | tuple[object, ...]) -> object:
    return [item if type(item) in _SCALARS else _FORMS[type(item)](item) for item in value]


def _mapping(value: dict[str, object]) -> object:
    return {key: encode(item) for key, item in value.items()}


def _unknown(value: Unknown) -> object:
    return {"unknown": value.reason}


_FORMS = _Forms({
    list: _sequence,
    tuple: _sequence,
    dict: _mapping,
    Absent: lambda value: None,
    Unknown: _unknown,
})  # fmt: skip


def decode(kind: type[Kind], data: Mapping[str, object], *, unknowns: bool = True) -> Kind:
    """Return the record of a mapping that has been checked; missing keys take the record's defaults.

    ``unknowns=False`` is for policy: nothing there is ever unknown, ``unknown`` may be somebody's name of a workspace,
    and a limit that is ``null`` is one that the profile does not set.
    """
    return kind(**{name: _field(kind.nested.get(name), value, unknowns) for name, value in data.items()})


def _field(nested: Nested | None, value: object, unknowns: bool) -> object:
    if unknowns and isinstance(value, dict) and value.keys() == {"unknown"}:
        return Unknown(reason=value["unknown"])
    if value is None:
        return ABSENT if unknowns or nested is not None else None
    if nested is None:
        return tuple(value) if isinstance(value, list) else value
    if isinstance(nested, tuple):
        assert isinstance(value, (list, tuple))
        return tuple(decode(nested[0], item, unknowns=unknowns) for item in value)
    assert isinstance(value, dict)
    if isinstance(nested, dict):
        return {name: decode(nested["*"], item, unknowns=unknowns) for name, item in value.items()}
    return decode(nested, value, unknowns=unknowns)
