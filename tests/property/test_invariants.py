"""The invariants of the decision, each a property named after its number.

What each takes as input is made by ``support.inputs``: the cases of all blockers, changed in a few places. Longer runs:
``PRESPAWN_HYPOTHESIS=long``.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from support.cases import UNKNOWN, put
from support.cli import Shell, shell  # noqa: F401  # a fixture
from support.inputs import (
    ANYTHING,
    CASES,
    FIELDS,
    FORMATS,
    PAGES,
    WORDS,
    fact_fields,
    inputs,
    narrowed,
    narrower,
    normal,
    phases,
    places_of,
)  # fmt: skip
from support.policy_documents import JSON
from support.world import ADAPTERS, FORBIDDEN, KEYS, LEVELS, LISTS, PROFILES, RULES, World, plain

from prespawn import Gate
from prespawn.approvals import Approvals, approval_id
from prespawn.blockers import shipped
from prespawn.blockers.rule import PHASES, compile_rules
from prespawn.checker import functions
from prespawn.checker.admission import Refused, admit
from prespawn.checker.approval import Approval
from prespawn.checker.approve import draft
from prespawn.checker.check import LEVEL_UNKNOWN, Checker, declaration_invalid
from prespawn.checker.evaluate import INTERNAL_ERROR
from prespawn.checker.replay import facts_document, replayed
from prespawn.compile import BLOCKERS
from prespawn.policy.adapter import Adapter
from prespawn.policy.authority import NARROWED, compare
from prespawn.policy.codec import decode, encode
from prespawn.policy.errors import InputError, ReadError
from prespawn.policy.filters import NO_FILTER, Filter
from prespawn.policy.levels import STRENGTHS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.checker.verdict import Verdict
    from prespawn.gate import Checked

RANK = LEVELS.rank
PINNED = (BLOCKERS / "pinned.txt").read_text("utf-8").split()
on_host = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)


def ids(verdict: Verdict) -> set[str]:
    return {blocker.id for blocker in verdict.blockers}


def causes(verdict: Verdict) -> set[tuple[str, str, str]]:
    return {(blocker.id, blocker.field, blocker.because) for blocker in verdict.blockers}


# -- 1. total


class Odd:
    """A value of a caller's that is no JSON, and breaks when it is looked at."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = object.__hash__
    __repr__ = __str__ = __eq__  # type: ignore[assignment]


def circle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def deep() -> list[Any]:
    inner: list[Any] = []
    for _ in range(100_000):
        inner = [inner]
    return inner


BASE = plain()["declaration"]
ODD = [
    circle(), deep(), Odd(), b"x", 1.5, float("nan"), {1: 2}, {Odd(): 1}, {"a"}, (), 10**5000, -(10**5000),
    "\ud800" * 9,
]  # fmt: skip


@given(st.sampled_from(ODD) | JSON, st.sampled_from(sorted(BASE)) | st.none())
def test_invariant_01_total_over_any_value(value: object, key: str | None) -> None:
    declared = value if key is None else {**BASE, key: value}
    admitted = admit(declared, KEYS, FORBIDDEN)
    world = World(plain())
    if isinstance(admitted, Refused):
        verdict = declaration_invalid(world.policy, admitted.found, admitted.field)
        assert ids(verdict) == {"declaration-invalid"}
    else:
        verdict = world.checker.check(admitted, world.facts)
    _is_sound(verdict)
    assert not isinstance(admitted, Refused) or not verdict.allowed


@given(inputs(absent=True), phases)
def test_invariant_01_total_over_any_input(values: dict[str, Any], phase: str) -> None:
    verdict = World(values).check(phase)
    _is_sound(verdict)
    assert verdict.phase == phase or ids(verdict) == {"declaration-invalid"}


@given(inputs(), phases)
def test_invariant_01_no_input_of_the_right_types_breaks_a_check(values: dict[str, Any], phase: str) -> None:
    assert [one for one in World(values).check(phase).blockers if one.id == INTERNAL_ERROR] == []


