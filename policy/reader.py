"""The strict reader: bytes in, one plain tree out, with the place of every value.

It owns what a file may be before anybody asks what it means: UTF-8 without a byte order mark, one document,
JSON's scalars only (no floats: nothing here is measured in fractions), string keys, no key twice, bounded bytes,
depth and nodes. YAML and JSON give the same trees under the same bounds, so no file means one thing to the guard
and another to the program that acts on it.

It leaves to others: opening files (callers do, and raise ``unreadable`` with ``read_error``), and what a value may be
(``policy.shape``), which reports through ``Document.error`` so that those errors carry a place too.

Example::

    document = read(data, source="site.yaml", family="policy", syntax="yaml")
    document.value["network"]
    raise document.error("type", "network is `7`; allowed here: `none`, `broker`", "network")
"""

from __future__ import annotations

from .errors import ReadError
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Family = Literal["policy", "input"]
    Syntax = Literal["yaml", "json"]


class Bounds(Record):
    """What one document may take of the reader: bytes before decoding, nesting of containers, keys plus values."""

    bytes: int
    depth: int
    nodes: int


DEFAULT_BOUNDS = Bounds(bytes=1 << 20, depth=32, nodes=50_000)
"""Bounds of the reader itself, so that no input can exhaust it. They bound no run: such numbers are policy data."""

_IDS: dict[str, dict[str, str]] = {
    "policy": {"*": "policy-{cause}"},
    "input": {
        "unknown-key": "input-unknown-key",
        "missing-key": "input-missing-key",
        "unreadable": "input-unreadable",
        "empty": "input-empty",
        "*": "input-invalid",
    },
}

_MARKS = {  # longest first: the UTF-32 mark begins with the UTF-16 one
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\xef\xbb\xbf": "UTF-8 with a byte order mark",
}


def read_error(cause: str, message: str, *, source: str, family: Family, line: int = 0, column: int = 0) -> ReadError:
    """Return the error whose id the family gives to this cause; for callers that have no document yet."""
    ids = _IDS[family]
    id = ids.get(cause, ids["*"]).format(cause=cause)
    return ReadError(id, cause, message, source=source, line=line, column=column)


class Text(Record):
    """Decoded text and the name and id family that errors about it carry."""

    text: str
    source: str
    family: Family

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column, both from 1, of an offset counted in characters."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def error_at(self, offset: int, cause: str, message: str) -> ReadError:
        """Return an error about the character at an offset."""
        line, column = self.place(offset)
        return read_error(cause, message, source=self.source, family=self.family, line=line, column=column)

    def __repr__(self) -> str:  # a document may hold prompts; a traceback must not
        return f"{type(self).__name__}(source={self.source!r}, family={self.family!r})"


class Document(Text):
    """What was read: ``value`` is a tree of dict, list, str, int, bool and None, which nobody changes.

    ``start`` is the offset of the root and ``starts`` has, by ``id`` of each container, the offsets of its parts in
    order: one for each item of a list, two (key, value) for each pair of a mapping.
    """

    value: object
    start: int
    starts: dict[int, list[int]]

    def position(self, *pointer: str | int, key: bool = False) -> tuple[int, int]:
        """Return line and column, from 1, of the value at a pointer, or with ``key`` of its mapping key.

        A pointer that leaves the document gives the last value it still meets: the place to add what is missing.
        """
        offset, here = self.start, self.value
        for part in pointer:
            if isinstance(here, dict) and part in here:
                at = 2 * list(here).index(part)
                name, offset = self.starts[id(here)][at : at + 2]
                here = here[part]
            elif isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here):
                name = offset = self.starts[id(here)][part]
                here = here[part]
            else:
                return self.place(offset)
        return self.place(name if key and pointer else offset)

    def error(self, cause: str, message: str, *pointer: str | int, key: bool = False) -> ReadError:
        """Return an error about the value at a pointer; ``key`` as for ``position``."""
        line, column = self.position(*pointer, key=key)
        return read_error(cause, message, source=self.source, family=self.family, line=line, column=column)


def read(data: bytes, *, source: str, family: Family, syntax: Syntax, bounds: Bounds = DEFAULT_BOUNDS) -> Document:
    """Return the document in ``data``; its root may be any value, a caller that needs a mapping says so itself.

    ``source`` is the name that errors carry. Raises ``ReadError`` for every input that is not exactly one document
    within ``bounds``, and ``HostError`` (``reader-unavailable``) where YAML cannot be parsed here at all.
    """
    if syntax == "json":
        from .json_reader import parse
    elif syntax == "yaml":
        from .yaml_reader import parse  # here, so that who reads JSON does not pay for YAML's imports
    else:
        raise ValueError(f"no reader for `{syntax}`")
    text = _decoded(data, source, family, bounds)
    tree = parse(text, bounds)
    return Document(**dict(text), value=tree.root, start=tree.start, starts=tree.starts)


def _decoded(data: bytes, source: str, family: Family, bounds: Bounds) -> Text:
    if len(data) > bounds.bytes:
        message = f"{len(data)} bytes; allowed here: up to {bounds.bytes}"
        raise read_error("too-large", message, source=source, family=family)
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            message = f"this is {encoding}; allowed here: UTF-8 without a byte order mark"
            raise read_error("encoding", message, source=source, family=family, line=1, column=1)
    try:
        text = Text(text=data.decode("utf-8"), source=source, family=family)
    except UnicodeDecodeError as error:
        before = Text(text=data[: error.start].decode("utf-8"), source=source, family=family)
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; allowed here: UTF-8 without a byte order mark"
        raise before.error_at(len(before.text), "encoding", message) from None
    if "\0" in text.text:
        message = "NUL character, as in UTF-16 or UTF-32; allowed here: UTF-8 without a byte order mark"
        raise text.error_at(text.text.index("\0"), "encoding", message)
    return text
