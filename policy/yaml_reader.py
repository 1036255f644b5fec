"""YAML to a tree, by libyaml's event stream.

It owns what YAML has beyond JSON and what is refused of it: anchors, aliases, merge keys, tags, directives, further
documents, and every plain scalar that some reader takes for something else than a string. Events are judged one by
one before anything is built, so an alias bomb is one alias, and PyYAML's slow resolver is not run.

Plain scalars: ``null``, ``true``, ``false`` and JSON's integers are read as such; whatever YAML 1.1 or 1.2 (or a
common reader's variant: any case, ``_`` anywhere, base prefixes) reads as another type is an error; the rest are
strings. ``.`` and ``1.2.3`` are strings: the float pattern on the 1.1 page takes in both, but no reader does.
"""

from __future__ import annotations

from .errors import HostError
from .spelling import shown_word
from .tree import Tree, integer

try:
    from yaml import events
    from yaml._yaml import CParser
    from yaml.error import MarkedYAMLError, YAMLError
except ImportError as missing:
    raise HostError(
        "reader-unavailable",
        "YAML cannot be read: PyYAML with its C parser (libyaml) is missing; install a binary wheel of `PyYAML`",
    ) from missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .errors import ReadError
    from .reader import Bounds, Text

_CONSTANTS = {"null": None, "true": True, "false": False}
_COERCED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "="})
_NOT_JUST_TEXT = frozenset("0123456789+-.~=<yYnNoOtTfF")  # how plain scalars begin that need a second look

_DIGITS = frozenset("0123456789")
# tried on a word as it stands and without `_`, which readers of 1.1 take out first
_NUMBER = r"""[-+]? (?: 0b[01_]+ | 0o[0-9_]+ | 0x[0-9a-f_]+
                | [0-9]+ (?: :[0-5]?[0-9] )+ (?: \.[0-9]* )?  # base 60: 1:30 is 90
                | (?: [0-9]+ (?: \.[0-9]* )? | \.[0-9]+ ) (?: e[-+]?[0-9]+ )? )"""
_NON_FINITE = r"[-+]?\.(?:inf|nan)"
_DATE = r"""[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}
            (?: (?: t | [ \t]+ ) [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2} (?: \.[0-9]* )?
                (?: [ \t]* (?: z | [-+][0-9]{1,2} (?: :?[0-9]{2} )? ) )? )?"""

_EMPTY = "nothing in it but blanks and comments; allowed here: one document"
_FEATURE = "{}; allowed here: plain YAML without anchors, aliases, merge keys, tags and directives; write it out"
_UNSURE = "plain `{}` is not a string to every reader; allowed here: {}; quote it if text is meant"

_LINES = {  # What one reader takes for a line break, or drops, and an editor does not: reviewed is not what is read.
    "\x85": ("syntax", "line break U+0085; allowed here: LF or CR LF; write it as an escape in double quotes"),
    "\u2028": ("syntax", "line break U+2028; allowed here: LF or CR LF; write it as an escape in double quotes"),
    "\u2029": ("syntax", "line break U+2029; allowed here: LF or CR LF; write it as an escape in double quotes"),
    "\r": ("syntax", "line break CR; allowed here: LF or CR LF"),
    "\ufeff": ("encoding", "a byte order mark; allowed here: UTF-8 without one"),
}
_LIBYAML = {  # words in its messages, and the cause they mean
    "nesting depth": "too-deep",
    "tag": "yaml-feature",
    "anchor": "yaml-feature",
    "alias": "yaml-feature",
    "Unicode character escape": "encoding",  # half of a surrogate pair
}


def parse(text: Text, bounds: Bounds) -> Tree:
    """Return the finished tree of the one document in a text, or raise ``ReadError``."""
    _refuse_lines(text)
    tree = Tree(text, bounds)
    try:
        _grow(tree, CParser(text.text).get_event)
    except YAMLError as error:
        raise _translated(text, error) from None
    except UnicodeDecodeError:  # the only text that libyaml makes up itself: what %-escapes in a tag spell
        at = text.text.find("!", max(tree.parts, default=0))
        raise text.error_at(max(at, 0), "yaml-feature", _FEATURE.format("tag")) from None
    if not tree.is_begun:
        raise text.error_at(0, "empty", _EMPTY)
    return tree


def judged(word: str) -> tuple[str, object]:
    """Return an empty cause and the value of a plain scalar, or the cause and message of its refusal."""
    if word[:1] not in _NOT_JUST_TEXT:
        return ("", word) if word else ("type", 'no value; allowed here: any value; write `null`, `""`, `[]` or `{}`')
    if word in _CONSTANTS:
        return "", _CONSTANTS[word]
    if word == "<<":
        return "yaml-feature", _FEATURE.format("merge key `<<`")
    if word.lower() in _COERCED:
        return "type", _UNSURE.format(word, "`true`, `false`, `null`")
    return _judged_number(word) if word[0] in "0123456789+-." else ("", word)


