"""A format: what one kind of document may say, in the forms that the engines read.

``format_of`` is the first question about every document: which one is it? Nothing here knows any format by name.
"""

from __future__ import annotations

from . import wording
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from .authority import Entry
    from .reader import Document
    from .shape import Node

FIRST_KEY = "prespawn"


class Format(Record):
    """One format, as made from ``schemas/*.yaml``.

    ``fields`` are Cerberus rules (``policy.structure``), ``table`` the fast form of the same (``policy.shape``),
    ``authority`` says in which direction each field is narrower (``policy.authority``; None for what has none).
    """

    name: str
    title: str
    fields: Mapping[str, Any]
    table: Node
    authority: Entry | None


def format_of(document: Document, allowed: Collection[str]) -> str:
    """Return the format that a document's first key names, one of ``allowed`` (such as ``profile/v1``).

    Raises ``ReadError``: cause ``type`` for a root that is no mapping, else ``invalid``.
    """
    formats = ", ".join(f"`{FIRST_KEY}: {name}`" for name in sorted(allowed))
    root = document.value
    if not isinstance(root, dict):
        raise document.error("type", f"{wording.wrong_type((), root, ('dict',))} that begins with {formats}")
    first = next(iter(root), None)
    if first is None:
        raise document.error("invalid", f"nothing in the document; allowed here: {formats} as its first key")
    if first != FIRST_KEY:
        message = f"the first key is {wording.value(first)}; allowed here: {formats}"
        raise document.error("invalid", message, first, key=True)
    named = root[FIRST_KEY]
    if not isinstance(named, str) or named not in allowed:
        raise document.error("invalid", f"`{FIRST_KEY}` is {wording.value(named)}; allowed here: {formats}", FIRST_KEY)
    return named
