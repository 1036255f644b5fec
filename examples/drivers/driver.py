"""A driver in Python: previews a declaration, and with ``run`` approves and runs it.

    python examples/drivers/driver.py preview FILE [--site SITE]      nothing is started
    python examples/drivers/driver.py run FILE [--site SITE]          preview, approve in your name, run

This is the whole pattern: check, show what stands in the way, approve, launch, and look at three results apart: how
the worker exited, whether its file contract was kept, and which level the run earned.
"""

from __future__ import annotations

import shlex
import sys

from prespawn import Gate
from prespawn.documents import declaration_file

BLOCKED, FAILED = 1, 6


def main(act: str, file: str, site: str | None) -> int:
    """Drive one run, and return prespawn's exit code for it."""
    gate = Gate.load(site)
    verdict = gate.check(declaration_file(file, gate))
    for blocker in verdict.blockers:
        print(gate.explain(blocker))
    if not verdict.allowed:
        return BLOCKED
    print(shlex.join(gate.preview(verdict)))
    if act != "run":
        return 0
    approval = gate.approve(verdict, reason="approved by examples/drivers/driver.py")
    run = gate.launch(verdict, approval=approval)
    if run.outcome is None or run.contract is None:
        return BLOCKED
    print(f"{run.run_id}: {run.outcome.sentence}; {run.contract.sentence}; level {run.verdict.level.earned}")
    return 0 if run.outcome.status == 0 and run.contract.is_kept else FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[4] if len(sys.argv) > 4 else None))