def _judged_number(word: str) -> tuple[str, object]:
    found = integer(word)
    if isinstance(found, int):
        return "", found
    if found[0] == "range":
        return found
    if _DIGITS.isdisjoint(word) and len(word) not in (4, 5):  # no pattern below matches
        return "", word
    if _matches(_NON_FINITE, word):
        return "non-finite", _UNSURE.format(word, "plain decimal integers")
    if _matches(_DATE, word):
        return "type", _UNSURE.format(shown_word(word), "strings in quotes")
    if _matches(_NUMBER, word) or _matches(_NUMBER, word.replace("_", "")):
        return "number", _UNSURE.format(shown_word(word), "plain decimal integers")
    return "", word


def _matches(pattern: str, word: str) -> bool:
    import re  # only where a plain word begins like a number and is no integer: 5 ms

    return re.fullmatch(pattern, word, re.IGNORECASE | re.VERBOSE) is not None


def _refuse_lines(text: Text) -> None:
    source = text.text.replace("\r\n", "\n\n")  # keeps the offsets
    for mark, (cause, message) in _LINES.items():
        if mark in source:
            raise text.error_at(source.index(mark), cause, message)
    # libyaml compares each %TAG with all before it, without a limit, before it reports the first event
    at = 0 if source.startswith("%") else source.find("\n%") + 1
    if source.startswith("%", at):
        raise text.error_at(at, "yaml-feature", _FEATURE.format("directive, a line that begins with `%`"))


def _grow(tree: Tree, next_event: Callable[[], Any]) -> None:
    event = next_event()
    while type(event) is not events.StreamEndEvent:
        _TAKERS[type(event)](tree, event)
        event = next_event()


def _scalar(tree: Tree, event: Any) -> None:
    offset = _unadorned(tree, event)
    cause, value = judged(event.value) if event.implicit[0] else ("", event.value)
    if tree.wants_key and cause != "yaml-feature":
        if cause or not isinstance(value, str):
            message = (
                f"key `{shown_word(event.value)}` is not a string to every reader; allowed here: strings; quote it"
            )
            raise tree.error(offset, "key-type", message)
        tree.name(value, offset)
    elif cause == "type" and not event.value and not tree.is_open:
        raise tree.error(0, "empty", _EMPTY)
    elif cause:
        raise tree.error(offset, cause, str(value))
    else:
        tree.add(value, offset)


def _mapping(tree: Tree, event: Any) -> None:
    tree.open({}, _container(tree, event, "mapping"))


def _sequence(tree: Tree, event: Any) -> None:
    tree.open([], _container(tree, event, "sequence"))


def _end(tree: Tree, _event: Any) -> None:
    tree.close()


def _alias(tree: Tree, event: Any) -> None:
    raise tree.error(event.start_mark.index, "yaml-feature", _FEATURE.format(f"alias `*{shown_word(event.anchor)}`"))


def _document(tree: Tree, event: Any) -> None:
    if tree.is_begun:
        raise tree.error(event.start_mark.index, "yaml-feature", "a second document; allowed here: one")


def _nothing(_tree: Tree, _event: Any) -> None:
    pass


_TAKERS: dict[type, Callable[[Tree, Any], None]] = {
    events.StreamStartEvent: _nothing,
    events.DocumentStartEvent: _document,
    events.DocumentEndEvent: _nothing,
    events.AliasEvent: _alias,
    events.ScalarEvent: _scalar,
    events.MappingStartEvent: _mapping,
    events.MappingEndEvent: _end,
    events.SequenceStartEvent: _sequence,
    events.SequenceEndEvent: _end,
}


def _unadorned(tree: Tree, event: Any) -> int:
    offset: int = event.start_mark.index
    if event.anchor is not None:
        raise tree.error(offset, "yaml-feature", _FEATURE.format(f"anchor `&{shown_word(event.anchor)}`"))
    # older libyaml drops the tag `!` and says the scalar is plain; the place still begins at it
    if event.tag is not None or tree.text.text.startswith("!", offset):
        raise tree.error(offset, "yaml-feature", _FEATURE.format(f"tag `{shown_word(event.tag or '!')}`"))
    return offset


def _container(tree: Tree, event: Any, kind: str) -> int:
    offset = _unadorned(tree, event)
    if tree.wants_key:
        raise tree.error(offset, "key-type", f"a {kind} as key; allowed here: strings")
    return offset


def _translated(text: Text, error: Any) -> ReadError:
    if not isinstance(error, MarkedYAMLError):  # a character that YAML has not; counts bytes
        offset = len(text.text.encode()[: error.position].decode())
        return text.error_at(offset, "syntax", f"character `{shown_word(text.text[offset])}`; write it as an escape")
    words = ": ".join(filter(None, (error.context, error.problem)))
    cause = next((cause for word, cause in _LIBYAML.items() if word in words), "syntax")
    mark = error.problem_mark or error.context_mark
    return text.error_at(getattr(mark, "index", 0), cause, f"not YAML: {words}")
