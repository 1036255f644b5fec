"""The system calls of one architecture: their names and numbers, as data.

The tables stand in ``seccomp/`` as ``syscalls/v1``, one file an architecture, so that no kernel header is needed where
a filter is made. It leaves to others: which calls a worker may make (``policy.seccomp``), and how a kernel is told
(``launchers.seccomp``).
"""

from __future__ import annotations

from . import shape, wording
from .format import format_of
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .errors import ReadError
    from .reader import Document
    from .shape import Node

FORMAT = "syscalls/v1"

_NUMBER = (("integer", 0, (1 << 30) - 1),)  # below the bit by which x86_64 marks a call of another ABI
_WORD = (("integer", 0, (1 << 32) - 1),)
_NAME = (("string", "[a-z_][a-z0-9_]*", None, 1, 40),)
_TABLE: Node = (
    (
        "dict",
        {
            "prespawn": (True, (("string", None, (FORMAT,), 0, None),)),
            "id": (True, (("string", "[a-z0-9_]+", None, 1, 20),)),
            "seccomp": (True, (("string", "SCMP_ARCH_[A-Z0-9_]+", None, 1, 40),)),
            "audit": (True, _WORD),
            "killed": (True, (("dict", {"first": (True, _WORD), "last": (True, _WORD)}), ("null",))),
            "numbers": (True, (("map", _NAME, _NUMBER, 1, None),)),
        },
    ),
)


class Killed(Record):
    """Numbers, first and last, of another ABI that the kernel reports under the same ``audit``."""

    first: int
    last: int


class Syscalls(Record):
    """One architecture, by the names of its friends.

    ``id`` is ``uname -m``'s, ``seccomp`` the container runtimes', ``audit`` the kernel's (``AUDIT_ARCH_*``). ``numbers``
    are its calls; ``elsewhere`` are names that only another known architecture has, so that a list may name them and
    a misspelt name is still found.
    """

    nested = {"killed": Killed}
    id: str
    seccomp: str
    audit: int
    killed: Killed | None
    numbers: Mapping[str, int]
    elsewhere: tuple[str, ...] = ()


def tables(documents: Iterable[Document]) -> dict[str, Syscalls]:
    """Return the tables of ``syscalls/v1`` documents by id, each knowing the names of all; raises ``ReadError``."""
    alone = [_table(document) for document in documents]
    names = {name for one in alone for name in one.numbers}
    return {one.id: one.replace(elsewhere=tuple(sorted(names - one.numbers.keys()))) for one in alone}


def _table(document: Document) -> Syscalls:
    format_of(document, (FORMAT,))
    for wrong in (*shape.check(document, _TABLE), *_repeated(document)):
        raise wrong
    plain = {name: value for name, value in shape.normalise(document.value, _TABLE).items() if name != "prespawn"}
    killed = plain.pop("killed")
    return Syscalls(**plain, killed=Killed(**killed) if killed else None)


def _repeated(document: Document) -> Iterator[ReadError]:
    """Yield a second name of one number: whichever was meant, a rule about the other would not be kept."""
    names: dict[int, str] = {}
    numbers: dict[str, int] = document.value["numbers"]  # type: ignore[index]  # its shape was checked before
    for name, number in numbers.items():
        if names.setdefault(number, name) != name:
            at = ("numbers", name)
            message = f"{wording.place(at)} is {wording.value(number)}, the number of `{names[number]}`; keep one"
            yield document.error("duplicate-item", message, *at)
