"""Is the command typed data, or text that some program will take apart?

A vector that the site lists for the profile has been reviewed as a whole: neither shells nor operators in it are
news. Everything else is judged by its program and by the options with which a program is made to run more code. An
argument that merely contains ``;`` or ``$(id)`` is data: nothing here ever splits or expands it.
"""

from __future__ import annotations

from prespawn.policy.known import Absent, Unknown

from .finding import Finding
from .programs import runs_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..evaluate import View

FIELD = "execution.argv"
_STRING = frozenset((str,))  # the types of an admitted value are JSON's own, none of them a subclass


def execution_preview_argv_invalid(view: View) -> list[Finding]:
    """Not a list, no program, an element that is not a string or that no ``execve(2)`` can take."""
    argv = view.declaration.argv
    if isinstance(argv, str) or "argv" not in _taken(view):
        return []
    if not isinstance(argv, list) or not argv:
        return [Finding(field=FIELD, found=_kind(argv), allowed=("a list of strings that begins with a program",))]
    return [
        Finding(field=f"{FIELD}[{index}]", found=_kind(element), allowed=("a string without NUL",))
        for index, element in enumerate(argv)
        if not isinstance(element, str) or not _passable(element) or (index == 0 and not element)
    ]


def execution_preview_shell_interpolation(view: View) -> list[Finding]:
    """A command line in one string, a program name that only a shell could read, or a shell operator as an argument."""
    argv = view.declaration.argv
    if "argv" not in _taken(view) or _reviewed(view):
        return []
    if isinstance(argv, str):
        return [Finding(field=FIELD, found="one string", allowed=("a list of strings that begins with a program",))]
    vector, is_operator = _strings(argv), view.lists["shell-operators"].holds
    found = [
        Finding(field=f"{FIELD}[{index}]", found=element, allowed=("an argument that is no shell operator",))
        for index, element in enumerate(vector)
        if index and is_operator(element)
    ]
    if vector and _metacharacters(view, vector[0]):
        allowed = ("a program name or path without blanks and metacharacters",)
        found.append(Finding(field=f"{FIELD}[0]", found=vector[0], allowed=allowed))
    return found


def execution_preview_interpreter(view: View) -> Iterable[Finding] | Unknown:
    """A shell, a wrapper that starts another program, or an interpreter that is handed its program as an argument."""
    argv = _strings(view.declaration.argv)
    if "argv" not in _taken(view) or not argv or _reviewed(view):
        return ()
    given = _basename(argv[0])
    if reason := runs_code(view.lists, given, argv[1:]):
        return (_interpreter(given, reason),)
    real = view.facts.program.name
    if isinstance(real, Unknown):
        return real
    if (
        isinstance(real, str)
        and real != given
        and not view.lists["multi-call"].holds(real)
        and (reason := runs_code(view.lists, real, argv[1:]))
    ):
        return (_interpreter(f"{given} -> {real}", reason),)
    return ()


def execution_preview_not_allowed(view: View) -> Iterable[Finding]:
    """A profile that takes only listed vectors, and a vector that is not listed whole."""
    if view.profile.argv != "listed" or "argv" not in _taken(view):
        return ()
    argv = _strings(view.declaration.argv)
    if not argv or _reviewed(view):
        return ()
    listed = tuple(" ".join(vector) for vector in _listed(view))
    return (Finding(field=FIELD, found=_summary(argv), allowed=listed),)


FUNCTIONS = (
    execution_preview_argv_invalid,
    execution_preview_shell_interpolation,
    execution_preview_interpreter,
    execution_preview_not_allowed,
)


def _taken(view: View) -> Sequence[str]:
    return () if isinstance(view.adapter, Absent) else view.adapter.takes


def _reviewed(view: View) -> bool:
    listed, argv = _listed(view), view.declaration.argv
    return bool(listed) and isinstance(argv, list) and tuple(argv) in listed


def _listed(view: View) -> Sequence[tuple[str, ...]]:
    return () if isinstance(view.profile, Absent) else view.site.argv.get(view.profile.id, ())


def _strings(argv: object) -> tuple[str, ...]:
    """Return the vector if it is one, else nothing: its shape is another blocker's question."""
    return tuple(argv) if isinstance(argv, list) and _STRING.issuperset(map(type, argv)) else ()


def _passable(element: str) -> bool:
    if "\0" in element:
        return False
    return element.isascii() or not any("\ud800" <= character <= "\udfff" for character in element)


def _metacharacters(view: View, program: str) -> bool:
    return view.lists["shell-metacharacters"].holds_any(program)


def _basename(program: str) -> str:
    return program.rstrip("/").rpartition("/")[2]


def _interpreter(program: str, reason: str) -> Finding:
    return Finding(
        field=f"{FIELD}[0]", found=f"{program}, {reason}", allowed=("a program", "a vector that the site lists whole")
    )


def _summary(argv: Sequence[str]) -> str:
    """Name the program and count the rest: arguments may hold what no message should."""
    return f"{argv[0]} with {len(argv) - 1} argument{'' if len(argv) == 2 else 's'}"


def _kind(value: object) -> str:
    words = {dict: "a mapping", list: "an empty list", int: "a number", bool: "a boolean", type(None): "null"}
    if isinstance(value, str):
        return "a string with NUL or a lone surrogate" if value else "an empty string"
    if isinstance(value, list) and value:
        return "a list"
    return words.get(type(value), "nothing")
