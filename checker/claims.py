"""From facts and blockers to claims, and from claims to the level they earn.

The table of levels is data; no level is known here by name. A level is earned when its own claims and those of the
base level pass, each at the strength that it needs and at the stage that confirms it. While anything is unknown, whatever
boundary it is about, the lowest one is; an operator may accept what is unknown, which makes it no better known.
"""

from __future__ import annotations

from prespawn.blockers.conditions import compile_condition
from prespawn.policy.known import Absent, Unknown
from prespawn.policy.levels import STRENGTHS
from prespawn.policy.record import Record

from .verdict import ClaimResult, LevelResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prespawn.blockers.conditions import Condition
    from prespawn.policy.levels import Claim, Levels

    from .evaluate import View
    from .verdict import Blocker

STAGES = ("check", "attested", "terminal")  # where a claim is confirmed, in the order of one run


class Appraiser(Record):
    """One claim of the table with its condition, compiled once; None where the boundary's own blockers decide."""

    claim: Claim
    condition: Condition | None


def appraisers(levels: Levels) -> tuple[Appraiser, ...]:
    """Return every claim of a table, ready to be appraised; ``ConditionError`` for one outside the vocabulary."""
    claims = (claim for level in levels.levels for claim in level.claims)
    return tuple(
        Appraiser(claim=claim, condition=None if claim.declared is None else compile_condition(claim.declared, {}))
        for claim in claims
    )


def appraise(all: Iterable[Appraiser], view: View, blockers: Iterable[Blocker]) -> tuple[ClaimResult, ...]:
    """Return every claim, appraised on what is known so far."""
    answers = _by_boundary(blockers)
    return tuple(_appraised(one, view, answers) for one in all)


def level_of(view: View, claims: Iterable[ClaimResult], stage: str) -> LevelResult:
    """Return what is requested, what these claims earn, and what could be earned before the run is over."""
    results = {claim.claim: claim for claim in claims}
    lowest = view.levels.levels[0].id
    return LevelResult(
        requested=_requested(view),
        earned=lowest if view.unknown else _highest(view, lambda claim: _holds(claim, results[claim.id], stage)),
        attainable=_highest(view, lambda claim: _could_hold(claim, results[claim.id], view)),
    )


def boundaries_not_claimed(levels: Levels, earned: str) -> tuple[str, ...]:
    """Return the boundaries on which a run of this level makes no statement, sorted."""
    claimed = {claim.boundary for claim in _needed(levels, earned)} if levels.rank(earned) else set()
    return tuple(sorted(set(levels.boundaries) - claimed))


def _by_boundary(blockers: Iterable[Blocker]) -> Mapping[str, str]:
    """Return fail or unknown for each boundary that has a blocker; a failure outweighs what is unknown."""
    answers: dict[str, str] = {}
    for blocker in blockers:
        if answers.get(blocker.boundary) != "fail":
            answers[blocker.boundary] = blocker.because
    return answers


def _appraised(one: Appraiser, view: View, answers: Mapping[str, str]) -> ClaimResult:
    claim = one.claim
    if isinstance(view.profile, Absent):
        result, strength, seen = "unknown", "declared", "no profile"
    elif one.condition is None:
        result, strength, seen = answers.get(claim.boundary, "pass"), "observed", "facts"
    else:
        answer = one.condition(view)
        result, strength, seen = ("pass" if answer is True else "fail"), "declared", "profile"
    return ClaimResult(claim=claim.id, boundary=claim.boundary, result=result, strength=strength, seen=seen)


def _holds(claim: Claim, result: ClaimResult, stage: str) -> bool:
    reached = STAGES.index(claim.confirmed) <= STAGES.index(stage)
    return result.result == "pass" and reached and _reaches(result.strength, claim.strength)


def _could_hold(claim: Claim, result: ClaimResult, view: View) -> bool:
    """Say whether profile and host allow this claim; the base level's own are what the check itself decides."""
    if claim.declared is None:
        return not isinstance(view.profile, Absent)
    return result.result == "pass" and _reaches(_strongest(view), claim.strength)


def _strongest(view: View) -> str:
    """Return the strength that a claim about the sandbox can still reach on this host."""
    if view.facts.runtime.attests is not True:
        return "observed"
    evidence = view.facts.evidence
    return "exercised" if not isinstance(evidence, Unknown) and "canary" in evidence else "attested"


def _reaches(strength: str, needed: str) -> bool:
    return STRENGTHS.index(strength) >= STRENGTHS.index(needed)


def _requested(view: View) -> str:
    """Return the declared level or the profile's minimum, whichever is higher: a declaration cannot lower it."""
    levels, asked = view.levels, view.declaration.level
    least = levels.levels[0].id if isinstance(view.profile, Absent) else view.profile.level.minimum
    if not levels.knows(asked):
        return least
    return max(str(asked), least, key=levels.rank)


def _highest(view: View, holds: Callable[[Claim], bool]) -> str:
    """Return the highest level, within what profile and adapter promise, whose needed claims all hold."""
    levels = view.levels
    top = levels.levels[0].id
    if isinstance(view.profile, Absent) or isinstance(view.adapter, Absent):
        return top
    most = min(levels.rank(view.profile.level.promises), levels.rank(view.adapter.level_at_most))
    for level in levels.levels[1 : most + 1]:
        if all(map(holds, _needed(levels, level.id))):
            top = level.id
    return top


def _needed(levels: Levels, id: str) -> tuple[Claim, ...]:
    base = next(level for level in levels.levels if level.id == levels.base)
    own = next(level for level in levels.levels if level.id == id)
    return base.claims if own is base else base.claims + own.claims
