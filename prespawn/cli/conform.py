"""``prespawn conform -- COMMAND``: whether somebody's adapter keeps both halves of every vector."""

from __future__ import annotations

from prespawn import exit_codes
from prespawn.policy.canonical import canonical
from prespawn.policy.spelling import shown

from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def run(words: Sequence[str], *, everything: bool, export: bool, format: str) -> int:
    """Try the adapter on each vector, or print the vectors, one a line."""
    from prespawn.testing.conform import conform
    from prespawn.testing.vectors import vectors

    chosen = vectors(everything=everything)
    if export:
        say(canonical(vector) for vector in chosen)
        return exit_codes.ALLOWED
    results = list(conform(words, chosen))
    found = [finding for _, findings in results for finding in findings]
    if format == "json":
        rows = [{"vector": name, "findings": [dict(one) for one in findings]} for name, findings in results]
        say([canonical({"prespawn": "conformance/v1", "results": rows})])
    else:
        say((*(shown(str(finding)) for finding in found), f"{len(results)} vectors, {len(found)} findings"))
    return exit_codes.BLOCKED if found else exit_codes.ALLOWED
