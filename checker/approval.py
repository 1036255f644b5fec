"""An operator's decision to execute one run, bound to what was decided.

The approval names the digests of the declaration, the effective policy and the blocker set that the operator saw;
``accepts`` are ids of blockers that were *unknown* then and are accepted once. ``origin`` says how it came to be:
``operator`` (a file that a person signed with name and reason), ``command-line`` (``exec``: the typed line is its own
approval) or ``driver`` (a verdict without blockers, where the site lets the driver approve it).

Times are Unix seconds. ``used`` is a fact of the registry: one approval starts one run. ``run_id`` is None where the
declaration leaves it to the parent. ``id`` is the approval's own, None for a typed line, which nobody can type again.
"""

from __future__ import annotations

from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from prespawn.policy.known import Unknown

    from .facts import HostFact

FORMAT = "approval/v1"
ORIGINS = OPERATOR, TYPED, DRIVER = ("operator", "command-line", "driver")
SEPARATE, SAME_USER = ("separate", "same-user")


class Approval(Record):
    """One approval; ``digests`` has the keys ``declaration``, ``policy`` and ``blockers``.

    ``uid`` is the user that its file belongs to, so whoever decided and no word of theirs.
    """

    run_id: str | None
    digests: Mapping[str, str]
    operator: str
    uid: int
    reason: str
    approved_at: int
    expires_at: int
    id: str | None = None
    accepts: tuple[str, ...] = ()
    origin: str = OPERATOR
    used: bool | Unknown = False


def approver(approval: Approval, host: HostFact) -> str:
    """Return ``same-user`` for an approver with an uid of the run's own: the parent's, or the worker's."""
    return SAME_USER if approval.uid in (host.uid, host.worker_uid) else SEPARATE


def document(approval: Approval) -> dict[str, object]:
    """Return ``approval/v1`` as a JSON value: what was decided, and nothing of what became of it."""
    return {"prespawn": FORMAT, **{name: value for name, value in approval if name != "used"}}
