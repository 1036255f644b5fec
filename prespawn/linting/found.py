"""What ``lint`` found, as plain values."""

from __future__ import annotations

from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.policy.errors import ReadError


class Found(Record):
    """One thing wrong with one file, at a line and column (0 where there is no place).

    ``id`` and ``cause`` as in ``ReadError``, or those of a blocker, whose ``boundary`` it then has; ``error`` says that
    reading met it.
    """

    file: str
    line: int
    column: int
    id: str
    cause: str
    message: str
    boundary: str | None = None
    error: bool = False


class Report(Record):
    """What came out: ``files`` were judged, ``passed_over`` are not ours."""

    files: int
    passed_over: int
    findings: tuple[Found, ...]


def errors_of(error: ReadError) -> list[Found]:
    """Return an error of a document, and the further ones behind it."""
    return [
        Found(
            file=one.source,
            line=one.line,
            column=one.column,
            id=one.id,
            cause=one.cause,
            message=one.message,
            error=True,
        )
        for one in (error, *error.others)
    ]
