"""``prespawn run FILE``: the verdict and the exact invocation; nothing is started."""

from __future__ import annotations

import shlex

from prespawn import exit_codes
from prespawn.policy.canonical import canonical
from prespawn.policy.errors import InputError
from prespawn.policy.spelling import shown
from prespawn.words import verdict_lines

from ..documents import declaration_file
from ..gate import Gate
from .check import code_of, document
from .output import refuse, say
from .workspaces import workspace_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..gate import Checked


def run(file: str, *, site: str | None, workspaces: Sequence[str], format: str) -> int:
    """Print what an approved run of this declaration would be started with; values of variables are left out."""
    gate = Gate.load(site, workspaces=workspace_roots(workspaces))
    try:
        checked = gate.check(declaration_file(file, gate))
    except InputError as wrong:
        if format == "json":
            say([canonical({"prespawn": "preview/v1", **document(file, wrong)})])
        else:
            refuse(wrong)
        return exit_codes.USAGE
    words = gate.preview(checked) if checked.allowed and _has_launcher(checked) else ()
    if format == "json":
        say([canonical({"prespawn": "preview/v1", **document(file, checked), "invocation": list(words)})])
    else:
        say((*verdict_lines(file, checked, gate.remedies), *_invocation(checked, words)))
    return code_of(checked)


def _has_launcher(checked: Checked) -> bool:
    """Say whether this installation could start it at all; a verdict can be reached without."""
    return checked.facts is not None and checked.facts.runtime.shipped is True


def _invocation(checked: Checked, words: Sequence[str]) -> tuple[str, ...]:
    if words:
        return ("  would start, after an approval:", f"    {shown(shlex.join(words))}")
    return (f"  nothing here starts it: no launcher for {checked.profile}",) if checked.allowed else ()
