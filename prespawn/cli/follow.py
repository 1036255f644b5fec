"""``prespawn follow RUN``: a line for each change of a run's state or of its bytes, until it has ended."""

from __future__ import annotations

import sys

from prespawn import exit_codes
from prespawn.policy.canonical import canonical

from ..gate import Gate
from ..registry import ENDED, NEVER_STARTED
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..follow import Progress


def run(run_id: str, *, site: str | None, format: str) -> int:
    """Print what a run shows until its end, and return how it ended."""
    code = exit_codes.NOTHING
    for seen in Gate.load(site).follow(run_id):
        say([canonical({"prespawn": "progress/v1", **dict(seen)}) if format == "json" else line(seen)])
        sys.stdout.flush()
        code = code_of(seen)
    return code


def line(seen: Progress) -> str:
    """Return one look in words."""
    written = "" if seen.written is None else f", {seen.written} bytes written"
    if seen.is_orphaned:
        return f"{seen.run_id}: {seen.state}{written}; its parent is gone, and `prespawn recover` settles it"
    end = seen.end or {}
    said = [f"{name} {end[name]}" for name in ("how", "status", "signal", "contract", "level") if name in end]
    return f"{seen.run_id}: {seen.state}{written}{''.join(f', {word}' for word in said)}"


def code_of(seen: Progress) -> int:
    """Return what the last look means: it ended well, it did not, or it never started."""
    end = seen.end or {}
    if seen.state == NEVER_STARTED:
        return exit_codes.HOST_FAILED
    well = seen.state == ENDED and end.get("status") == 0 and end.get("contract", "kept") == "kept"
    return exit_codes.ALLOWED if well else exit_codes.RAN_BADLY
