"""From facts and blockers to claims, and from claims to the level they earn.

The table of levels is data; no level is known here by name. Before anything is held a claim about the sandbox is what
the profile declares; on a held run it is what the kernel's records support, at their strength. A level is earned when
its own claims and those of the base level pass, each at the strength that it needs and at the stage that confirms it.
While anything is unknown, whatever boundary it is about, the lowest one is; an operator may accept what is unknown,
which makes it no better known.
"""

from __future__ import annotations

from prespawn.blockers.conditions import compile_condition
from prespawn.policy.known import Absent, Unknown
from prespawn.policy.levels import STRENGTHS
from prespawn.policy.record import Record

from .support import support
from .verdict import ClaimResult, LevelResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prespawn.blockers.conditions import Condition
    from prespawn.policy.levels import Claim, Level, Levels

    from .evaluate import View
    from .verdict import Blocker

STAGES = ("check", "attested", "terminal")  # where a claim is confirmed, in the order of one run
_STAGE = {stage: place for place, stage in enumerate(STAGES)}
_STRENGTH = {strength: place for place, strength in enumerate(STRENGTHS)}


class Appraiser(Record):
    """One claim of the table with its condition, compiled once; None where the boundary's own blockers decide.

    ``results`` has every answer that it can give, by its word; ``unseen`` is the one where there is no profile.
    ``stage`` and ``strength`` are the places in their orders of where it is confirmed, and how strongly at least.
    """

    id: str
    claim: Claim
    stage: int
    strength: int
    condition: Condition | None
    results: Mapping[str, ClaimResult]
    unseen: ClaimResult


class Scale(Record):
    """The table of levels, taken apart once: every claim, what each level needs of its own, and the order."""

    appraisers: tuple[Appraiser, ...]
    base: frozenset[str]
    steps: tuple[tuple[str, frozenset[str]], ...]
    ranks: Mapping[str, int]


def scale(levels: Levels) -> Scale:
    """Return a table, ready to be appraised; ``ConditionError`` for a condition outside the vocabulary."""
    steps = tuple((level.id, frozenset(claim.id for claim in level.claims)) for level in levels.levels)
    return Scale(
        appraisers=tuple(_appraiser(claim) for level in levels.levels for claim in level.claims),
        base=dict(steps)[levels.base],
        steps=steps,
        ranks={id: rank for rank, (id, _) in enumerate(steps)},
    )


def appraise(scale: Scale, view: View, blockers: Iterable[Blocker]) -> tuple[ClaimResult, ...]:
    """Return every claim, appraised on what is known so far."""
    if isinstance(view.profile, Absent):
        return tuple(one.unseen for one in scale.appraisers)
    answers = _by_boundary(blockers)
    return tuple([_appraised(one, view, answers) for one in scale.appraisers])


def appraise_held(scale: Scale, claims: Iterable[ClaimResult], view: View) -> tuple[ClaimResult, ...]:
    """Return the claims again, those that a held run confirms as it supports them; a failed one stays failed."""
    pairs = zip(scale.appraisers, claims, strict=True)
    return tuple([_supported(one.claim, result, view) if one.claim.fields else result for one, result in pairs])


def level_of(scale: Scale, claims: Iterable[ClaimResult], view: View, stage: str) -> LevelResult:
    """Return what is requested, what these claims earn, and what could be earned before the run is over."""
    reached, strongest = _STAGE[stage], _STRENGTH[_strongest(view)]
    pairs = list(zip(scale.appraisers, claims, strict=True))
    held = {one.id for one, result in pairs if _holds(one, result, reached)}
    could = {one.id for one, result in pairs if _could_hold(one, result, reached, strongest)}
    return LevelResult(
        requested=_requested(scale, view),
        earned=scale.steps[0][0] if view.unknown else _highest(scale, view, held),
        attainable=_highest(scale, view, could),
    )


def boundaries_not_claimed(levels: Levels, earned: str) -> tuple[str, ...]:
    """Return the boundaries on which a run of this level makes no statement, sorted."""
    claimed = {claim.boundary for claim in _needed(levels, earned)} if levels.rank(earned) else set()
    return tuple(sorted(levels.boundaries.keys() - claimed))