def _is_sound(verdict: Verdict) -> None:
    document = json.loads(verdict.canonical())
    assert document == json.loads(json.dumps(verdict.document()))
    assert verdict.allowed is (verdict.blockers == ())
    assert verdict.undecided is (not verdict.allowed and {one.because for one in verdict.blockers} == {"unknown"})
    assert [one.id for one in verdict.blockers] == sorted(one.id for one in verdict.blockers)
    assert RANK(verdict.level.earned) <= RANK(verdict.level.attainable)
    assert not any(one.because == "unknown" for one in verdict.blockers) or RANK(verdict.level.earned) == 0


CRASHES = [ValueError("secret"), RecursionError(), AssertionError(), KeyError("k"), MemoryError()]


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("id", sorted(functions.FUNCTIONS))
def test_invariant_01_crash_of_a_check_is_internal_error(
    id: str, crash: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(view: object) -> Iterator[Any]:
        yield from ()
        raise crash

    monkeypatch.setitem(functions.FUNCTIONS, id, broken)
    page = PAGES[id]
    values = plain({"set": {"facts.cwd.inode": 7, "approval.accepts": sorted(PAGES)}})
    for phase in PHASES[PHASES.index(page["phase"]) :]:
        verdict = World(values).check(phase)
        found = {(one.id, one.boundary, one.field, one.found, one.allowed, one.because, one.operator)
                 for one in verdict.blockers if one.id == INTERNAL_ERROR}  # fmt: skip
        assert found == {(INTERNAL_ERROR, page["boundary"], id, type(crash).__name__, (), "fail", "never")}
        assert "execute-cwd-mismatch" in ids(verdict)
        assert not verdict.undecided
        assert INTERNAL_ERROR not in verdict.accepted
        assert "secret" not in verdict.canonical()


def test_invariant_01_crash_outside_any_check_is_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(plain())
    approval = world.approval()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("prespawn.checker.check.appraise", broken)
    verdict = world.check("launch", approval=approval)
    assert [(one.id, one.field, one.found) for one in verdict.blockers] == [
        (INTERNAL_ERROR, "check", "ZeroDivisionError")
    ]
    assert (verdict.phase, verdict.allowed, verdict.level.earned) == ("launch", False, "unknown")


# -- 2. deterministic


@given(inputs(), phases, st.randoms(use_true_random=False))
def test_invariant_02_deterministic_whatever_the_order_of_keys_and_files(
    values: dict[str, Any], phase: str, random: Any
) -> None:
    files = list(shipped.RULES.values())
    random.shuffle(files)
    first = World(copy.deepcopy(values)).check(phase).canonical()
    world = World(_shuffled(values, random), rules=compile_rules(files, LISTS))
    assert world.check(phase).canonical() == first
    assert world.check(phase).canonical() == first


def _shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        names = list(value)
        random.shuffle(names)
        return {name: _shuffled(value[name], random) for name in names}
    return [_shuffled(item, random) for item in value] if isinstance(value, list) else value


@given(inputs(mapping=True))
def test_invariant_02_deterministic_on_replayed_facts(values: dict[str, Any]) -> None:
    world = World(values)
    if isinstance(world.declaration, Refused):
        return
    document = json.loads(json.dumps(facts_document(world.facts)))
    again = replayed(document)
    assert facts_document(again) == facts_document(world.facts)
    assert world.checker.check(world.declaration, again).canonical() == world.check().canonical()


def test_invariant_02_deterministic_whatever_the_hash_seed() -> None:
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from support.world import pages, verdict_of
for page in pages().values():
    for case in page["cases"]:
        print(verdict_of(case).canonical())
"""
    outputs = {
        subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, timeout=120,
                       env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("0", "1", "4242")
    }  # fmt: skip
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == len(CASES) - 1


# -- 3. blocked means not started


@on_host
@given(data=st.data())
def test_invariant_3_blocked_means_not_started(shell: Shell, data: st.DataObject) -> None:  # noqa: F811
    declared = data.draw(declarations())
    shell.write_site(approvals={"driver_may_approve": data.draw(st.sampled_from(["nothing", "blocker-free"]))})
    shell.file("d.json", json.dumps(declared))
    gate = Gate.load()
    checked = gate.check(declared)
    wanted = None if checked.declaration is None or data.draw(st.booleans()) else forged(gate, checked).id
    line = ["run", "--execute", "d.json", *(() if wanted is None else ("--approval", wanted))]
    seen = shell.run(*line, *data.draw(st.sampled_from([(), ("--format", "json")])))
    assume(seen.code in (1, 2, 4))  # all others were not blocked
    assert seen.started == []
    assert seen.changed == set()


# -- 4. monotone in evidence


@given(inputs(), phases, st.data())
def test_invariant_04_monotone_in_evidence(values: dict[str, Any], phase: str, data: st.DataObject) -> None:
    fields = [path for path, _ in fact_fields(values)]
    forgotten = data.draw(st.lists(st.sampled_from(fields), min_size=1, max_size=3, unique=True))
    less = copy.deepcopy(values)
    for path in sorted(forgotten, reverse=True):  # the inner ones first, or there is nothing to take from
        put(less, path, UNKNOWN)
    _has_less(values, less, phase)


@given(inputs(), phases, st.data())
def test_invariant_04_monotone_in_the_kinds_of_evidence(
    values: dict[str, Any], phase: str, data: st.DataObject
) -> None:
    def some(of: list[str]) -> list[str]:
        return [one for one in of if data.draw(st.integers(0, 3))]

    enforced = plain()["facts"]["runtime"]["enforces"]
    more = {
        "attests": True,
        "evidence": some(["canary", "quota"]),
        "attested": some(FIELDS),
        "enforces": some(enforced),
    }
    less = {name: some(one) if isinstance(one, list) else data.draw(st.booleans()) for name, one in more.items()}
    _has_less(_showing(values, **more), _showing(values, **less), phase)


def _showing(values: dict[str, Any], *, attests: Any, evidence: Any, attested: Any, enforces: Any) -> dict[str, Any]:
    """Return an input whose host shows these kinds of evidence."""
    made = copy.deepcopy(values)
    made["facts"]["runtime"] = {**plain()["facts"]["runtime"], "attests": attests, "enforces": enforces}
    made["facts"]["evidence"] = evidence
    made["facts"]["attestation"] = {"attested": attested, "observed": [], "declared": [], "differences": []}
    return made


def _has_less(values: dict[str, Any], less: dict[str, Any], phase: str) -> None:
    more_world, less_world = World(values), World(less)
    if isinstance(more_world.declaration, Refused):
        return
    before, after = more_world.check(), less_world.check()
    assert ids(before) <= ids(after)
    assert RANK(after.level.earned) <= RANK(before.level.earned)
    assert RANK(after.level.attainable) <= RANK(before.level.attainable)
    assert set(after.not_claimed) >= set(before.not_claimed) or after.level.earned != "unknown"
    approval = more_world.approval()  # given for what was known then
    then, now = more_world.check(phase, approval=approval), less_world.check(phase, approval=approval)
    assert now.allowed <= then.allowed
    assert RANK(now.level.earned) <= RANK(then.level.earned)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_invariant_04_no_single_lost_fact_removes_the_blocker_of_a_case(page: dict[str, Any]) -> None:
    for case in (case for case in page["cases"] if "blocks" in case and page["phase"] == "check"):
        for path, _ in fact_fields(plain(case)):
            values = plain(case)
            put(values, path, UNKNOWN)
            assert page["id"] in ids(World(values).check()), (case["name"], path)


# -- 5. monotone in authority


@given(inputs(), phases, st.data())
def test_invariant_05_monotone_in_authority_of_the_profile(
    values: dict[str, Any], phase: str, data: st.DataObject
) -> None:
    assume(_keeps_its_promise(values))
    grants_less = {**values, "profile": data.draw(narrower("profile/v1", values["profile"]))}
    _is_narrower("profile/v1", values["profile"], grants_less["profile"])
    _stays_blocked(World(values), World(grants_less), phase)


@given(inputs(), phases, st.data())
def test_invariant_05_monotone_in_authority_of_the_site(
    values: dict[str, Any], phase: str, data: st.DataObject
) -> None:
    site = normal("site/v1", values["site"])
    less = data.draw(narrower("site/v1", site))
    _is_narrower("site/v1", site, less)
    _stays_blocked(World(values), World({**values, "site": _site(less)}), phase)


@given(inputs(), phases, st.data())
def test_invariant_05_monotone_in_authority_of_the_adapter(
    values: dict[str, Any], phase: str, data: st.DataObject
) -> None:
    less = {**data.draw(narrower("adapter/v1", plain_adapter())), "blockers": []}
    _is_narrower("adapter/v1", plain_adapter(), less)
    _stays_blocked(World(values), World(values, adapters=_adapters(less)), phase)


def plain_adapter() -> dict[str, Any]:
    return encode(ADAPTERS["exec@1"])  # type: ignore[return-value]


def _adapters(changed: dict[str, Any]) -> dict[str, Adapter]:
    return {**ADAPTERS, "exec@1": decode(Adapter, changed, unknowns=False)}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_invariant_05_no_single_narrowing_lets_a_case_pass(page: dict[str, Any]) -> None:
    for case in (case for case in page["cases"] if "blocks" in case):
        values = plain(case)
        if isinstance(values["declaration"], dict):
            assert not [less for less in _granting_less(values) if less.check(case["phase"]).allowed], case["name"]


def _granting_less(values: dict[str, Any]) -> Iterator[World]:
    """Yield the input under every single narrowing of profile, site and adapter."""
    for profile in narrowed("profile/v1", values["profile"]) if _keeps_its_promise(values) else ():
        yield World({**values, "profile": profile})
    for site in narrowed("site/v1", normal("site/v1", values["site"])):
        yield World({**values, "site": _site(site)})
    for adapter in narrowed("adapter/v1", plain_adapter()):
        if adapter["blockers"] == []:  # a further one must be there: invariant 7
            yield World(values, adapters=_adapters(adapter))


def _site(normalised: dict[str, Any]) -> dict[str, Any]:
    """Return a site as a file says it; the lifetime of approvals, which no check reads, is the default."""
    approvals = {name: value for name, value in normalised["approvals"].items() if name != "lifetime"}
    return {"prespawn": "site/v1", **normalised, "approvals": approvals}


def _keeps_its_promise(values: dict[str, Any]) -> bool:
    """Say whether a profile declares what the level that it promises claims, as every shipped one does."""
    promised = values["profile"]["level"]["promises"]
    needed = {claim.id for level in LEVELS.levels if level.id == promised for claim in level.claims if claim.declared}
    claims = World({**plain(), "profile": values["profile"]}).check().claims
    return all(claim.result == "pass" for claim in claims if claim.claim in needed)


def _is_narrower(name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    entry = FORMATS[name].authority
    assert entry is not None
    assert {change.verdict for change in compare(old, new, entry)} <= {NARROWED}


def _stays_blocked(more: World, less: World, phase: str) -> None:
    assert less.check(phase).allowed <= more.check(phase).allowed, (ids(more.check(phase)), ids(less.check(phase)))


@pytest.mark.parametrize("id", PROFILES)
def test_invariant_05_shipped_profile_keeps_its_promise(id: str) -> None:
    assert _keeps_its_promise({"profile": encode(PROFILES[id])})


# -- 6. no self-promotion


@given(inputs(mapping=True), st.data())
def test_invariant_06_no_declaration_promotes_itself(values: dict[str, Any], data: st.DataObject) -> None:
    words = st.sampled_from([level.id for level in LEVELS.levels])
    values["profile"]["level"] = {"minimum": data.draw(words), "promises": data.draw(words)}
    values["declaration"] |= data.draw(st.fixed_dictionaries({}, optional={"level": words}))
    trusted = {**values, "declaration": {**BASE}}
    for name in ("profile", "adapter", "workspace"):
        if name in values["declaration"]:
            trusted["declaration"][name] = values["declaration"][name]
    world, plainly = World(values), World(trusted)
    if isinstance(world.declaration, Refused):
        return
    verdict, base = world.check(), plainly.check()
    assert verdict.level.attainable == base.level.attainable
    assert RANK(verdict.level.requested) >= RANK(base.level.requested)
    strengths = {claim.claim: claim for claim in base.claims}
    for claim in verdict.claims:
        trusted_claim = strengths[claim.claim]
        assert STRENGTHS.index(claim.strength) <= STRENGTHS.index(trusted_claim.strength)
        if claim.seen == "profile":
            assert claim.result == trusted_claim.result
    if verdict.allowed:
        rest: dict[str, Any] = {"run_id": "r", "values": {}, "search_path": ("/bin",), "filter": _filter(values)}
        plan = draft(world.admitted, world.policy, world.facts, verdict, **rest)
        profile = world.policy.profiles[str(values["declaration"]["profile"])]
        assert (plan.profile, plan.limits, plan.level) == (profile, profile.limits, verdict.level.earned)
        assert plan.workspace is not None
        assert plan.workspace.source == values["facts"]["workspace"]["place"]["path"]
        assert dict(plan.environment).keys() <= {*profile.environment.fixed, *profile.environment.allowed_keys}


def _filter(values: dict[str, Any]) -> Filter | None:
    name, machine = values["profile"]["process"]["seccomp"], values["facts"]["host"]["machine"]
    return None if name == NO_FILTER else Filter(name=name, machine=machine, digest="", program=b"")


@given(st.sampled_from(sorted(FORBIDDEN)), ANYTHING, st.data())
def test_invariant_06_what_no_declaration_may_bring_is_found_at_any_depth(
    name: str, value: object, data: st.DataObject
) -> None:
    values = plain()
    inner = data.draw(st.sampled_from([(), *(at for at in places_of(values["declaration"], ()))]))
    at: Any = values["declaration"]
    way: list[Any] = []
    for step in inner:
        if not isinstance(at[step], (dict, list)):
            break
        at, way = at[step], [*way, step]
    if isinstance(at, list):
        at.append({name: value})
        way.append(len(at) - 1)
    else:
        at[name] = value
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in [*way, name]).lstrip(".")
    verdict = World(values).check()
    assert [(one.field, one.because) for one in verdict.blockers if one.id == "request-field-forbidden"] == [
        (where, "fail")
    ]


# -- 7. adapters only add


@st.composite
def own_blockers(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Blockers of an adapter: conditions that occur, about any boundary, silent for anything."""
    conditions = [file for file in shipped.RULES.values() if isinstance(file["when"], dict)]
    made: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 3))):
        like = draw(st.sampled_from(conditions))
        boundary = draw(st.sampled_from(sorted(LEVELS.boundaries)))
        unless = draw(st.lists(st.sampled_from(sorted(shipped.RULES)), max_size=2, unique=True))
        made.append({**like, "id": f"exec/own-{number}", "boundary": boundary, "portable": False, "unless": unless,
                     "operator": draw(st.sampled_from(["never", "once"])), "phase": draw(phases)})  # fmt: skip
    return made


