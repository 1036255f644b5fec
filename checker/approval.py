"""An operator's decision to execute one run, bound to what was decided.

The approval names the digests of the declaration, the effective policy and the blocker set that the operator saw;
``accepts`` are ids of blockers that were *unknown* then and are accepted once. ``origin`` says how it came to be:
``operator`` (a file or a value that a person signed with name and reason), ``command-line`` (``exec``: the typed line
is its own approval) or ``driver`` (a verdict without blockers, where the site lets the driver approve it).

Times are Unix seconds. ``used`` is a fact of the registry: one approval starts one run. ``run_id`` is None
where the declaration leaves it to the parent.
"""

from __future__ import annotations

from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ORIGINS = ("operator", "command-line", "driver")


class Approval(Record):
    """One approval; ``digests`` has the keys ``declaration``, ``policy`` and ``blockers``."""

    run_id: str | None
    digests: Mapping[str, str]
    operator: str
    reason: str
    approved_at: int
    expires_at: int
    accepts: tuple[str, ...] = ()
    origin: str = "operator"
    used: bool = False
