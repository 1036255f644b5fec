"""Does a ``sed`` script start a program? Its command ``e`` does, and the flag ``e`` of ``s``.

A script is walked command by command, as GNU sed reads it. What the walk does not understand counts as starting one:
a script that sed itself would refuse is no loss. A script in a file is the workspace's own code, as a makefile is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BETWEEN = frozenset(" \t\n;{}!,0123456789$~+IM")  # addresses and what stands between commands
_PLAIN = frozenset("=dDgGhHnNpPxzFlLqQ")  # the exit status of `q` is among what stands between
_TO_LINE_END = frozenset("rRwW#")
_LABELLED = frozenset(":btTv")
_FLAGS = frozenset("gpiImM0123456789")


def sed_executes(arguments: Sequence[str]) -> bool:
    """Say whether the scripts among the arguments of ``sed`` start a program, or cannot be read."""
    return any(map(_executes, _scripts(arguments)))  # each by itself: one may end a text that the one before began


def _scripts(arguments: Sequence[str]) -> list[str]:
    """Return the scripts: the first operand is one where no option brings any, as text or as a file."""
    scripts: list[str] = []
    operands: list[str] = []
    files, rest = False, list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            operands += rest
            break
        option, value = _option(argument)
        if not option:
            operands.append(argument)
        elif option in "efl":
            taken = value if value is not None else rest.pop(0) if rest else ""
            files = files or option == "f"
            scripts += [taken] if option == "e" else []
    return scripts if scripts or files else operands[:1]


def _option(argument: str) -> tuple[str, str | None]:
    """Return the option that may take a value among joined ones (``-`` if none does), and what is joined to it."""
    if not argument.startswith("-") or argument == "-":
        return "", None
    if argument.startswith("--"):
        name, equals, value = argument.partition("=")
        long = next((word for word in ("--expression", "--file", "--line-length") if word.startswith(name)), "---")
        return long[2], value if equals else None
    for index, letter in enumerate(argument[1:], 2):
        if letter in "efli":
            return ("-" if letter == "i" else letter), argument[index:] or None
    return "-", None


def _executes(script: str) -> bool:
    at = 0
    while at < len(script):
        command, at = script[at], at + 1
        if command in _BETWEEN or command in _PLAIN:
            continue
        if command == "/" or command == "\\":
            at = _regex(script, at, "/") if command == "/" else _regex(script, at + 1, script[at : at + 1])
        elif command == "s" or command == "y":
            mark = script[at : at + 1]
            at = _regex(script, at + 1, mark) if command == "s" else _segment(script, at + 1, mark)
            at = _segment(script, at, mark)
            at = _flags(script, at) if command == "s" and at > 0 else at
        elif command in "aic":
            at = _text(script, at)
        elif command in _TO_LINE_END:
            at = _line_end(script, at)
        elif command in _LABELLED:
            at = _label(script, at)
        else:
            return True
        if at < 0:
            return True
    return False


def _segment(script: str, at: int, mark: str) -> int:
    """Return the place after the next unescaped mark, or -1: no segment goes over an unescaped line end."""
    if at < 0 or mark in ("", "\n", "\\"):
        return -1
    while at < len(script) and script[at] != "\n":
        if script[at] == mark:
            return at + 1
        at += 2 if script[at] == "\\" else 1
    return -1


def _regex(script: str, at: int, mark: str) -> int:
    """Return the same for a regular expression: a mark within brackets ends nothing."""
    if mark in ("", "\n", "\\", "[", "]", "^"):
        return -1
    while 0 <= at < len(script) and script[at] != "\n":
        if script[at] == mark:
            return at + 1
        if script[at] == "[":
            at = _brackets(script, at + 1)
        else:
            at += 2 if script[at] == "\\" else 1
    return -1


def _brackets(script: str, at: int) -> int:
    """Return the place after the closing bracket, or -1 where versions may differ in which one closes."""
    at += 1 if script[at : at + 1] == "^" else 0
    at += 1 if script[at : at + 1] == "]" else 0
    while at < len(script) and script[at] != "\n":
        if script[at] == "]":
            return -1 if script[at - 1] == "\\" else at + 1
        if script[at] == "[" and script[at + 1 : at + 2] in (":", ".", "="):
            end = script.find(f"{script[at + 1]}]", at + 2)
            if end < 0 or not script[at + 2 : end].isalpha():
                return -1
            at = end + 1
        at += 1
    return -1


def _flags(script: str, at: int) -> int:
    """Return the place after the flags of ``s``, or -1 where one of them is ``e`` or unknown."""
    while at < len(script):
        if script[at] == "w":
            return _line_end(script, at)
        if script[at] in " \t\n;}#":
            return at
        if script[at] not in _FLAGS:
            return -1
        at += 1
    return at


def _text(script: str, at: int) -> int:
    """Return the place after the text of ``a``, ``i`` or ``c``, which a backslash carries over a line end."""
    while at < len(script) and script[at] != "\n":
        if script[at] == "\\" and script[at + 1 :].lstrip(" \t")[:1] == "\n" != script[at + 1]:
            return -1  # a blank between the two: the versions differ
        at += 2 if script[at] == "\\" else 1
    return at


def _label(script: str, at: int) -> int:
    """Return the place after a label: the first at which any version would end it."""
    while script[at : at + 1] in (" ", "\t"):
        at += 1
    while at < len(script) and script[at] not in " \t\n;}":
        at += 1
    return at


def _line_end(script: str, at: int) -> int:
    end = script.find("\n", at)
    return len(script) if end < 0 else end
