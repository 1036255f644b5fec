"""A driver: the smallest complete use of the gate from Python.

It declares one run, shows what stands in its way if anything does, approves it in the operator's name, and runs it::

    python examples/driver.py DIR -- CMD…

DIR becomes the workspace. The exit status is the command's own, 1 if the run was blocked.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from prespawn import Gate, Streams

if TYPE_CHECKING:
    from collections.abc import Sequence


def declaration(command: Sequence[str]) -> dict[str, object]:
    """Return what this driver asks for: the command, and leave to change anything in the workspace but `.git`."""
    return {
        "prespawn": "declaration/v1",
        "profile": "sandbox-v1",
        "adapter": "exec@1",
        "cwd": ".",
        "declared_files": [],
        "env_keys": [],
        "execution": {"argv": list(command)},
        "file_contract": {"mode": "mutation", "allowed_paths": ["**"]},
        "execute": True,
    }


def main(workspace: str, command: Sequence[str]) -> int:
    """Gate and run one command."""
    gate = Gate.load(workspaces={"main": workspace})
    verdict = gate.check(declaration(command))
    if not verdict.allowed:
        for blocker in verdict.blockers:
            print(gate.explain(blocker), file=sys.stderr)
        return 1
    approval = gate.approve(verdict, reason="asked for on the command line")
    run = gate.launch(verdict, approval=approval, streams=Streams(stdout=1, stderr=2))
    if run.outcome is None:
        print(f"{run.run_id} was not started", file=sys.stderr)
        return 1
    print(f"{run.run_id}: {run.outcome.how}, level {run.verdict.level.earned}", file=sys.stderr)
    return run.outcome.status if run.outcome.status is not None else 1


if __name__ == "__main__":
    _, directory, separator, *words = [*sys.argv, "", ""][:3] + sys.argv[3:]
    if separator != "--" or not words:
        sys.exit("usage: driver.py DIR -- CMD…")
    sys.exit(main(directory, words))
