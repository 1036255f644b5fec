"""An adapter for the conformance kit, right or wrong in one way: ``python tests/support/adapters.py HOW``.

It decides by the core itself, from nothing but the vector on its standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from prespawn.testing.vectors import verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Said = dict[str, Any]


def decided(vector: dict[str, Any]) -> Said:
    """Return the core's answer."""
    verdict = verdict_of(vector)
    return {
        "allowed": verdict.allowed, "level": verdict.level.earned,
        "blockers": sorted({blocker.id for blocker in verdict.blockers}),
    }  # fmt: skip


def dropping(said: Said, vector: dict[str, Any]) -> Said:
    kept = [id for id in said["blockers"] if id != "env-key-not-allowed"]
    return {**said, "blockers": kept, "allowed": not kept}


def spawning(said: Said, vector: dict[str, Any]) -> Said:
    subprocess.run(vector["declaration"]["execution"]["argv"], check=False)
    return said


def detaching(said: Said, vector: dict[str, Any]) -> Said:
    """Start it from a grandchild in a session of its own, through a shell, and answer as if nothing were."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sh", ["sh", "-c", " ".join(vector["declaration"]["execution"]["argv"])])
        os._exit(0)
    os.wait()
    return said


def claiming(said: Said, vector: dict[str, Any]) -> Said:
    return {**said, "level": "container"}


def adding(said: Said, vector: dict[str, Any]) -> Said:
    """An adapter may add blockers of its own, and may start helpers."""
    subprocess.run(["true"], check=True)
    return {**said, "allowed": False, "blockers": [*said["blockers"], "vendor/too-late"]}


HOW: dict[str, Callable[[Said, dict[str, Any]], object]] = {
    "right": lambda said, vector: said, "adds": adding, "drops": dropping, "spawns": spawning, "detaches": detaching,
    "claims": claiming, "allows": lambda said, vector: {**said, "allowed": True},
    "refuses": lambda said, vector: {**said, "allowed": False, "blockers": []},
    "says nothing": lambda said, vector: None,
    "says too little": lambda said, vector: {"allowed": said["allowed"]},
}  # fmt: skip


if __name__ == "__main__":
    told = json.load(sys.stdin)
    answer = HOW[sys.argv[1]](decided(told), told)
    if answer is not None:
        print(json.dumps(answer))
