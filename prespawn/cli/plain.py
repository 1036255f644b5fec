"""The small reader of plain ``check`` and ``exec`` lines.

It accepts only lines whose every word it understands: the command, known options with a separate value, file names, and
for ``exec`` everything after ``--``. For any other line it returns nothing and click reads it, so it need not report
errors, abbreviate or help.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CHECK_VALUES = {"--site": "site", "--format": "format", "--facts": "facts", "--record-facts": "record_facts"}
EXEC_VALUES = {"--site": "site", "--profile": "profile"}
MANY = {"--workspace": "workspaces", "--env": "env", "--toolchain": "toolchains"}
FORMATS = ("text", "json")


class Line:
    """A plain line, read: option values by name, and the words that are no options."""

    __slots__ = ("options", "words")

    def __init__(self, options: dict[str, object], words: list[str]) -> None:
        self.options = options
        self.words = words


def read_plain(line: Sequence[str]) -> Callable[[], int] | None:
    """Return the command of a plain line, ready to run, or None."""
    if line[:1] == ["check"]:
        return _check(line[1:])
    if line[:1] == ["exec"] and "--" in line:
        return _exec(line[1:])
    return None


def _check(words: Sequence[str]) -> Callable[[], int] | None:
    line = parse(words, CHECK_VALUES, ("--workspace",))
    if line is None or not line.words or line.options.get("format", "text") not in FORMATS:
        return None
    from .check import run

    return lambda: run(line.words, **line.options)  # type: ignore[arg-type]  # names and types are the tables' above


def _exec(words: Sequence[str]) -> Callable[[], int] | None:
    end = words.index("--")
    line = parse(words[:end], EXEC_VALUES, tuple(MANY))
    command = list(words[end + 1 :])
    if line is None or line.words or not command:
        return None
    from .exec import run

    return lambda: run(command, **line.options)  # type: ignore[arg-type]  # names and types are the tables' above


def parse(words: Sequence[str], single: dict[str, str], many: Sequence[str]) -> Line | None:
    """Return options and other words, or None for anything that is not plainly one of them."""
    options: dict[str, object] = {}
    others: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in single or word in many:
            value = next(rest, None)
            if value is None or value.startswith("-") or value == "":
                return None
            if word in many:
                options[MANY[word]] = (*options.get(MANY[word], ()), value)  # type: ignore[misc]  # a tuple of strings
            elif single[word] in options:
                return None
            else:
                options[single[word]] = value
        elif word.startswith("-") or word == "":
            return None
        else:
            others.append(word)
    return Line(options, others)
