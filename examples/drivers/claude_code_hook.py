"""A ``PreToolUse`` hook for Claude Code: every shell command of the agent runs in the sandbox.

The agent's call ``bash -c COMMAND`` becomes ``prespawn exec -- bash -c COMMAND``. Put this into ``settings.json``::

    {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "python3 /path/to/claude_code_hook.py"}]}]}}

The call comes as JSON on standard input (``tool_name``, ``tool_input``), and the answer goes to standard output:
``hookSpecificOutput`` with ``permissionDecision`` and the rewritten ``updatedInput``. It is allowed without asking, as
the sandbox holds it; rules of yours that deny it still do. What this hook does not understand it refuses: exit 2 blocks
the call, and the agent reads why. Other tools are not its business, and it says nothing about them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys

SHELL_TOOL = "Bash"
BLOCK = 2
PRESPAWN = os.environ.get("PRESPAWN", "prespawn")


def wrapped(command: str) -> str:
    """Return the command line that runs a command in the sandbox; its text stays one argument, whatever it holds."""
    return shlex.join([PRESPAWN, "exec", "--", "bash", "-c", command])


def answer(call: dict[str, object]) -> dict[str, object] | None:
    """Return the hook's answer to one call, None where there is nothing to say; ``ValueError`` to refuse it."""
    if call.get("hook_event_name") != "PreToolUse":
        raise ValueError("this hook is for PreToolUse")
    if call.get("tool_name") != SHELL_TOOL:
        return None
    given = call.get("tool_input")
    if not isinstance(given, dict) or not isinstance(given.get("command"), str):
        raise ValueError("the call has no command")
    if "\0" in given["command"]:
        raise ValueError("the command holds NUL")
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "runs in the sandbox of prespawn",
        "updatedInput": {**given, "command": wrapped(given["command"])},
    }
    return {"hookSpecificOutput": decision}


def main() -> int:
    """Answer the call on standard input."""
    try:
        call = json.load(sys.stdin)
        said = answer(call) if isinstance(call, dict) else None
        if not isinstance(call, dict):
            raise ValueError("the call is no JSON object")
    except ValueError as wrong:
        print(f"prespawn hook: {wrong}", file=sys.stderr)
        return BLOCK
    if said is not None:
        print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
