"""``prespawn lint``: every file of the project's own formats, judged like a load would, and a little beyond."""

from __future__ import annotations

from prespawn import exit_codes
from prespawn.checker.evaluate import INTERNAL_ERROR
from prespawn.policy.canonical import canonical
from prespawn.policy.spelling import shown

from ..linting import entries, lint
from .output import remark, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..linting import Found, Report


def run(paths: Sequence[str], format: str) -> int:
    """Print what is wrong in each file; that there was nothing to judge is an exit code of its own."""
    report = lint(entries(paths))
    if format == "json":
        say([canonical(_document(report))])
    else:
        say(map(_line, report.findings))
        remark(_summary(report))
    if not report.files:
        return exit_codes.NOTHING
    return exit_codes.worst((exit_codes.ALLOWED, *map(_code, report.findings)))


def _code(found: Found) -> int:
    if found.id == INTERNAL_ERROR:
        return exit_codes.INTERNAL
    return exit_codes.USAGE if found.error else exit_codes.BLOCKED


def _line(found: Found) -> str:
    place = f":{found.line}:{found.column}" if found.line else ""
    return shown(f"{found.file or '``'}{place}: {found.message} ({found.id})")


def _summary(report: Report) -> str:
    if not report.files:
        return f"nothing to judge, {report.passed_over} passed over; allowed here: files that begin with `prespawn:`"
    return (
        f"{_count(report.files, 'file')}, {_count(len(report.findings), 'finding')}, {report.passed_over} passed over"
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _document(report: Report) -> dict[str, object]:
    return {
        "prespawn": "lint/v1",
        "files": report.files,
        "passed_over": report.passed_over,
        "findings": [_finding(found) for found in report.findings],
    }


def _finding(found: Found) -> dict[str, object]:
    fields = {name: value for name, value in found if name != "error"}
    return {name: value for name, value in fields.items() if name != "boundary" or value is not None}
