"""Canonical JSON and its digest.

The canonical form is what ``json.dumps(value, sort_keys=True, separators=(",", ":"))`` gives for null, booleans,
integers, strings, lists and string-keyed mappings: any language can make it, it is ASCII, and it exists for every
string, lone surrogates included. Anything else (a float, bytes, a set) is a ``TypeError``: digests are taken over
canonical models, and those hold nothing else.
"""

from __future__ import annotations

from _operator import attrgetter  # what `operator` gives on, without executing it

from .known import Absent, Unknown
from .record import Record

try:  # hashlib pulls in OpenSSL, 3 ms at every start; the same code is a module of its own
    from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]  # CPython 3.11
except ImportError:
    try:
        from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # CPython 3.12 and later
    except ImportError:
        from hashlib import sha256

try:
    from _json import encode_basestring_ascii as quoted  # what json.dumps itself calls, without importing json
except ImportError:
    from json.encoder import encode_basestring_ascii as quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def canonical(value: object) -> str:
    """Return the canonical JSON text of a value; ``TypeError`` for what JSON or this form does not have.

    A record stands for the mapping that ``policy.codec.encode`` makes of it.
    """
    return _FORMS[type(value)](value)


def digest(value: object) -> str:
    """Return ``sha256:<64 hex digits>`` of the canonical form."""
    return digest_bytes(canonical(value).encode("ascii"))


def digest_bytes(data: bytes) -> str:
    """Return ``sha256:<64 hex digits>`` of bytes."""
    return f"sha256:{sha256(data).hexdigest()}"


class _Forms(dict[type, "Callable[[Any], str]"]):
    """The form of each type; a class of records gets its own when the first of them comes."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        if not issubclass(kind, Record):
            raise TypeError(f"no canonical form for {kind.__name__}")
        self[kind] = form = _form_of_record(kind)
        return form


def _form_of_record(kind: type[Record]) -> Callable[[Any], str]:
    """Return the form of one class of records: its keys are sorted and quoted once."""
    names = sorted(kind._fields)
    text = f"{{{','.join(f'{quoted(name)}:%s' for name in names)}}}"
    read = attrgetter(*names, "_fields", "_fields")  # two more, for of one name it returns no tuple

    def form(record: Record) -> str:
        values = read(record)[:-2]
        return text % tuple([quoted(one) if type(one) is str else _FORMS[type(one)](one) for one in values])

    return form


def _mapping(value: dict[str, object]) -> str:
    if not _STRING.issuperset(map(type, value)):
        raise TypeError("no canonical form for a key that is no string")
    return f"{{{','.join([f'{quoted(key)}:{_FORMS[type(value[key])](value[key])}' for key in sorted(value)])}}}"


def _sequence(value: list[object] | tuple[object, ...]) -> str:
    return f"[{','.join([quoted(one) if type(one) is str else _FORMS[type(one)](one) for one in value])}]"


_STRING = frozenset((str,))
_FORMS = _Forms({
    str: quoted,
    int: int.__repr__,
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): lambda value: "null",
    list: _sequence,
    tuple: _sequence,
    dict: _mapping,
    Absent: lambda value: "null",
    Unknown: lambda value: f'{{"unknown":{quoted(value.reason)}}}',
})  # fmt: skip
