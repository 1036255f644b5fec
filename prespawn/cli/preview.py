"""``prespawn run FILE``: the verdict and the exact invocation; nothing is started."""

from __future__ import annotations

import shlex
import sys

from prespawn.policy.canonical import canonical
from prespawn.words import verdict_lines

from ..documents import declaration_file
from ..gate import Gate
from .check import code_of
from .workspaces import workspace_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def run(file: str, *, site: str | None, workspaces: Sequence[str], format: str) -> int:
    """Print what an approved run of this declaration would be started with; values of variables are left out."""
    gate = Gate.load(site, workspaces=workspace_roots(workspaces))
    checked = gate.check(declaration_file(file, gate))
    words = gate.preview(checked) if checked.allowed else ()
    if format == "json":
        document = {"prespawn": "preview/v1", "verdict": checked.document(), "invocation": list(words)}
        sys.stdout.write(canonical(document) + "\n")
        return code_of(checked)
    sys.stdout.write("".join(f"{line}\n" for line in verdict_lines(file, checked, gate.remedies)))
    if words:
        sys.stdout.write("  would start, after an approval:\n")
        sys.stdout.write(f"    {shlex.join(words)}\n")
    return code_of(checked)


