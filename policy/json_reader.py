"""JSON to a tree, strictly.

It owns the grammar of RFC 8259 and what is refused beyond it: floats, integers that do not fit 64 bits, halves of
surrogate pairs, everything that Python's ``json`` lets through (``NaN``, ``1e400``, equal keys). It works on the text
from left to right with a stack of its own, never by recursion.

Each function below takes the tree, the text and an offset past blanks, and returns what comes next and where.
"""

from __future__ import annotations

from .spelling import shown_word
from .tree import Tree, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .errors import ReadError
    from .reader import Bounds, Text

    Step = Callable[[Tree, str, int], "tuple[Step, int]"]

_BLANKS = frozenset(" \t\n\r")
_ENDS = frozenset(' \t\n\r,:[]{}"')
_CONSTANTS = {"null": None, "true": True, "false": False}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ALL_ESCAPES = ", ".join(f"`\\{letter}`" for letter in (*_ESCAPES, "uXXXX"))
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_HIGH, _LOW = 0xD800 >> 10, 0xDC00 >> 10  # first and second half of a surrogate pair, by their six leading bits
_NON_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


def parse(text: Text, bounds: Bounds) -> Tree:
    """Return the finished tree of the one value in a text, or raise ``ReadError``."""
    source = text.text
    tree = Tree(text, bounds)
    offset = _skip(source, 0)
    if offset == len(source):
        raise text.error_at(0, "empty", "nothing in it but blanks; allowed here: one JSON value")
    step: Step = _value
    while offset < len(source) or tree.is_open or not tree.is_begun:
        step, offset = step(tree, source, offset)
        offset = _skip(source, offset)
    return tree


def _value(tree: Tree, source: str, offset: int) -> tuple[Step, int]:
    match source[offset : offset + 1]:
        case "{":
            tree.open({}, offset)
            return _first_key, offset + 1
        case "[":
            tree.open([], offset)
            return _first_item, offset + 1
        case '"':
            value, end = _string(tree, source, offset)
            tree.add(value, offset)
        case _:
            word = _word(source, offset)
            tree.add(_judged(tree, word, source, offset), offset)
            end = offset + len(word)
    return _next, end


def _first_key(tree: Tree, source: str, offset: int) -> tuple[Step, int]:
    return (_next if source.startswith("}", offset) else _key), offset


def _first_item(tree: Tree, source: str, offset: int) -> tuple[Step, int]:
    return (_next if source.startswith("]", offset) else _value), offset


def _key(tree: Tree, source: str, offset: int) -> tuple[Step, int]:
    if not source.startswith('"', offset):
        raise _unexpected(tree, source, offset, "a key in double quotes")
    key, end = _string(tree, source, offset)
    tree.name(key, offset)
    return _colon, end


def _colon(tree: Tree, source: str, offset: int) -> tuple[Step, int]:
    if not source.startswith(":", offset):
        raise _unexpected(tree, source, offset, "`:`")
    return _value, offset + 1


def _next(tree: Tree, source: str, offset: int) -> tuple[Step, int]:
    if not tree.is_open:
        raise _unexpected(tree, source, offset, "nothing after the value")
    in_mapping = isinstance(tree.here, dict)
    end = "}" if in_mapping else "]"
    if source.startswith(end, offset):
        tree.close()
        return _next, offset + 1
    if source.startswith(",", offset):
        return (_key if in_mapping else _value), offset + 1
    raise _unexpected(tree, source, offset, f"`,` or `{end}`")


def _string(tree: Tree, source: str, offset: int) -> tuple[str, int]:
    parts: list[str] = []
    start = offset + 1
    quote = source.find('"', start)
    while quote >= 0:
        escape = source.find("\\", start, quote)
        parts.append(_plain(tree, source, start, quote if escape < 0 else escape))
        if escape < 0:
            return "".join(parts), quote + 1
        character, start = _escaped(tree, source, escape)
        parts.append(character)
        if quote < start:  # that quote was escaped; else it is kept, or many escapes would mean as many searches
            quote = source.find('"', start)
    raise tree.error(offset, "syntax", "not JSON: a string without its closing quote")


def _plain(tree: Tree, source: str, start: int, end: int) -> str:
    plain = source[start:end]
    if not plain.isprintable():
        for at, character in enumerate(plain, start):
            if character < " ":
                message = f"not JSON: control character `{shown_word(character)}` in a string; write it as an escape"
                raise tree.error(at, "syntax", message)
    return plain


def _escaped(tree: Tree, source: str, offset: int) -> tuple[str, int]:
    letter = source[offset + 1 : offset + 2]
    if letter in _ESCAPES:
        return _ESCAPES[letter], offset + 2
    if letter != "u":
        raise tree.error(offset, "syntax", f"not JSON: escape `\\{shown_word(letter)}`; allowed here: {_ALL_ESCAPES}")
    code, end = _code(tree, source, offset), offset + 6
    if code >> 10 == _HIGH and source.startswith("\\u", end):
        low, end = _code(tree, source, end), end + 6
        if low >> 10 == _LOW:
            return chr(0x10000 + ((code & 0x3FF) << 10 | low & 0x3FF)), end
    if code >> 10 in (_HIGH, _LOW):
        raise tree.error(offset, "encoding", "half of a surrogate pair as an escape; allowed here: whole characters")
    return chr(code), end


def _code(tree: Tree, source: str, offset: int) -> int:
    digits = source[offset + 2 : offset + 6]
    if len(digits) < 4 or not _HEXADECIMAL.issuperset(digits):
        raise tree.error(offset, "syntax", "not JSON: `\\u` without four hexadecimal digits")
    return int(digits, 16)


def _judged(tree: Tree, word: str, source: str, offset: int) -> object:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word in _NON_FINITE:
        raise tree.error(offset, "non-finite", f"`{word}` is not JSON; allowed here: plain decimal integers")
    if word[:1] not in "-+.0123456789" or not word:
        raise _unexpected(tree, source, offset, "a JSON value")
    found = integer(word)
    if isinstance(found, tuple):
        raise tree.error(offset, *found)
    return found


def _word(source: str, offset: int) -> str:
    end = offset
    while end < len(source) and source[end] not in _ENDS:
        end += 1
    return source[offset:end]


def _skip(source: str, offset: int) -> int:
    while offset < len(source) and source[offset] in _BLANKS:
        offset += 1
    return offset


def _unexpected(tree: Tree, source: str, offset: int, allowed: str) -> ReadError:
    word = _word(source, offset) or source[offset : offset + 1]
    found = f"`{shown_word(word, 20)}`" if word else "the end"
    remedy = "; JSON has no comments" if word[:1] in ("/", "#") else ""
    return tree.error(offset, "syntax", f"not JSON: found {found}; allowed here: {allowed}{remedy}")
