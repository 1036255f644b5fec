"""The line that mends an ``exec`` line: the same again, with the toolchain that its program needs.

It is printed to be copied into a shell, so it is quoted for one, exactly, and not printed at all where a word of it
could not be shown as it is. What may be mounted is decided as ever, by the blockers, when the line is typed.
"""

from __future__ import annotations

from prespawn.policy.spelling import is_printable_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prespawn.checker.facts import ProgramFact
    from prespawn.policy.known import Absent, Unknown

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_")


def mending_line(
    program: ProgramFact | Absent | Unknown, options: Mapping[str, str | Sequence[str] | None], words: Sequence[str]
) -> str | None:
    """Return the line with the toolchain that the program needs, None where no one toolchain would do.

    ``options`` are those of the line that was typed, by name; None and an empty list are options that were not given.
    """
    root = getattr(program, "toolchain", None)
    if not isinstance(root, str):
        return None
    line = ["prespawn", "exec", *_given(options), "--toolchain", root, "--", *words]
    return " ".join(map(quoted, line)) if all(map(is_printable_name, line)) else None


def quoted(word: str) -> str:
    """Return a word as a POSIX shell reads it back: as it is where it is plain, else in single quotes."""
    if word and _PLAIN.issuperset(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _given(options: Mapping[str, str | Sequence[str] | None]) -> Iterator[str]:
    for name, values in options.items():
        for value in (values,) if isinstance(values, str) else values or ():
            yield f"--{name}"
            yield value
