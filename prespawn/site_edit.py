"""A site file, changed by a program and still its owner's: one entry more in a list, every other byte as it was.

Where an entry may stand is found from the places that the strict reader keeps; which of the few candidates is right is
not guessed: each is read back whole, and only a text that says exactly what was wanted is ever taken. A file that is
written in a way that no candidate fits is left alone.
"""

from __future__ import annotations

import os

from prespawn.policy.errors import InputError
from prespawn.policy.reader import read

from .trusted import read_site
from .trusted_path import named, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.policy.reader import Document
    from prespawn.policy.site import Site

_LINES = 50  # of an entry that is written over several of them


def with_entry(text: str, key: str, entry: str, wanted: Site, path: str) -> str:
    """Return a site file's text with one more entry in the list ``key``, such that it says what is ``wanted``.

    ``InputError`` (``usage``) where the file is written in a way that this cannot be done.
    """
    document = read(text.encode("utf-8"), source=path, family="policy", syntax="yaml")
    for candidate in _candidates(document, key, entry):
        if _says(candidate, path, wanted):
            return candidate
    raise InputError(
        "usage", f"{named(path)} is written in a way that cannot be edited; add `{entry}` to `{key}` by hand"
    )


def _says(text: str, path: str, wanted: Site) -> bool:
    try:
        return read_site(text.encode("utf-8"), path) == wanted
    except InputError:
        return False


def _candidates(document: Document, key: str, entry: str) -> Iterator[str]:
    text, root = document.text, document.value
    assert isinstance(root, dict)
    newline = "\r\n" if "\r\n" in text else "\n"
    if key not in root:
        yield f"{text}{'' if text.endswith(newline) else newline}{key}: [{entry}]{newline}"
        return
    start = document.starts[id(root)][2 * list(root).index(key) + 1]
    items = document.starts[id(root[key])]
    if text.startswith("[", start):
        yield from _in_brackets(text, items[-1] if items else start, "," if items else "", entry)
    elif items:
        yield from _below(text, items, entry, newline)


def _in_brackets(text: str, last: int, comma: str, entry: str) -> Iterator[str]:
    """Yield the text with the entry before each of the closing brackets that could be the list's."""
    end = text.find("]", last)
    while end >= 0:
        written = len(text[:end].rstrip())
        for at in (written, end):  # what is written last may be a comment
            after = " " if comma and text[written - 1] != "," else ""
            yield f"{text[:at]}{comma if after else ' ' if comma else ''}{after}{entry}{text[at:]}"
        end = text.find("]", end + 1)


def _below(text: str, items: list[int], entry: str, newline: str) -> Iterator[str]:
    """Yield the text with the entry on a line of its own after each of the lines on which the last one could end."""
    begin = text.rfind("\n", 0, items[0]) + 1
    dash = text.rfind("-", begin, items[0])
    indent = text[begin:dash]
    end = items[-1]
    for _ in range(_LINES):
        end = text.find("\n", end) + 1
        if end == 0:
            yield f"{text}{newline}{indent}- {entry}{newline}"
            return
        yield f"{text[:end]}{indent}- {entry}{newline}{text[end:]}"


def replace(path: str, text: str) -> None:
    """Put a new text in a file's place in one step, with its mode and owner; ``InputError`` if that cannot be done."""
    fresh = f"{path}.{os.urandom(6).hex()}"
    try:
        old = os.stat(path)
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _write(file, old, text)
            os.rename(fresh, path)
        except BaseException:
            os.unlink(fresh)
            raise
    except OSError as failed:
        raise InputError("usage", f"{named(path)} cannot be written: {reason(failed)}") from None


def _write(file: int, like: os.stat_result, text: str) -> None:
    with open(file, "w", encoding="utf-8", newline="") as out:
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(file, like.st_uid, like.st_gid)
        os.fchmod(file, like.st_mode & 0o777)
        out.write(text)
        out.flush()
        os.fsync(file)