@given(inputs(), phases, own_blockers(), st.sampled_from([level.id for level in LEVELS.levels]))
def test_invariant_07_adapters_only_add(
    values: dict[str, Any], phase: str, own: list[dict[str, Any]], most: str
) -> None:
    rules = compile_rules([*shipped.RULES.values(), *own], LISTS)
    adding = ADAPTERS["exec@1"].replace(blockers=tuple(file["id"] for file in own), level_at_most=most)
    alone, added = World(values), World(values, rules=rules, adapters={**ADAPTERS, "exec@1": adding})
    if isinstance(alone.declaration, Refused):
        return
    before, after = alone.check(), added.check()
    assert {cause for cause in causes(before) if cause[0] != LEVEL_UNKNOWN} <= causes(after)
    assert ids(before) <= ids(after)
    assert ids(after) - ids(before) <= {
        *(file["id"] for file in own), LEVEL_UNKNOWN, "isolation-level-insufficient", "isolation-level-overclaimed",
    }  # fmt: skip
    results = {claim.claim: claim.result for claim in before.claims}
    for claim in after.claims:
        assert claim.result == results[claim.claim] or results[claim.claim] == "pass" or claim.result == "fail"
    assert RANK(after.level.earned) <= min(RANK(before.level.earned), RANK(most))
    assert RANK(after.level.attainable) <= min(RANK(before.level.attainable), max(RANK(most), 0))
    approval = alone.approval()
    assert added.check(phase, approval=approval).allowed <= alone.check(phase, approval=approval).allowed


