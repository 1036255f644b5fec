"""How names are spelled: pure questions about text, asked before anything is looked for.

One set of predicates for every boundary, so that what the facts do not look for is exactly what the blockers refuse.
Nothing here tidies a name: a spelling either is the canonical one or it is not.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LOWER_DIGITS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_KEY_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_KEY = _KEY_START | frozenset("0123456789")
_NO_PARTS = frozenset(("", ".", ".."))
_RUN_ID_LENGTH = 63  # with the first character; the id is also a host name and a label

_UNPRINTABLE = frozenset(
    chr(code)
    for first, last in (
        (0x00, 0x1F),  # C0: NUL ends a name in the kernel, the others move the reader's cursor
        (0x7F, 0x9F),  # DEL and C1: eight-bit escape sequences
        (0x2028, 0x2029),  # line and paragraph separators: a second line in a report
        (0x202A, 0x202E),  # embeddings and overrides: the name reads backwards
        (0x2066, 0x2069),  # isolates, the same with newer characters
    )
    for code in range(first, last + 1)
)


def is_printable_name(text: str) -> bool:
    """Say whether a text holds only characters that a name may have and that a report can show as they are.

    Refused are NUL, control characters (C0, DEL, C1), line separators, lone surrogates and the characters that
    reorder what a person reads.
    """
    if text.isascii():
        return text.isprintable()
    return _UNPRINTABLE.isdisjoint(text) and not any("\ud800" <= character <= "\udfff" for character in text)


def is_absolute(path: str) -> bool:
    """Say whether a path begins at the root."""
    return path.startswith("/")


def climbs(path: str) -> bool:
    """Say whether any component is ``..``, wherever it would lead."""
    return ".." in path and ".." in path.split("/")


def is_canonical(path: str) -> bool:
    """Say whether a relative path is spelled in the one way that is accepted.

    Not empty, not absolute, no blank at either end, and no component that is empty, ``.`` or ``..``.
    """
    return path != "" and path == path.strip() and _NO_PARTS.isdisjoint(path.split("/"))


def is_run_id(text: str) -> bool:
    """Say whether a text is ``[a-z0-9][a-z0-9-]{0,62}`` from beginning to end."""
    if not 0 < len(text) <= _RUN_ID_LENGTH or text[0] not in _LOWER_DIGITS:
        return False
    return _LOWER_DIGITS.issuperset(text.replace("-", ""))


def is_env_key(text: str) -> bool:
    """Say whether a text is ``[A-Za-z_][A-Za-z0-9_]*`` from beginning to end."""
    return text != "" and text[0] in _KEY_START and _KEY.issuperset(text)


def shown(text: str) -> str:
    r"""Return a text as a message may show it: what is not printable stands as ``\xNN``, ``\uNNNN``, ``\UNNNNNNNN``."""
    return text if text.isprintable() else "".join(_escaped(text))


def shown_word(word: str, most: int = 40) -> str:
    """Return a word of a document fit to stand between backticks: as ``shown``, and cut where it is long."""
    return shown(word if len(word) <= most else f"{word[:most]}...")


def shown_ascii(word: str, most: int = 40) -> str:
    """Return the same as ASCII: a letter that only looks like another one is seen for what it is."""
    cut = word if len(word) <= most else f"{word[:most]}..."
    return shown(cut) if cut.isascii() else "".join(_escaped(cut, ascii=True))


def _escaped(text: str, *, ascii: bool = False) -> Iterator[str]:
    for character in text:
        code = ord(character)
        if character.isprintable() and not (ascii and code > 0x7F):
            yield character
        elif code <= 0xFF:
            yield f"\\x{code:02x}"
        else:
            yield f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
