"""A gate for drivers in any language: one declaration as JSON on standard input, one answer as JSON on standard output.

    python examples/drivers/gate.py [SITE] < declaration.json

The answer has ``allowed``, the ids of the ``blockers`` with the field that each is about, and the ``level``. Nothing is
started. The exit code is 0 for allowed, 1 for blocked, 2 for what is no JSON; a driver starts its worker for 0 alone.
"""

from __future__ import annotations

import json
import sys

from prespawn import Gate, ReadError
from prespawn.policy.reader import read


def answer(text: bytes, site: str | None) -> tuple[int, dict[str, object]]:
    """Return exit code and answer."""
    try:  # not `json.loads`: that takes a key twice, and a driver may have read the other one
        declared = read(text, source="-", family="input", syntax="json").value
    except ReadError as wrong:
        return 2, {"allowed": False, "error": str(wrong)}
    verdict = Gate.load(site).check(declared)
    blockers = [{"id": blocker.id, "field": blocker.field, "because": blocker.because} for blocker in verdict.blockers]
    level = {"requested": verdict.level.requested, "earned": verdict.level.earned}
    return (0 if verdict.allowed else 1), {"allowed": verdict.allowed, "blockers": blockers, "level": level}


if __name__ == "__main__":
    code, said = answer(sys.stdin.buffer.read(), sys.argv[1] if len(sys.argv) > 1 else None)
    print(json.dumps(said))
    sys.exit(code)
