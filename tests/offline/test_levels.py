"""Levels are earned by claims, as the table says and as nobody else does: the checker knows none of them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.cases import UNKNOWN, put, reported
from support.world import ADAPTERS, LEVELS, LISTS, RULES, World, plain

from prespawn.blockers import shipped
from prespawn.blockers.rule import compile_rules
from prespawn.checker.check import Checker
from prespawn.policy.catalogue import loader
from prespawn.policy.errors import InputError
from prespawn.policy.reader import read

if TYPE_CHECKING:
    from prespawn.checker.verdict import Verdict
    from prespawn.policy.adapter import Adapter
    from prespawn.policy.levels import Levels

SEVEN = {"cwd", "declaredFiles", "envKeys", "logPath", "registry", "executionPreview", "fileContract"}
EVERY = set(LEVELS.boundaries)
SHIPPED = [level.id for level in LEVELS.levels]
TRIED: dict[str, Any] = {"facts.runtime.attests": True, "facts.evidence": ["canary"]}
"""What a host shows on which the launcher reads the held process and a canary could not break out."""


def world(sets: dict[str, Any], **parts: Any) -> World:
    values = plain()
    put(values, "profile.process.seccomp", "default")
    for path, value in sets.items():
        put(values, path, value)
    return World(values, **parts)


def verdict(sets: dict[str, Any], **parts: Any) -> Verdict:
    return world(sets, **parts).check()


def level(of: Verdict) -> tuple[str, str, str]:
    return of.level.requested, of.level.earned, of.level.attainable


def blocker(id: str, field: str, found: object, allowed: list[str]) -> dict[str, object]:
    return {"id": id, "field": field, "found": found, "allowed": allowed, "because": "fail"}


# -- what the shipped table gives


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ({}, ("logical", "logical", "logical")),
        ({"facts.runtime.attests": False}, ("logical", "logical", "logical")),
        ({"facts.runtime.attests": False, "facts.evidence": ["canary"]}, ("logical", "logical", "logical")),
        (TRIED, ("logical", "logical", "container")),
        ({**TRIED, "declaration.level": "workspace"}, ("workspace", "logical", "container")),
        ({**TRIED, "declaration.level": "container"}, ("container", "logical", "container")),
        ({**TRIED, "profile.level.promises": "workspace"}, ("logical", "logical", "workspace")),
        ({**TRIED, "profile.process.seccomp": "none"}, ("logical", "logical", "workspace")),
        ({**TRIED, "profile.process.capabilities": ["CAP_NET_RAW"]}, ("logical", "logical", "workspace")),
        ({**TRIED, "profile.process.no_new_privs": False}, ("logical", "logical", "workspace")),
        ({**TRIED, "profile.process.user_namespaces": "allowed"}, ("logical", "logical", "workspace")),
        ({**TRIED, "profile.network.mode": "host"}, ("logical", "logical", "workspace")),
        ({**TRIED, "profile.root.system": "host"}, ("logical", "logical", "logical")),
        ({**TRIED, "profile.level.minimum": "container"}, ("container", "logical", "container")),
        ({**TRIED, "profile.level.minimum": "container", "declaration.level": "logical"},
         ("container", "logical", "container")),
    ],
)  # fmt: skip
def test_level_is_what_the_claims_support(sets: dict[str, Any], expected: tuple[str, str, str]) -> None:
    decided = verdict(sets)
    assert level(decided) == expected
    assert decided.blockers == ()


def test_name_of_the_launcher_earns_nothing() -> None:
    for name in ("docker", "letta", "local"):
        sets = {**TRIED, "profile.launcher": name, "profile.process.seccomp": "none", "facts.runtime.name": name}
        assert verdict(sets).level.attainable == "workspace"


def test_failed_boundary_of_the_base_level_earns_nothing() -> None:
    decided = verdict({**TRIED, "facts.cwd.inode": 7})
    assert level(decided) == ("logical", "unknown", "container")
    assert [one.id for one in decided.blockers] == ["execute-cwd-mismatch"]
    assert [claim.claim for claim in decided.claims if claim.boundary == "cwd" and claim.result == "fail"] == ["cwd"]
    assert decided.not_claimed == tuple(sorted(EVERY))


def test_boundaries_that_the_level_does_not_claim_are_listed() -> None:
    assert set(verdict({}).not_claimed) == EVERY - SEVEN
    assert list(verdict({}).not_claimed) == sorted(EVERY - SEVEN)
    assert set(verdict({"facts.cwd.inode": UNKNOWN}).not_claimed) == EVERY


# -- requested, reported, unknown: one blocker each


@pytest.mark.parametrize(
    ("sets", "allowed"),
    [
        ({"facts.runtime.attests": False, "declaration.level": "container"}, ["logical"]),
        ({"declaration.level": "worktree"}, ["logical"]),
        ({**TRIED, "profile.process.seccomp": "none", "declaration.level": "container"}, ["logical", "workspace"]),
        ({**TRIED, "profile.level.promises": "logical", "declaration.level": "container"}, ["logical"]),
    ],
)
def test_more_than_attainable_is_insufficient(sets: dict[str, Any], allowed: list[str]) -> None:
    decided = verdict(sets)
    asked = sets["declaration.level"]
    assert reported(decided) == [blocker("isolation-level-insufficient", "level", asked, allowed)]
    assert level(decided) == (asked, "logical", allowed[-1])


def test_minimum_of_the_profile_is_asked_for_where_the_declaration_is_silent() -> None:
    decided = verdict({"profile.level.minimum": "container"})
    assert reported(decided) == [blocker("isolation-level-insufficient", "level", "container", ["logical"])]


def test_reported_above_evidence_is_overclaimed_and_the_lower_level_stands() -> None:
    decided = verdict({**TRIED, "facts.reported": {"level": "container"}})
    assert reported(decided) == [blocker("isolation-level-overclaimed", "reported.level", "container", ["logical"])]
    assert level(decided) == ("logical", "logical", "container")


@pytest.mark.parametrize("word", ["logical", "unknown"])
def test_reported_level_that_is_earned_or_lower_passes(word: str) -> None:
    assert verdict({"facts.reported": {"level": word}}).blockers == ()


def test_reported_word_of_no_table_is_no_level() -> None:
    decided = verdict({"facts.reported": {"level": "vm"}})
    assert reported(decided) == [blocker("isolation-level-unknown", "reported.level", "vm", SHIPPED[1:])]


@pytest.mark.parametrize("word", ["Container", "container\n", "", "unknown", 4, True, None, ["container"], {}])
def test_declared_word_of_no_table_is_no_level(word: object) -> None:
    decided = verdict({**TRIED, "declaration.level": word})
    assert reported(decided) == [blocker("isolation-level-unknown", "level", word, SHIPPED[1:])]
    assert decided.level.requested == "logical"


def test_unknown_level_lists_everything_that_is_unknown_once() -> None:
    decided = verdict({"facts.cwd.inode": UNKNOWN, "facts.log.exists": UNKNOWN, "facts.log.leaves": UNKNOWN})
    ids = ["execute-cwd-mismatch", "log-path-exists", "log-path-outside-workspace"]
    assert [one.id for one in decided.blockers] == [ids[0], "isolation-level-unknown", *ids[1:]]
    assert [one.reason for one in decided.blockers if one.id == "isolation-level-unknown"] == [", ".join(ids)]
    assert level(decided) == ("logical", "unknown", "logical")
    assert decided.undecided


def test_unknown_beside_a_failure_is_decided() -> None:
    decided = verdict({"facts.cwd.inode": UNKNOWN, "facts.log.exists": True})
    assert [(one.id, one.because) for one in decided.blockers] == [
        ("execute-cwd-mismatch", "unknown"), ("isolation-level-unknown", "unknown"), ("log-path-exists", "fail"),
    ]  # fmt: skip
    assert not decided.undecided


def test_accepted_unknown_stays_unknown() -> None:
    accepts = ["execute-cwd-mismatch", "isolation-level-unknown"]
    run = world({**TRIED, "facts.cwd.inode": UNKNOWN, "approval.accepts": accepts})
    decided = run.check("execute")
    assert decided.allowed
    assert list(decided.accepted) == accepts
    assert level(decided) == ("logical", "unknown", "container")
    assert set(decided.not_claimed) == EVERY


def test_accepting_a_failure_or_half_of_the_unknown_changes_nothing() -> None:
    failed = world({"facts.cwd.inode": 7, "approval.accepts": ["execute-cwd-mismatch"]}).check("execute")
    assert [one.id for one in failed.blockers] == ["execute-cwd-mismatch"]
    half = world({"facts.cwd.inode": UNKNOWN, "approval.accepts": ["execute-cwd-mismatch"]}).check("execute")
    assert [one.id for one in half.blockers] == ["isolation-level-unknown"]
    assert failed.accepted == ()


# -- a table with other words


INVENTED = b"""\
prespawn: levels/v1
base: ink
boundaries: {cwd: where it starts, network: what it reaches, process: who it is, policy: what decides}
levels:
  - {id: fog, title: nothing is known, claims: []}
  - id: ink
    title: written down
    claims:
      - {id: start, boundary: cwd, strength: observed, confirmed: check, declared: null}
  - id: oak
    title: held
    claims:
      - {id: cut, boundary: network, strength: attested, confirmed: attested, fields: [network],
         declared: {equals: {value: profile.network.mode, to: none}}}
  - id: iron
    title: held and tried
    claims:
      - {id: nobody, boundary: process, strength: exercised, confirmed: attested, fields: [payload.uids],
         declared: {equals: {value: profile.process.uid, to: worker}}}
