"""The tree that grows while a document is parsed, whatever its syntax.

It owns what YAML and JSON have in common: the bounds on depth and nodes, the refusal of a second equal key, the
place of each part, and which integers there are. It never recurses, so depth costs nothing but a list entry.
"""

from __future__ import annotations

from .spelling import shown_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .errors import ReadError
    from .reader import Bounds, Text

_LONGEST = len(str(2**63))  # digits of the largest integer; int() is quadratic and is shown nothing longer


class Tree:
    """A growing document; ``root``, ``start`` and ``starts`` become those of ``reader.Document``."""

    __slots__ = ("_above", "_bounds", "_key", "_nodes", "_roots", "here", "parts", "starts", "text")

    def __init__(self, text: Text, bounds: Bounds) -> None:
        self.text = text
        self.starts: dict[int, list[int]] = {}
        self._bounds = bounds
        self._nodes = 0
        self._roots: list[object] = []
        self._above: list[tuple[list[Any] | dict[str, Any], list[int]]] = []
        self._key: str | None = None
        self.here: list[Any] | dict[str, Any] = self._roots  # the container that is open
        self.parts: list[int] = []  # offsets of its parts

    @property
    def root(self) -> object:
        """The document's value, once ``is_begun``."""
        return self._roots[0]

    @property
    def start(self) -> int:
        """Where the document's value begins, once nothing is open."""
        return self.parts[0]

    @property
    def is_begun(self) -> bool:
        """There is a value, finished or open."""
        return bool(self._roots)

    @property
    def is_open(self) -> bool:
        """A container waits for more or for its end."""
        return bool(self._above)

    @property
    def wants_key(self) -> bool:
        """What comes next is a mapping key."""
        return self._key is None and isinstance(self.here, dict)

    def name(self, key: str, offset: int) -> None:
        """Take the key of the pair whose value comes next."""
        if key in self.here:
            line, column = self.text.place(self.parts[2 * list(self.here).index(key)])
            message = f"key `{shown_word(key)}` stands here twice, first at line {line}, column {column}; keep one"
            raise self.error(offset, "duplicate-key", message)
        self._count(offset)
        self.parts.append(offset)
        self._key = key

    def add(self, value: object, offset: int) -> None:
        """Take a value."""
        self._count(offset)
        self.parts.append(offset)
        if self._key is None:
            self.here.append(value)  # type: ignore[union-attr]  # a mapping has had its key named
        else:
            self.here[self._key] = value  # type: ignore[call-overload]  # only a mapping has keys
            self._key = None

    def open(self, container: list[Any] | dict[str, Any], offset: int) -> None:
        """Take an empty container and put what follows into it."""
        if len(self._above) == self._bounds.depth:
            message = f"nested deeper than allowed here: up to {self._bounds.depth} levels"
            raise self.error(offset, "too-deep", message)
        self.add(container, offset)
        self._above.append((self.here, self.parts))
        self.here, self.parts = container, []
        self.starts[id(container)] = self.parts

    def close(self) -> None:
        """End the container that is open."""
        self.here, self.parts = self._above.pop()

    def error(self, offset: int, cause: str, message: str) -> ReadError:
        """Return an error about the character at an offset."""
        return self.text.error_at(offset, cause, message)

    def _count(self, offset: int) -> None:
        self._nodes += 1
        if self._nodes > self._bounds.nodes:
            message = f"more keys and values than allowed here: up to {self._bounds.nodes}"
            raise self.error(offset, "too-large", message)


def integer(word: str) -> int | tuple[str, str]:
    """Return the integer that JSON's grammar reads in a word, else the cause and message of its refusal."""
    digits = word.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and (digits[0] != "0" or word == "0")
    if not plain:
        return "number", f"number `{shown_word(word)}`; allowed here: plain decimal integers, such as `30`"
    if len(digits) > _LONGEST or not -(2**63) <= int(word) < 2**63:
        return "range", f"number `{shown_word(word)}`; allowed here: {-(2**63)} to {2**63 - 1}"
    return int(word)
