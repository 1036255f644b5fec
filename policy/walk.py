"""A walk through a document by hand, for forms that are not ours and have no schema: each step asks for one thing.

The first fault is raised with the words of ``policy.wording``: as a ``ReadError`` with its place where the walk is
through a ``Document``, else, through the value of one, as an ``InputError``; ids are ``policy-<cause>`` for both.
It leaves to others what a form is made of (``policy.seccomp``).
"""

from __future__ import annotations

from . import wording
from .errors import InputError
from .reader import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .wording import Pointer


class Walk:
    """The steps; ``at`` is the pointer of the value that is asked about."""

    def __init__(self, document: Document | object) -> None:
        self._document = document if isinstance(document, Document) else None
        self.root: object = document.value if isinstance(document, Document) else document

    def wrong(self, cause: str, message: str, at: Pointer, *, key: bool = False) -> InputError:
        """Return the error about a value, or with ``key`` about its key."""
        if self._document is None:
            return InputError(f"policy-{cause}", message)
        return self._document.error(cause, message, *at, key=key)

    def mapping(self, value: object, fields: Mapping[str, bool], at: Pointer) -> dict[str, Any]:
        """Return a mapping that has the required fields (True), maybe others (False), and nothing else."""
        if type(value) is not dict:
            raise self.wrong("type", wording.wrong_type(at, value, ("dict",)), at)
        if value.keys() == fields.keys():
            return value
        for name in value:
            if name not in fields:
                raise self.wrong("unknown-key", wording.unknown_key((*at, name), fields), (*at, name), key=True)
        for name, required in fields.items():
            if required and name not in value:
                raise self.wrong("missing-key", wording.missing_key((*at, name)), (*at, name))
        return value

    def entries(self, value: object, at: Pointer) -> list[Any]:
        """Return a list that is not empty."""
        if type(value) is not list:
            raise self.wrong("type", wording.wrong_type(at, value, ("list",)), at)
        if not value:
            raise self.wrong("length", wording.wrong_length(at, value, 1, None), at)
        return value

    def words(self, value: object, at: Pointer) -> list[str]:
        """Return a list of different texts that is not empty."""
        words = self.entries(value, at)
        if set(map(type, words)) != {str} or len(set(words)) < len(words):
            for index, word in enumerate(words):
                self.text(word, (*at, index))
                self.once(words, index, (*at, index))
        return words

    def text(self, value: object, at: Pointer) -> str:
        """Return a text."""
        if type(value) is not str:
            raise self.wrong("type", wording.wrong_type(at, value, ("string",)), at)
        return value

    def whole(self, value: object, low: int, high: int, at: Pointer) -> int:
        """Return a whole number between two bounds, themselves included."""
        if type(value) is not int:
            raise self.wrong("type", wording.wrong_type(at, value, ("integer",)), at)
        if not low <= value <= high:
            raise self.wrong("range", wording.out_of_range(at, value, low, high), at)
        return value

    def once(self, entries: list[Any], index: int, at: Pointer) -> None:
        """Refuse an entry that stands in a list before."""
        if entries[index] in entries[:index]:
            raise self.wrong("duplicate-item", wording.listed_twice(at, entries[index]), at)