def _by_boundary(blockers: Iterable[Blocker]) -> Mapping[str, str]:
    """Return fail or unknown for each boundary that has a blocker; a failure outweighs what is unknown."""
    answers: dict[str, str] = {}
    for blocker in blockers:
        if answers.get(blocker.boundary) != "fail":
            answers[blocker.boundary] = blocker.because
    return answers


def _appraiser(claim: Claim) -> Appraiser:
    strength, seen = ("observed", "facts") if claim.declared is None else ("declared", "profile")
    return Appraiser(
        id=claim.id,
        claim=claim,
        stage=_STAGE[claim.confirmed],
        strength=_STRENGTH[claim.strength],
        condition=None if claim.declared is None else compile_condition(claim.declared, {}),
        results={word: _result(claim, word, strength, seen) for word in ("pass", "fail", "unknown")},
        unseen=_result(claim, "unknown", "declared", "no profile"),
    )


def _result(claim: Claim, word: str, strength: str, seen: str) -> ClaimResult:
    return ClaimResult(claim=claim.id, boundary=claim.boundary, result=word, strength=strength, seen=seen)


def _appraised(one: Appraiser, view: View, answers: Mapping[str, str]) -> ClaimResult:
    if one.condition is None:
        return one.results[answers.get(one.claim.boundary, "pass")]
    return one.results["pass" if one.condition(view) is True else "fail"]


def _supported(claim: Claim, result: ClaimResult, view: View) -> ClaimResult:
    fact = view.facts.attestation
    found, strength = "unknown", STRENGTHS[0]
    if not isinstance(fact, (Absent, Unknown)):
        found, strength = support(fact, claim.fields)
    if strength == "attested" and _is_tried(view):
        strength = "exercised"
    worst = min(found, result.result, key=("fail", "unknown", "pass").index)
    return result.replace(result=worst, strength=strength, seen="the held run")


def _holds(one: Appraiser, result: ClaimResult, reached: int) -> bool:
    """Say whether a claim passes, at a stage that has been reached, and at the strength that it needs."""
    return result.result == "pass" and one.stage <= reached and _STRENGTH[result.strength] >= one.strength


def _could_hold(one: Appraiser, result: ClaimResult, reached: int, strongest: int) -> bool:
    """Say whether profile and host allow this claim; the base level's own are what the check itself decides.

    What has been confirmed on the held run cannot get any better.
    """
    if reached and one.claim.fields:
        return _holds(one, result, reached)
    return one.condition is None or (result.result == "pass" and strongest >= one.strength)


def _strongest(view: View) -> str:
    """Return the strength that a claim about the sandbox can still reach on this host."""
    if view.facts.runtime.attests is not True:
        return "observed"
    return "exercised" if _is_tried(view) else "attested"


def _is_tried(view: View) -> bool:
    """Say whether a canary tried to break the very sandbox that the profile means, and could not."""
    evidence = view.facts.evidence
    return not isinstance(evidence, Unknown) and "canary" in evidence


def _requested(scale: Scale, view: View) -> str:
    """Return the declared level or the profile's minimum, whichever is higher: a declaration cannot lower it."""
    asked = view.declaration.level
    least = scale.steps[0][0] if isinstance(view.profile, Absent) else view.profile.level.minimum
    if not isinstance(asked, str) or asked not in scale.ranks:
        return least
    return max(asked, least, key=scale.ranks.__getitem__)


def _highest(scale: Scale, view: View, holding: set[str]) -> str:
    """Return the highest level, within what profile and adapter promise, whose needed claims all hold."""
    top = scale.steps[0][0]
    if isinstance(view.profile, Absent) or isinstance(view.adapter, Absent) or not scale.base <= holding:
        return top
    most = min(scale.ranks[view.profile.level.promises], scale.ranks[view.adapter.level_at_most])
    for id, needed in scale.steps[1 : most + 1]:
        if needed <= holding:
            top = id
    return top


def _needed(levels: Levels, id: str) -> tuple[Claim, ...]:
    base, own = _named(levels, levels.base), _named(levels, id)
    return base.claims if own is base else base.claims + own.claims


def _named(levels: Levels, id: str) -> Level:
    return next(level for level in levels.levels if level.id == id)
