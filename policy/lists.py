"""Named lists: the words that policy knows, as data.

A list holds whole ``names``, ``prefixes``, ``suffixes`` and, for values, ``shapes`` (a name and a regular expression
that is searched for). Format: ``schemas/list.yaml``; the lists themselves stand in ``lists/``.
"""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern


class Shape(Record):
    """One kind of value; ``pattern`` is searched for anywhere in it."""

    name: str
    pattern: str


class NamedList(Record):
    """One list; with ``ignore_case`` words are compared in lower case."""

    nested = {"shapes": (Shape,)}
    id: str
    title: str
    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    ignore_case: bool = False
    shapes: tuple[Shape, ...] = ()

    def holds(self, word: str) -> bool:
        """Say whether a word is on the list, by name, beginning or end."""
        if self.ignore_case:
            word = word.lower()
        return word in _named(self) or word.startswith(self.prefixes) or word.endswith(self.suffixes)

    def after(self, word: str) -> tuple[str, ...]:
        """Return what the names say after a first word: ``-c`` and ``-m`` for ``python -c``, ``python -m``."""
        return _by_first_word(self).get(word, ())

    def shape_of(self, value: str) -> str | None:
        """Return the name of the first shape that a value has, or None."""
        return next((name for name, pattern in _compiled(self) if pattern.search(value)), None)


_sets: dict[tuple[str, ...], frozenset[str]] = {}
_first_words: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
_patterns: dict[tuple[Shape, ...], tuple[tuple[str, Pattern[str]], ...]] = {}


def _named(of: NamedList) -> frozenset[str]:
    found = _sets.get(of.names)
    if found is None:
        found = _sets[of.names] = frozenset(of.names)
    return found


def _by_first_word(of: NamedList) -> dict[str, tuple[str, ...]]:
    if of.names not in _first_words:
        after: dict[str, tuple[str, ...]] = {}
        for name in of.names:
            word, _, rest = name.partition(" ")
            after[word] = (*after.get(word, ()), rest)
        _first_words[of.names] = after
    return _first_words[of.names]


def _compiled(of: NamedList) -> tuple[tuple[str, Pattern[str]], ...]:
    if of.shapes not in _patterns:
        import re  # only where there are values to judge: 5 ms

        _patterns[of.shapes] = tuple((shape.name, re.compile(shape.pattern)) for shape in of.shapes)
    return _patterns[of.shapes]
