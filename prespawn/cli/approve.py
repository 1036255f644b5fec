"""``prespawn approve FILE``: look at the declaration as it is now, and write down that it may run once."""

from __future__ import annotations

from prespawn.checker.approval import document as approval_document
from prespawn.policy.canonical import canonical
from prespawn.policy.errors import InputError, NotApprovableError
from prespawn.policy.spelling import shown
from prespawn.policy.units import EXAMPLES, amount
from prespawn.words import verdict_lines

from .. import exit_codes
from ..documents import declaration_file, facts_file
from ..gate import Gate
from .check import code_of, document
from .output import remark, say
from .workspaces import workspace_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from prespawn.checker.approval import Approval
    from prespawn.checker.verdict import Verdict

FORMAT = "approved/v1"


def run(
    file: str, *, reason: str, accepts: Sequence[str], lifetime: str | None, facts: str | None,
    site: str | None, workspaces: Sequence[str], format: str,
) -> int:  # fmt: skip
    """Approve one run and print the approval's id; where it cannot be approved, the verdict and its code."""
    gate = Gate.load(site, workspaces=workspace_roots(workspaces))
    seconds = None if lifetime is None else _seconds(lifetime)
    declaration = declaration_file(file, gate)
    recorded = None if facts is None else facts_file(facts)
    checked: Verdict = gate.check(declaration) if recorded is None else gate.check_replayed(declaration, recorded)
    if any(blocker.because == "fail" for blocker in checked.blockers):
        return _refused(gate, file, checked, format)
    try:
        approval = gate.approve(
            checked, reason=reason, accepts=tuple(accepts), seconds=seconds, declaration=declaration, facts=recorded
        )
    except NotApprovableError as stands:
        return _refused(gate, file, stands.verdict, format)  # type: ignore[arg-type]  # a verdict, as its text says
    if format == "json":
        say([canonical({"prespawn": FORMAT, "file": file, "approval": approval_document(approval)})])
    else:
        say(_lines(file, approval))
    return exit_codes.ALLOWED


def _refused(gate: Gate, file: str, verdict: Verdict, format: str) -> int:
    if format == "json":
        say([canonical({"prespawn": FORMAT, **document(file, verdict), "approval": None})])
    else:
        say(verdict_lines(file, verdict, gate.remedies))
        remark("nothing was approved")
    return code_of(verdict)


def _lines(file: str, approval: Approval) -> tuple[str, ...]:
    run = "" if approval.run_id is None else f" as run {approval.run_id}"
    accepted = [f"  accepts as unknown: {', '.join(approval.accepts)}"] if approval.accepts else []
    lasting = approval.expires_at - approval.approved_at
    return (
        f"{shown(file)}: approved{run} by {shown(approval.operator)} for {lasting} s, to be started once",
        *accepted,
        f"  approval {approval.id}",
        f"  next: prespawn run --execute {shown(file)}",
    )


def _seconds(lifetime: str) -> int:
    milliseconds = amount(lifetime, "duration")
    if milliseconds is None or milliseconds < 1000:
        message = f"`--lifetime` is `{shown(lifetime)}`; allowed here: a second or more, as `{EXAMPLES['duration']}`"
        raise InputError("usage", message)
    return milliseconds // 1000
