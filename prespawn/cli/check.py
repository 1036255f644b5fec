"""``prespawn check``: the verdict on each declaration; nothing is started."""

from __future__ import annotations

from prespawn import exit_codes
from prespawn.checker.evaluate import INTERNAL_ERROR
from prespawn.policy.canonical import canonical
from prespawn.policy.errors import InputError, PrespawnError, ReadError
from prespawn.words import verdict_lines

from ..documents import declaration_file, facts_file, write_facts
from ..gate import Gate
from .output import refuse, say
from .workspaces import workspace_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from prespawn.checker.verdict import Verdict


def run(
    files: Sequence[str],
    *,
    site: str | None = None,
    workspaces: Sequence[str] = (),
    format: str = "text",
    facts: str | None = None,
    record_facts: str | None = None,
) -> int:
    """Check each file (``-`` is standard input) and print the verdicts; the worst answer is the exit code."""
    if len(files) != 1 and not (facts is None and record_facts is None):
        raise InputError("usage", "facts belong to one declaration; give one file with `--facts` or `--record-facts`")
    if facts is not None and record_facts is not None:
        raise InputError("usage", "recorded facts are not recorded again; keep one of `--facts` and `--record-facts`")
    gate = Gate.load(site, workspaces=workspace_roots(workspaces))
    results = [_result(gate, file, facts, record_facts) for file in files]
    if format == "json":
        say([canonical({"prespawn": "check/v1", "results": [document(*result) for result in results]})])
    else:
        _print(gate, results)
    return exit_codes.worst(code_of(answer) for _, answer in results)


def _result(gate: Gate, file: str, facts: str | None, record_facts: str | None) -> tuple[str, Verdict | PrespawnError]:
    try:
        declaration = declaration_file(file, gate)
        if facts is not None:
            return file, gate.check_replayed(declaration, facts_file(facts))
        checked = gate.check(declaration)
        if record_facts is not None and checked.facts is not None:
            write_facts(record_facts, checked.facts)
        return file, checked
    except InputError as wrong:
        return file, wrong


def code_of(answer: Verdict | PrespawnError) -> int:
    """Return the exit code of one verdict, or of what could not be read."""
    if isinstance(answer, PrespawnError):
        return exit_codes.USAGE
    if answer.allowed:
        return exit_codes.ALLOWED
    if any(blocker.id == INTERNAL_ERROR for blocker in answer.blockers):
        return exit_codes.INTERNAL
    return exit_codes.UNDECIDED if answer.undecided else exit_codes.BLOCKED


def document(file: str, answer: Verdict | PrespawnError) -> dict[str, object]:
    """Return what JSON output says of one file: its verdict, or the error that it was refused with."""
    if isinstance(answer, ReadError):
        place = {"line": answer.line, "column": answer.column}
        return {"file": file, "error": {"id": answer.id, "cause": answer.cause, "message": answer.message, **place}}
    if isinstance(answer, PrespawnError):
        return {"file": file, "error": {"id": answer.id, "message": str(answer)}}
    return {"file": file, "verdict": answer.document()}


def _print(gate: Gate, results: Sequence[tuple[str, Verdict | PrespawnError]]) -> None:
    for file, answer in results:
        if isinstance(answer, PrespawnError):
            refuse(answer)
        else:
            say(verdict_lines(file, answer, gate.remedies))
