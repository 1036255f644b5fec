"""Isolation levels as data: which claims each level needs, at what strength, and where they are confirmed.

The order only compares; it does not add up: a level needs its own claims and those of the ``base`` level.
Format: ``schemas/levels.yaml``; the shipped table is ``levels.yaml``.
"""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

STRENGTHS = ("declared", "observed", "attested", "exercised")  # weakest first


class Claim(Record):
    """One statement about one boundary that a level needs.

    ``declared`` is a condition over the profile (``blockers`` has the vocabulary) that says what the profile
    promises; ``None`` where the boundary's own blockers decide. ``fields`` are the places of a held run on which the
    claim rests, where it is confirmed there (``checker.attestation`` compares them).
    """

    id: str
    boundary: str
    strength: str
    confirmed: str
    declared: Mapping[str, object] | None
    fields: tuple[str, ...] = ()


class Level(Record):
    """One level and its own claims."""

    nested = {"claims": (Claim,)}
    id: str
    title: str
    claims: tuple[Claim, ...]


class Levels(Record):
    """All of them, weakest first; ``boundaries`` maps each boundary to a sentence on what it means."""

    nested = {"levels": (Level,)}
    base: str
    boundaries: Mapping[str, str]
    levels: tuple[Level, ...]

    def knows(self, word: object) -> bool:
        """Say whether a word names a level; any JSON value may be asked."""
        return any(level.id == word for level in self.levels)

    def rank(self, id: str) -> int:
        """Return the place of a level in the order; ``ValueError`` for a word that names none."""
        for place, level in enumerate(self.levels):
            if level.id == id:
                return place
        raise ValueError(f"no level `{id}`")
