"""``lint``: every file of the project's own formats, and everything that is wrong with each of them.

``files`` says what is read, ``ours`` which of it is ours, ``judging`` what is wrong with it; ``found`` has the results.
A file is judged by the loader that a gate would use, and what passes by ``checker.lint`` beyond its shape.

Example::

    report = lint(entries(["site.yaml", "profiles"]))
    for found in report.findings:
        print(found.file, found.line, found.message, found.id)
"""

from __future__ import annotations

from prespawn.policy.errors import ReadError

from .files import entries
from .filters import foreign
from .found import Found, Report, errors_of
from .judging import Judging
from .ours import document_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from prespawn.policy.reader import Document

    from .files import Entry

__all__ = ["Found", "Report", "entries", "lint"]


def lint(entries: Iterable[Entry]) -> Report:
    """Judge every file that is ours; findings are in the order of the files, and of places in each of them."""
    found: dict[str, list[Found]] = {}
    documents: dict[str, Document] = {}
    passed_over, named = 0, set()
    for entry in entries:
        try:
            document = document_of(entry)
        except ReadError as error:
            found[entry.path] = errors_of(error)
            continue
        if document is None:
            passed_over += 1
        else:
            documents[entry.path], found[entry.path] = document, []
            named |= {entry.path} if entry.named else set()
    for path in foreign(documents, named):
        del documents[path], found[path]
        passed_over += 1
    for path, more in Judging(documents).all():
        found[path] += more
    ordered = (one for path in found for one in sorted(found[path], key=_place))
    return Report(files=len(found), passed_over=passed_over, findings=tuple(ordered))


def _place(found: Found) -> tuple[int, int, str, str]:
    return found.line, found.column, found.id, found.message
