"""Documents on disk: declarations and facts in, facts out.

What is read here is untrusted; trusted files go through ``trusted``. A file whose name ends in ``.json`` is read as
JSON, any other as YAML; standard input (``-``) is JSON if it begins with a brace.
"""

from __future__ import annotations

import os
import sys

import prespawn
from prespawn.checker.admission import FORMAT
from prespawn.checker.declaration import declaration
from prespawn.policy.canonical import canonical
from prespawn.policy.errors import InputError
from prespawn.policy.format import format_of
from prespawn.policy.reader import DEFAULT_BOUNDS, read, read_error
from prespawn.policy.shape import check_keys

from .site_file import read_file
from .trusted_path import named, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.checker.declaration import Declaration
    from prespawn.checker.facts import Facts, ReplayedFacts
    from prespawn.policy.reader import Document, Family, Syntax

    from .gate import Gate

STDIN = "-"
UNKNOWN = "unknown-key"


def declaration_file(path: str, gate: Gate) -> Declaration:
    """Return the declaration of a file; ``ReadError`` with its place for syntax, format and keys."""
    document = document_file(path, "input")
    format_of(document, (FORMAT,))
    wrong = check_keys(document, gate.trusted.declaration_keys, gate.trusted.forbidden)
    for first in sorted(wrong, key=lambda error: error.cause != UNKNOWN):  # a misspelt key is also a missing one
        raise first
    assert isinstance(document.value, dict)
    return declaration(document.value, gate.trusted.forbidden)


def facts_file(path: str) -> ReplayedFacts:
    """Return recorded facts; ``ReadError`` for what is not ``facts/v1``."""
    from prespawn.checker.replay import replayed

    document = document_file(path, "input")
    try:
        return replayed(document.value)
    except InputError as wrong:
        raise document.error("invalid", str(wrong)) from None


def write_facts(path: str, facts: Facts) -> None:
    """Write facts for a later replay, as a new file; ``InputError`` if it is there already or cannot be written."""
    from prespawn.checker.replay import facts_document

    try:
        with open(path, "x", encoding="ascii", opener=_opener) as file:
            file.write(canonical(facts_document(facts)) + "\n")
    except FileExistsError:
        message = f"{named(path)} is there already and is not written over; move it away, or name another file"
        raise InputError("usage", message) from None
    except (OSError, ValueError) as failed:
        raise InputError("usage", f"facts cannot be written to {named(path)}: {reason(failed)}") from None


def document_file(path: str, family: Family) -> Document:
    """Return the strictly read document of a file or of standard input."""
    if path == STDIN:
        data = _standard_input(family)
        syntax: Syntax = "json" if data.lstrip()[:1] in (b"{", b"[") else "yaml"
        return _read(data, "standard input", family, syntax)
    return _read(read_file(path, family=family), path, family, "json" if path.endswith(".json") else "yaml")


def _read(data: bytes, source: str, family: Family, syntax: Syntax) -> Document:
    if syntax == "yaml" and prespawn.own_process:
        from .parser_alone import provide_parser_alone

        provide_parser_alone()
    return read(data, source=source, family=family, syntax=syntax)


def _standard_input(family: Family) -> bytes:
    try:
        return sys.stdin.buffer.read(DEFAULT_BOUNDS.bytes + 1)
    except (OSError, ValueError) as failed:
        message = f"{reason(failed)}; allowed: a document that can be read"
        raise read_error("unreadable", message, source="standard input", family=family) from None


def _opener(path: str, flags: int) -> int:
    # 0600, for facts name paths of the host; a FIFO that nobody reads must not block
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
