"""``prespawn exec -- CMD``: the one word before a command.

The declaration is built from the line, checked like any other, approved by having been typed, and run in the sandbox
with the current directory as its workspace. The command's exit status is passed on.
"""

from __future__ import annotations

import os
import sys

from prespawn import exit_codes
from prespawn.words import blocker_text

from ..gate import Gate
from ..pumps import Streams
from .signals import Signals
from .workspaces import workspace_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from prespawn.checker.verdict import Verdict

    from ..outcome import Outcome

PROFILE, ADAPTER = "sandbox-v1", "exec@1"
VENV = ".venv/bin"  # programs of the workspace's own environment come first
STDIN, STDOUT, STDERR = 0, 1, 2
PROGRAM = {  # as Docker and the shells answer where the program alone is the trouble
    "execution-program-not-found": exit_codes.EXEC_NOT_FOUND,
    "execution-program-not-executable": exit_codes.EXEC_NOT_EXECUTABLE,
}


def run(
    words: Sequence[str],
    *,
    site: str | None = None,
    profile: str = PROFILE,
    workspaces: Sequence[str] = (),
    env: Sequence[str] = (),
) -> int:
    """Run a command in the sandbox and return its status, or what ``exit_codes`` has for ``exec``."""
    gate = Gate.load(site, workspaces=workspace_roots(workspaces)).reviewing(profile, tuple(words))
    caller_env = {key: os.environ[key] for key in env if key in os.environ}
    with Signals() as signals:
        run = gate.launch_typed(
            _declaration(words, profile, env),
            operator=f"uid {os.getuid()}",
            streams=_streams(),
            cancel=signals.cancel,
            caller_env=caller_env,
            extra_path=(VENV,),
        )
        if run.outcome is None:
            return _blocked(gate, run.verdict)
        return _ended(run.outcome, signals.received)


def _streams() -> Streams:
    """Pass all three on; a terminal is never the worker's to read from, and it gets an empty input instead."""
    return Streams(stdin=None if os.isatty(STDIN) else STDIN, stdout=STDOUT, stderr=STDERR)


def _declaration(words: Sequence[str], profile: str, env: Sequence[str]) -> dict[str, object]:
    return {
        "prespawn": "declaration/v1",
        "profile": profile,
        "adapter": ADAPTER,
        "cwd": ".",
        "declared_files": [],
        "env_keys": list(env),
        "execution": {"argv": list(words)},
        "file_contract": {"mode": "mutation", "allowed_paths": ["**"]},
        "execute": True,
    }


def _blocked(gate: Gate, verdict: Verdict) -> int:
    for blocker in verdict.blockers:
        sys.stderr.write(f"prespawn: {blocker_text(blocker, gate.remedies[blocker.id])}\n")
    ids = [blocker.id for blocker in verdict.blockers]
    return PROGRAM.get(ids[0], exit_codes.EXEC_NOT_STARTED) if len(ids) == 1 else exit_codes.EXEC_NOT_STARTED


def _ended(outcome: Outcome, received: int | None) -> int:
    """Return the command's own status where it had one; what ended it otherwise is said once."""
    if outcome.status is not None:
        return outcome.status
    if outcome.signal is not None:
        return exit_codes.EXEC_SIGNAL + outcome.signal
    if received is not None:
        return exit_codes.EXEC_SIGNAL + received
    sys.stderr.write(f"prespawn: {outcome.sentence}\n")
    if outcome.stage == "program":
        return exit_codes.EXEC_NOT_EXECUTABLE
    return exit_codes.EXEC_DEADLINE if outcome.how == "deadline" else exit_codes.EXEC_NOT_STARTED
