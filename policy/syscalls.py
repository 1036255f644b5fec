"""The system calls of one architecture: their names and numbers, as data.

The tables stand in ``seccomp/`` as ``syscalls/v1``, one file an architecture, so that no kernel header is needed where
a filter is made. It leaves to others: which calls a worker may make (``policy.seccomp``), and how a kernel is told
(``launchers.seccomp``).
"""

from __future__ import annotations

from . import shape, table, wording
from .format import format_of
from .known import ABSENT
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .errors import ReadError
    from .known import Absent
    from .reader import Document

FORMAT = "syscalls/v1"

_WORD = {"type": "integer", "required": True, "min": 0, "max": (1 << 32) - 1}
_RANGE = {"first": _WORD, "last": {**_WORD, "max": (1 << 32) - 2}}  # the number after it is compared with, in 32 bits
_FIELDS = {
    "prespawn": {"type": "string", "required": True, "allowed": [FORMAT]},
    "id": {"type": "string", "required": True, "regex": "[a-z0-9_]{1,20}"},
    "seccomp": {"type": "string", "required": True, "regex": "SCMP_ARCH_[A-Z0-9_]{1,20}"},
    "audit": _WORD,
    "killed": {"type": "dict", "required": True, "nullable": True, "schema": _RANGE},
    "numbers": {
        "type": "dict",
        "required": True,
        "minlength": 1,
        "keysrules": {"type": "string", "regex": "[a-z_][a-z0-9_]{0,40}"},
        "valuesrules": {"type": "integer", "min": 0, "max": (1 << 16) - 1},
    },
}


class Killed(Record):
    """Numbers, first and last, of another ABI that the kernel reports under the same ``audit``."""

    first: int
    last: int


class Syscalls(Record):
    """One architecture and its calls.

    ``id`` is what ``uname -m`` says, ``seccomp`` the container runtimes' word, ``audit`` the kernel's
    (``AUDIT_ARCH_*``). ``numbers`` are its calls; ``elsewhere`` are names that only another known architecture has,
    so that a list may name them and a misspelt name is still found.
    """

    nested = {"killed": Killed}
    id: str
    seccomp: str
    audit: int
    killed: Killed | Absent
    numbers: Mapping[str, int]
    elsewhere: tuple[str, ...] = ()


def tables(documents: Iterable[Document]) -> dict[str, Syscalls]:
    """Return the tables of ``syscalls/v1`` documents by id, each knowing the names of all; raises ``ReadError``."""
    alone: list[Syscalls] = []
    for document in documents:
        found = _table(document)
        if found.id in {one.id for one in alone}:
            message = f"`id` is {wording.value(found.id)}, which another table has; keep one"
            raise document.error("duplicate-id", message, "id")
        alone.append(found)
    names = {name for one in alone for name in one.numbers}
    return {one.id: one.replace(elsewhere=tuple(sorted(names - one.numbers.keys()))) for one in alone}


def _table(document: Document) -> Syscalls:
    format_of(document, (FORMAT,))
    value, faults = shape.examine(document.value, (table.record(_FIELDS),))
    for wrong in shape.errors(document, faults):
        raise wrong
    for wrong in _repeated(document, value["numbers"]):
        raise wrong
    killed = ABSENT if value["killed"] is None else Killed(**value["killed"])
    named = {key: value[key] for key in ("id", "seccomp", "audit", "numbers")}
    return Syscalls(**named, killed=killed)


def _repeated(document: Document, numbers: Mapping[str, int]) -> Iterator[ReadError]:
    """Yield a second name of one number: of two rules about it one would be lost."""
    names: dict[int, str] = {}
    for name, number in numbers.items():
        if names.setdefault(number, name) != name:
            at = ("numbers", name)
            message = f"{wording.place(at)} is {wording.value(number)}, the number of `{names[number]}`; keep one"
            yield document.error("duplicate-item", message, *at)
