"""Recorded facts, read back: is the document what ``facts/v1`` says, and which value was unknown or absent?

The records themselves are the schema: every field is of the type that its annotation names, or ``null`` (absent), or
``{"unknown": reason}``. Nothing is converted and no key is passed over.
"""

from __future__ import annotations

from prespawn.policy.codec import encode
from prespawn.policy.errors import InputError
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.record import Record
from prespawn.policy.wording import place

from .facts import Facts, ReplayedFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = "facts/v1"
LEAVES = {"str": (str,), "int": (int,), "bool": (bool,), "object": (str, int, bool, list, dict)}


def facts_document(facts: Facts) -> dict[str, object]:
    """Return ``facts/v1`` as a JSON value."""
    fields = encode(facts)
    assert isinstance(fields, dict)
    return {"prespawn": FORMAT, **fields}


def replayed(document: object) -> ReplayedFacts:
    """Return the facts of a document; ``InputError`` (``input-invalid``) names the place of what is wrong with it."""
    if not isinstance(document, dict) or document.get("prespawn") != FORMAT:
        raise InputError(
            "input-invalid", f"this is no `{FORMAT}`; allowed: a file that `prespawn check --record-facts` wrote"
        )
    fields = {key: value for key, value in document.items() if key != "prespawn"}
    record = _record(ReplayedFacts, fields, ())
    assert isinstance(record, ReplayedFacts)
    return record


def _record(kind: type[Record], data: object, at: tuple[str | int, ...]) -> Record:
    if not isinstance(data, dict):
        raise _wrong(at, "a mapping")
    known, needed = set(kind._fields), set(kind._fields) - set(kind._defaults)
    if wrong := sorted((set(data) - known) | (needed - set(data))):
        raise _wrong((*at, wrong[0]), "exactly the keys of this format")
    return kind(**{name: _value(kind, name, value, (*at, name)) for name, value in data.items()})


def _value(kind: type[Record], name: str, value: Any, at: tuple[str | int, ...]) -> object:
    if value is None:
        return ABSENT
    if isinstance(value, dict) and value.keys() == {"unknown"} and isinstance(value["unknown"], str):
        return Unknown(reason=value["unknown"])
    nested = kind.nested.get(name)
    if isinstance(nested, tuple):
        return tuple(_record(nested[0], item, (*at, index)) for index, item in enumerate(_list(value, at)))
    if isinstance(nested, type):
        return _record(nested, value, at)
    return _leaf(_annotation(kind, name), value, at)


def _leaf(annotation: str, value: Any, at: tuple[str | int, ...]) -> object:
    word = annotation.removesuffix(" | Absent")
    if word == "tuple[str, ...]":
        return tuple(_leaf("str", item, (*at, index)) for index, item in enumerate(_list(value, at)))
    if type(value) not in LEAVES[word]:
        raise _wrong(at, word)
    return value


def _list(value: Any, at: tuple[str | int, ...]) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(at, "a list")
    return value


def _annotation(kind: type[Record], name: str) -> str:
    declared = (vars(base).get("__annotations__", {}) for base in kind.__mro__)
    return str(next(names[name] for names in declared if name in names))


def _wrong(at: tuple[str | int, ...], allowed: str) -> InputError:
    return InputError(
        "input-invalid",
        f"{place(at)} does not fit `{FORMAT}`; allowed here: {allowed}, null, or an unknown with its reason",
    )