@given(inputs(), ANYTHING | st.sampled_from([level.id for level in LEVELS.levels]))
def test_invariant_07_what_an_adapter_reports_lifts_nothing(values: dict[str, Any], word: object) -> None:
    silent = copy.deepcopy(values)
    put(silent, "facts.reported", None)
    put(values, "facts.reported", {"level": word})
    quiet, reporting = World(silent), World(values)
    if isinstance(quiet.declaration, Refused):
        return
    before, after = quiet.check(), reporting.check()
    assert causes(before) <= causes(after)
    assert after.level.earned in (before.level.earned, "unknown")
    if LEVELS.knows(word) and RANK(str(word)) > RANK(before.level.earned):
        assert "isolation-level-overclaimed" in ids(after)
    assert after.level.attainable == before.level.attainable


# -- 8. stable ids


@given(inputs(absent=True), phases)
def test_invariant_08_stable_ids(values: dict[str, Any], phase: str) -> None:
    for blocker in World(values).check(phase).blockers:
        assert blocker.id in PINNED
        page = PAGES[blocker.id]
        assert blocker.boundary == page["boundary"] or blocker.id == INTERNAL_ERROR
        assert blocker.operator == page["operator"]
        assert page["remedy"]


# -- 11. explain is the gate


@on_host
@given(data=st.data())
def test_invariant_11_explain_is_the_gate(shell: Shell, data: st.DataObject) -> None:  # noqa: F811
    declared = data.draw(declarations())
    shell.write_site()
    shell.file("d.json", json.dumps(declared))
    gate = Gate.load()
    checked = gate.check(declared)
    ours = _without_facts(checked.document())
    line = shell.run("check", "--format", "json", "d.json")
    preview = shell.run("run", "--format", "json", "d.json")
    assert line.started == preview.started == []
    assert line.code == preview.code != 70
    if checked.declaration is None:  # the reader of files names the place instead
        assert ids(checked) == {"declaration-invalid"}
        assert line.code == 2
        return
    if "verdict" not in line.json["results"][0]:  # a lone surrogate, which no file can say and a Python value can
        assert (line.code, line.json["results"][0]["error"]["id"]) == (2, "input-invalid")
        return
    assert _without_facts(line.json["results"][0]["verdict"]) == ours
    assert _without_facts(preview.json["verdict"]) == ours
    assert bool(preview.json["invocation"]) is checked.allowed
    facts = checked.facts
    assert facts is not None
    again = gate.check_replayed(declared, replayed(json.loads(json.dumps(facts_document(facts)))))
    assert again.document() == checked.document()
    for blocker in checked.blockers:
        assert gate.explain(blocker)
        assert PAGES[blocker.id]["remedy"] in gate.explain(blocker)
    lint = shell.run("lint", "--format", "json", "d.json").json
    # the schema has an opinion on fields that no blocker of this pass asks about
    said = {found["id"] for found in lint["findings"]} - {"declaration-invalid"}
    assert said <= ids(checked)
    if not checked.allowed:
        with pytest.raises(InputError):
            gate.approve(checked, reason="reviewed", accepts=tuple(sorted(ids(checked))))
        try:
            run = gate.launch(checked, approval=forged(gate, checked))
        except ReadError as refused:  # it names a run id that is none, and is not believed at all
            assert refused.id == "policy-pattern"
            return
        assert run.outcome is None
        assert all(one in run.verdict.blockers for one in checked.blockers if one.because == "fail")


