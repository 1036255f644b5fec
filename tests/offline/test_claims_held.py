"""Claims and level on a held run: what its records support, how strongly, and what falls when one is taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.world import LEVELS, World, plain

if TYPE_CHECKING:
    from prespawn.checker.verdict import Verdict
    from prespawn.policy.levels import Claim

CLAIMS = [claim for level in LEVELS.levels for claim in level.claims if claim.fields]
SEEN = {field: field.partition("./")[0] for claim in CLAIMS for field in claim.fields}
"""By field of a claim: the one under which a look lists it, which for a mount is that of all mounts."""
FIELDS = sorted(set(SEEN.values()))
OBSERVED = ("runtime",)
LEVEL_OF = {claim.id: level.id for level in LEVELS.levels for claim in level.claims}


def fact(**changes: Any) -> dict[str, Any]:
    """Return a look that found everything as planned, with the runtime seen and not attested; with some changes."""
    attested = [field for field in FIELDS if field not in OBSERVED]
    return {"attested": attested, "observed": list(OBSERVED), "declared": ["told"], "differences": [], **changes}


def held(attestation: Any, canary: bool = True, level: str | None = None) -> Verdict:
    """Return the verdict on a held run of the base's declaration."""
    values: dict[str, Any] = {"facts.attestation": attestation, "facts.evidence": ["canary"] if canary else []}
    if level is not None:
        values["declaration.level"] = level
    return World(plain({"set": values})).check("launch")


def difference(field: str, reason: str = "") -> dict[str, Any]:
    return {"field": field, "expected": "planned", "seen": None if reason else "other", "reason": reason}


def without(field: str) -> dict[str, Any]:
    """Return a look in which one field was compared with nothing."""
    attested = [of for of in FIELDS if of not in (*OBSERVED, SEEN[field])]
    return fact(attested=attested, observed=[of for of in OBSERVED if of != SEEN[field]])


def results(verdict: Verdict) -> dict[str, tuple[str, str]]:
    return {claim.claim: (claim.result, claim.strength) for claim in verdict.claims}


def test_everything_seen_and_tried_earns_the_highest_level() -> None:
    verdict = held(fact(), level="container")
    assert verdict.blockers == ()
    assert (verdict.level.earned, verdict.level.attainable) == ("container", "container")
    strengths = {claim.id: "observed" if claim.id == "runtime-digest" else "exercised" for claim in CLAIMS}
    assert {id: results(verdict)[id] for id in strengths} == {id: ("pass", of) for id, of in strengths.items()}
    assert {claim.seen for claim in verdict.claims if claim.claim in strengths} == {"the held run"}


def test_without_a_canary_the_claims_are_attested_and_the_level_stays_logical() -> None:
    verdict = held(fact(), canary=False)
    assert verdict.blockers == ()
    assert (verdict.level.earned, verdict.level.attainable) == ("logical", "logical")
    assert results(verdict)["seccomp"] == ("pass", "attested")


def test_before_anything_is_held_the_same_claims_are_what_the_profile_declares() -> None:
    verdict = World(plain({"set": {"facts.evidence": ["canary"]}})).check("launch")
    assert (verdict.level.earned, verdict.level.attainable) == ("logical", "container")
    assert results(verdict)["seccomp"] == ("pass", "declared")


def test_look_is_no_part_of_the_first_pass() -> None:
    world = World(plain({"set": {"facts.attestation": fact(), "facts.evidence": ["canary"]}}))
    assert world.check("check").level.earned == "logical"


def test_blockers_that_an_approval_saw_are_the_same_on_the_held_run() -> None:
    before = World(plain({})).check("launch")
    assert held(fact(), canary=False).digests["blockers"] == before.digests["blockers"]


@pytest.mark.parametrize(("claim", "field"), [(claim, field) for claim in CLAIMS for field in claim.fields])
def test_claim_falls_with_a_field_that_was_compared_with_nothing_and_so_does_its_level(
    claim: Claim, field: str
) -> None:
    verdict = held(without(field))
    assert results(verdict)[claim.id] == ("unknown", "declared")
    assert verdict.level.earned != LEVEL_OF[claim.id]


@pytest.mark.parametrize(("claim", "field"), [(claim, field) for claim in CLAIMS for field in claim.fields])
def test_claim_fails_with_a_field_that_is_not_as_planned_and_the_run_is_blocked(claim: Claim, field: str) -> None:
    verdict = held(fact(differences=[difference(f"{field}.below")]))
    assert results(verdict)[claim.id][0] == "fail"
    assert [(one.id, one.field, one.because) for one in verdict.blockers] == [
        ("attestation-mismatch", f"{field}.below", "fail")
    ]
    assert verdict.level.earned != LEVEL_OF[claim.id]


@pytest.mark.parametrize(("claim", "field"), [(claim, field) for claim in CLAIMS for field in claim.fields])
def test_claim_is_unknown_with_a_field_that_could_not_be_read_and_so_is_the_level(claim: Claim, field: str) -> None:
    verdict = held(fact(differences=[difference(field, "permission denied")]))
    assert results(verdict)[claim.id][0] == "unknown"
    assert [(one.id, one.because) for one in verdict.blockers] == [
        ("attestation-mismatch", "unknown"), ("isolation-level-unknown", "unknown"),
    ]  # fmt: skip
    assert verdict.blockers[0].reason == f"{field}: permission denied"
    assert verdict.level.earned == "unknown"


def test_claim_is_no_stronger_than_the_weakest_of_its_fields() -> None:
    weaker = [field for field in FIELDS if field not in (*OBSERVED, "filter")]
    verdict = held(fact(attested=weaker, observed=[*OBSERVED, "filter"]))
    assert results(verdict)["filter-bytes"] == ("pass", "observed")
    assert verdict.level.earned == "container"  # which asks no more of it
    weaker = [field for field in FIELDS if field not in (*OBSERVED, "payload.seccomp")]
    verdict = held(fact(attested=weaker, observed=[*OBSERVED, "payload.seccomp"]))
    assert results(verdict)["seccomp"] == ("pass", "observed")
    assert verdict.level.earned == "workspace"


def test_level_that_was_asked_for_and_is_not_reached_on_the_held_run_ends_it() -> None:
    verdict = held(without("payload.seccomp"), level="container")
    assert [(one.id, one.found, one.allowed) for one in verdict.blockers] == [
        ("isolation-level-insufficient", "container", ("logical", "workspace"))
    ]


def test_what_a_canary_did_not_see_is_not_exercised_by_it() -> None:
    verdict = held(fact(attested=[], observed=FIELDS))
    assert {of for id, (_, of) in results(verdict).items() if id in LEVEL_OF and LEVEL_OF[id] == "container"} <= {
        "observed", "declared",
    }  # fmt: skip


@pytest.mark.parametrize("part", ["attested", "observed", "declared", "differences"])
def test_part_of_the_look_that_is_not_known_raises_nothing(part: str) -> None:
    verdict = held(fact(**{part: {"unknown": "taken away"}}))
    assert "internal-error" not in {one.id for one in verdict.blockers}
    if part in ("attested", "differences"):
        assert [one.because for one in verdict.blockers] == ["unknown", "unknown"]
        assert verdict.level.earned == "unknown"