"""
HELD = {"attested": ["network.routes", "payload.uids"], "observed": [], "declared": [], "differences": []}


def invented() -> Levels:
    return loader(frozenset()).levels(read(INVENTED, source="levels.yaml", family="policy", syntax="yaml"))


def in_other_words(sets: dict[str, Any]) -> World:
    words = {"profile.level": {"minimum": "ink", "promises": "iron"}}
    adapters = {id: adapter.replace(level_at_most="iron") for id, adapter in ADAPTERS.items()}
    return world({**words, **sets}, levels=invented(), adapters=adapters)


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ({"facts.runtime.attests": False}, ("ink", "ink", "ink")),
        ({"facts.runtime.attests": True}, ("ink", "ink", "oak")),
        (TRIED, ("ink", "ink", "iron")),
        ({**TRIED, "profile.network.mode": "host"}, ("ink", "ink", "iron")),
        ({**TRIED, "profile.process.uid": "caller"}, ("ink", "ink", "oak")),
        ({**TRIED, "declaration.level": "oak"}, ("oak", "ink", "iron")),
    ],
)
def test_table_of_other_words_works_alike(sets: dict[str, Any], expected: tuple[str, str, str]) -> None:
    decided = in_other_words(sets).check()
    assert level(decided) == expected
    assert decided.blockers == ()
    assert decided.not_claimed == ("network", "policy", "process")


def test_blockers_speak_the_words_of_the_table() -> None:
    decided = in_other_words({"declaration.level": "container"}).check()
    assert reported(decided) == [blocker("isolation-level-unknown", "level", "container", ["ink", "oak", "iron"])]
    decided = in_other_words({"declaration.level": "iron", "facts.runtime.attests": True}).check()
    assert reported(decided) == [blocker("isolation-level-insufficient", "level", "iron", ["ink", "oak"])]
    decided = in_other_words({"facts.reported": {"level": "oak"}}).check()
    assert reported(decided) == [blocker("isolation-level-overclaimed", "reported.level", "oak", ["ink"])]
    decided = in_other_words({"facts.cwd.inode": UNKNOWN}).check()
    assert (decided.level.earned, decided.not_claimed) == ("fog", ("cwd", "network", "policy", "process"))


@pytest.mark.parametrize(
    ("sets", "earned", "not_claimed"),
    [
        (TRIED, "iron", ("network", "policy")),
        ({"facts.runtime.attests": True}, "oak", ("policy", "process")),
        ({**TRIED, "profile.level.promises": "oak"}, "oak", ("policy", "process")),
    ],
)
def test_held_run_earns_what_it_was_seen_to_be(sets: dict[str, Any], earned: str, not_claimed: tuple[str, ...]) -> None:
    decided = in_other_words({**sets, "facts.attestation": HELD}).check("launch")
    assert (decided.level.earned, decided.not_claimed) == (earned, not_claimed)
    assert decided.allowed


def test_claim_about_a_boundary_that_no_blocker_asks_about_is_refused() -> None:
    base = invented()
    claim = base.levels[1].claims[0].replace(boundary="session")
    levels = base.replace(levels=(base.levels[0], base.levels[1].replace(claims=(claim,)), *base.levels[2:]))
    with pytest.raises(InputError) as refused:
        world({}, levels=levels)
    assert str(refused.value) == ("claim `start` would pass unasked: no blocker is about the boundary `session`")


# -- adapters


def adapter(**changes: Any) -> dict[str, Adapter]:
    return {id: one.replace(**changes) if id == "exec@1" else one for id, one in ADAPTERS.items()}


def test_adapter_limits_the_level() -> None:
    decided = verdict({**TRIED, "declaration.level": "container"}, adapters=adapter(level_at_most="workspace"))
    assert reported(decided) == [
        blocker("isolation-level-insufficient", "level", "container", ["logical", "workspace"])
    ]


OWN = {
    **shipped.RULES["log-path-exists"],
    "id": "exec/workspace-not-clean", "boundary": "cwd", "unless": [],
    "when": {"equals": {"value": "facts.workspace.git", "to": "file"}},
    "report": {"field": "workspace", "found": "{facts.workspace.git}", "allowed": ["a directory"]},
}  # fmt: skip


def with_own(sets: dict[str, Any], adds: tuple[str, ...], own: dict[str, Any] = OWN) -> Verdict:
    rules = compile_rules([*shipped.RULES.values(), own], LISTS)
    return verdict(sets, rules=rules, adapters=adapter(blockers=adds))


def test_adapters_blocker_is_asked_for_its_own_runs_alone() -> None:
    found = blocker("exec/workspace-not-clean", "workspace", "file", ["a directory"])
    decided = with_own({"facts.workspace.git": "file"}, (OWN["id"],))
    assert reported(decided) == [found]
    assert decided.level.earned == "unknown"  # it is about `cwd`, which the base level claims
    assert with_own({}, (OWN["id"],)).allowed
    assert with_own({"facts.workspace.git": "file"}, ()).allowed


def test_adapters_blocker_is_unknown_like_any_other() -> None:
    decided = with_own({"facts.workspace.git": UNKNOWN}, (OWN["id"],))
    assert [(one.id, one.because) for one in decided.blockers] == [
        (OWN["id"], "unknown"), ("isolation-level-unknown", "unknown"), ("workspace-git-special", "unknown"),
    ]  # fmt: skip


def test_adapters_blocker_that_crashes_is_an_internal_error() -> None:
    own = {**OWN, "when": {"inside": {"path": "facts.nothing.there", "root": "facts.log.root"}}}
    decided = with_own({}, (OWN["id"],), own)
    assert [(one.id, one.boundary, one.field, one.found) for one in decided.blockers] == [
        ("internal-error", "cwd", "exec/workspace-not-clean", "AttributeError")
    ]


def test_adapters_blocker_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        World(plain(), adapters=adapter(blockers=("exec/gone",)))
    assert str(refused.value) == "adapter `exec@1` adds the blocker `exec/gone`, which does not exist"


def test_checker_is_made_of_rules_that_something_answers() -> None:
    policy = world({}).policy
    nobody = compile_rules([{**shipped.RULES["path-invalid"], "id": "path-ugly"}], LISTS)
    with pytest.raises(InputError) as refused:
        Checker(policy, [*RULES, *nobody])
    assert str(refused.value) == "blocker `path-ugly` asks a function that the checker does not have"