def forged(gate: Gate, checked: Checked) -> Approval:
    """Write what `approve` refuses to: an approval that accepts every blocker, failed or not."""
    now = int(time.time())
    approval = Approval(
        id=approval_id(checked.digests["declaration"]), run_id=checked.run_id, operator="ada", uid=os.geteuid(),
        reason="forged", approved_at=now, expires_at=now + 60, accepts=tuple(sorted(ids(checked))),
        digests={name: checked.digests[name] for name in ("declaration", "policy", "blockers")},
    )  # fmt: skip
    directory = Approvals.open(gate.trusted, create=True)
    assert directory is not None
    with directory:
        directory.write(approval)
    return approval


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, Any]:
    """Declarations of the base and of all cases, with any values but those of the host."""
    made = draw(inputs(policy=False, mapping=True))["declaration"]
    made = {**made, **draw(st.sampled_from([{"cwd": ".", "declared_files": [], "env_keys": []}, {}]))}
    for name in ("log_path", "registry_path"):
        if draw(st.booleans()):
            made.pop(name, None)
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def _without_facts(document: Any) -> Any:
    digests = {name: value for name, value in document["digests"].items() if name != "facts"}  # they hold the time
    return json.loads(json.dumps({**document, "digests": digests}))


# -- 12. nothing is not a pass


