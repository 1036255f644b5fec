"""The decision: what a run may claim, what stands in its way, and what its level does not cover.

A verdict holds no path of the host beyond what a blocker found, no environment value and no argument text. The same
declaration, policy and facts give the same bytes: ``document`` is ordered and ``canonical`` sorts its keys.
"""

from __future__ import annotations

from prespawn.policy.canonical import canonical, digest
from prespawn.policy.codec import encode
from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Blocker(Record):
    """One reason why the run must not start.

    ``because`` is ``fail`` (looked at, and wrong) or ``unknown`` (nobody could look; ``reason`` says why). ``field`` is
    the dotted place in the declaration or the fact, ``found`` the value there, ``allowed`` what may stand there.
    ``operator`` says whether an operator may accept it once while it is unknown: ``never`` or ``once``.
    """

    id: str
    boundary: str
    field: str
    found: object
    allowed: tuple[object, ...]
    because: str
    reason: str
    operator: str


class ClaimResult(Record):
    """One appraised statement: ``result`` pass, fail or unknown, ``strength`` of the evidence, where it was seen."""

    claim: str
    boundary: str
    result: str
    strength: str
    seen: str

    def document(self) -> dict[str, str]:
        """Return the claim as ``encode`` would; a verdict has two dozen of them, and nothing else in such numbers."""
        return {
            "claim": self.claim, "boundary": self.boundary, "result": self.result, "strength": self.strength,
            "seen": self.seen,
        }  # fmt: skip


class LevelResult(Record):
    """``requested`` by declaration or profile, ``earned`` so far, ``attainable`` if every pending claim passed."""

    requested: str
    earned: str
    attainable: str


class Verdict(Record):
    """Allowed or not, with everything that led to it.

    ``phase`` is the pass that was evaluated; ``undecided`` says that only unknown facts stand in the way; ``accepted``
    lists the ids of unknown blockers that an operator accepted for this one run.
    """

    phase: str
    allowed: bool
    undecided: bool
    run_id: str | None
    workspace: str | None
    profile: str | None
    adapter: str | None
    level: LevelResult
    claims: tuple[ClaimResult, ...]
    blockers: tuple[Blocker, ...]
    accepted: tuple[str, ...]
    not_claimed: tuple[str, ...]
    digests: Mapping[str, str]

    def document(self) -> dict[str, object]:
        """Return ``verdict/v1`` as a JSON value; what a subclass keeps beside it is no part of that."""
        fields: dict[str, object] = {name: encode(getattr(self, name)) for name in Verdict._fields if name != "claims"}
        return {"prespawn": "verdict/v1", **fields, "claims": [claim.document() for claim in self.claims]}

    def canonical(self) -> str:
        """Return the canonical text, the same bytes for the same inputs."""
        return canonical(self.document())


def blocker_digest(blockers: tuple[Blocker, ...]) -> str:
    """Return the digest to which an approval binds: of the ids, fields and causes, not of the words around them."""
    return digest([[blocker.id, blocker.field, blocker.because] for blocker in blockers])
