"""Filters of system calls: which of them are ours, and what is wrong with one.

They keep the form of container runtimes and so have no first key of ours. One is ours where it is named on the line or
stands beside a ``syscalls/v1`` table; any other in a directory is somebody else's. It is judged by being compiled, for
each machine that it names and whose table stands beside it, else for those of the shipped tables.
"""

from __future__ import annotations

import os

from prespawn.launchers.seccomp import compile_filter
from prespawn.policy import catalogue
from prespawn.policy.errors import InputError, ReadError
from prespawn.policy.syscalls import tables

from .files import beside
from .found import Found, errors_of
from .ours import FILTER, SYSCALLS, document_of, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from prespawn.policy.reader import Document
    from prespawn.policy.syscalls import Syscalls

SHIPPED = os.path.join(os.path.dirname(catalogue.__file__), "seccomp")


def foreign(documents: Mapping[str, Document], named: Collection[str]) -> list[str]:
    """Return the paths of filters that are somebody else's; ``named`` stand on the line."""
    kinds = {path: kind_of(document) for path, document in documents.items()}
    ours = {os.path.dirname(path) for path, kind in kinds.items() if kind == SYSCALLS}
    filters = (path for path, kind in kinds.items() if kind == FILTER and path not in named)
    return [path for path in filters if os.path.dirname(path) not in ours]


def judged_filter(document: Document, others: Iterable[Document]) -> Iterator[Found]:
    """Yield what is wrong with a filter for any machine that it names; ``others`` are the tables of the same run."""
    folder = os.path.dirname(document.source)
    known = _tables(other for other in others if os.path.dirname(other.source) == folder)
    machines = known or _tables(_beside(folder)) or _tables(_beside(SHIPPED))
    named = [machine for machine in machines.values() if _names(document.value, machine)]
    yield from dict.fromkeys(_wrong(document, named or list(machines.values())[:1]))


def _wrong(document: Document, machines: Iterable[Syscalls]) -> Iterator[Found]:
    for machine in machines:
        try:
            compile_filter(document, machine)
        except ReadError as error:
            yield from errors_of(error)
        except InputError as error:  # of the whole, so without a place
            yield from errors_of(document.error(error.id.removeprefix("policy-"), str(error)))


def _names(root: object, machine: Syscalls) -> bool:
    entries = root.get("archMap") if isinstance(root, dict) else None
    listed = entries if isinstance(entries, list) else ()
    return any(isinstance(entry, dict) and entry.get("architecture") == machine.seccomp for entry in listed)


def _beside(folder: str) -> Iterator[Document]:
    for entry in beside(folder):
        try:
            document = document_of(entry)
        except ReadError:  # not asked about
            continue
        if document is not None and kind_of(document) == SYSCALLS:
            yield document


def _tables(documents: Iterable[Document]) -> dict[str, Syscalls]:
    """Return the tables among documents; one that is wrong is reported where it stands, and none here."""
    try:
        return tables(documents)
    except ReadError:
        return {}