@given(st.sampled_from(sorted(shipped.RULES)), st.data())
def test_invariant_12_rules_that_leave_a_claim_unasked_are_no_checker(id: str, data: st.DataObject) -> None:
    base = {claim.boundary for level in LEVELS.levels for claim in level.claims if claim.declared is None}
    boundary = data.draw(st.sampled_from(sorted(base)))
    kept = [rule for rule in RULES if rule.boundary != boundary or rule.phase != "check"]
    with pytest.raises(InputError) as refused:
        Checker(World(plain()).policy, kept)
    assert refused.value.id == "policy-value"
    assert f"`{boundary}`" in str(refused.value)


def test_invariant_12_nothing_is_evaluated_by_no_checker() -> None:
    with pytest.raises(InputError):
        Checker(World(plain()).policy, ())


def test_invariant_12_no_runtime_holds_a_run_to_nothing() -> None:
    verdict = World(plain({"set": {"facts.runtime": None}})).check()
    limits = {f"profile.limits.{name}" for name, bound in PROFILES["sandbox-v1"].limits if bound is not None}
    assert {one.field for one in verdict.blockers if one.id == "limit-not-enforceable"} == limits
    assert INTERNAL_ERROR not in ids(verdict)


@on_host
@given(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()) | WORDS.map(
    lambda word: word.encode("utf-8", "surrogatepass")))  # fmt: skip
