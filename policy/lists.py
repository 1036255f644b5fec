"""Named lists: the words that policy knows, as data.

A list holds whole ``names``, ``prefixes``, ``suffixes`` and, for values, ``shapes`` (a name and a regular expression
that is searched for). Format: ``schemas/list.yaml``; the lists themselves stand in ``lists/``.
"""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from re import Pattern
    from typing import Any, ClassVar


class Shape(Record):
    """One kind of value; ``pattern`` is searched for anywhere in it."""

    name: str
    pattern: str


class NamedList(Record):
    """One list; with ``ignore_case`` words are compared in lower case."""

    __slots__ = (
        "_after",
        "_has_ends",
        "_patterns",
        "_words",
    )  # what is asked, each in the form in which it is asked for
    nested = {"shapes": (Shape,)}
    id: str
    title: str
    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    ignore_case: bool = False
    shapes: tuple[Shape, ...] = ()

    if TYPE_CHECKING:
        _after: ClassVar[dict[str, tuple[str, ...]] | None]
        _has_ends: ClassVar[bool]
        _patterns: ClassVar[tuple[tuple[str, Pattern[str]], ...] | None]
        _words: ClassVar[frozenset[str]]

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self._keep("_words", frozenset(self.names))
        self._keep("_has_ends", bool(self.prefixes or self.suffixes))
        self._keep("_after", None)
        self._keep("_patterns", None)

    def holds(self, word: str) -> bool:
        """Say whether a word is on the list, by name, beginning or end."""
        if self.ignore_case:
            word = word.lower()
        if word in self._words:
            return True
        return self._has_ends and (word.startswith(self.prefixes) or word.endswith(self.suffixes))

    def holds_any(self, words: Iterable[str]) -> bool:
        """Say whether one of some words, or of the characters of one, is among the names."""
        return not self._words.isdisjoint(words)

    def after(self, word: str) -> tuple[str, ...]:
        """Return what the names say after a first word: ``-c`` and ``-m`` for ``python -c``, ``python -m``."""
        after = self._after
        if after is None:
            self._keep("_after", after := _by_first_word(self.names))
        return after.get(word, ())

    def shape_of(self, value: str) -> str | None:
        """Return the name of the first shape that a value has, or None."""
        patterns = self._patterns
        if patterns is None:
            self._keep("_patterns", patterns := _compiled(self.shapes))
        return next((name for name, pattern in patterns if pattern.search(value)), None)

    def _keep(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def _by_first_word(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    after: dict[str, tuple[str, ...]] = {}
    for name in names:
        word, _, rest = name.partition(" ")
        after[word] = (*after.get(word, ()), rest)
    return after


def _compiled(shapes: Iterable[Shape]) -> tuple[tuple[str, Pattern[str]], ...]:
    import re  # only where there are values to judge: 5 ms

    return tuple((shape.name, re.compile(shape.pattern)) for shape in shapes)