@example(b"")
@example(b"\n")
@example(b"# nothing\n")
@example(b"null")
@example(b"{}")
@example(b"[]")
@example(b"prespawn: declaration/v1\n")
@example(b"prespawn: profile/v1\n")
def test_invariant_12_what_is_no_declaration_has_its_own_outcome(shell: Shell, data: bytes) -> None:  # noqa: F811
    shell.write_site()
    shell.file("d.yaml", data)
    for command in ("check", "run"):
        result = shell.run(command, "d.yaml")
        assert (result.code, result.out) == (2, "")
        assert len(result.errors) == 1
        assert "(input-" in result.err
    assert shell.run("lint", "d.yaml").code in (2, 3)


def test_invariant_12_unreadable_empty_and_unknown_are_each_named(shell: Shell) -> None:  # noqa: F811
    shell.write_site()
    shell.file("empty.yaml", "")
    shell.file("key.yaml", "prespawn: declaration/v1\nprofil: sandbox-v1\n")
    (shell.workspace / "folder").mkdir()
    for name, id in (("gone.yaml", "input-unreadable"), ("folder", "input-unreadable"), ("empty.yaml", "input-empty"),
                     ("key.yaml", "input-unknown-key")):  # fmt: skip
        result = shell.run("check", name)
        assert (result.code, result.out) == (2, "")
        assert f"({id})" in result.err, result.err
    assert shell.run("explain", "no-such-id").code == 2
    assert shell.run("check").code in (2, 3)
    assert shell.run("lint", "folder").code == 3
