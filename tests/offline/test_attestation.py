"""What was seen against what a plan means: every single place of two recorded runs, changed, taken away, made unknown.

The recordings (``tests/data/held-*.json``) are of a root parent and of an ordinary user under bubblewrap 0.8, each with
the plan's own fields beside it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import plans
from support.held import FILTERED

from prespawn.checker.attestation import attestation, compare
from prespawn.checker.expected import Expected, expected
from prespawn.checker.facts import AttestationFact, Difference, ProgramFact, RuntimeFact, SystemEntry
from prespawn.checker.plan import Bind, Identity
from prespawn.checker.seen import Seen
from prespawn.checker.support import support
from prespawn.policy.catalogue import levels
from prespawn.policy.codec import decode
from prespawn.policy.filters import shipped_filter
from prespawn.policy.known import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.checker.plan import Plan

    Tree = dict[str, Any]
    Path_ = tuple[str, ...]

DATA = Path(__file__).parents[1] / "data"
PARENTS = ("root", "user")
STRENGTHS = ("attested", "observed", "declared")
SCRATCH = ("/", "/dev", "/dev/shm", "/tmp", "/home/worker")
BOUND = ("/usr", "/etc/alternatives", "/etc/ssl/certs", "/tmp/prespawn-recorded/tools", "/workspace", "/workspace/.git")
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))

FREE = {
    ("payload", "executable", "identity"), ("payload", "hostname"), ("payload", "max_user_namespaces"),
    ("payload", "parent_death_signal"),
    *(("mounts", place, "identity") for place in (*SCRATCH, "/proc", "/dev/pts")),
    *(("mounts", place, name) for place in DEVICES for name in ("access", "kind")),
    *(("mounts", place, "kind") for place in BOUND),
    *(("told", name) for name in (
        "bind-fd", "chdir", "dev", "file", "perms", "proc", "remount-ro", "ro-bind", "ro-bind-fd", "setenv", "size",
        "symlink", "tmpfs", "filter",
    )),
}  # fmt: skip
"""The places that are written down and compared with nothing: what they hold is shown by others, or by nobody."""


@cache
def recorded(parent: str) -> tuple[Plan, Tree]:
    """Return the plan and the trees of one recording."""
    document = json.loads((DATA / f"held-{parent}.json").read_text())
    fields: Tree = document["plan"]
    program = {**fields["program"], "given": fields["argv"][0]}
    plan = plans.plan(
        profile=FILTERED,
        filter=shipped_filter("default", "x86_64"),
        argv=tuple(fields["argv"]),
        identity=decode(Identity, fields["identity"]),
        workspace=decode(Bind, fields["workspace"]),
        alias=fields["alias"],
        system=tuple(decode(SystemEntry, entry) for entry in fields["system"]),
        read_only=tuple(fields["read_only"]),
        toolchains=tuple(decode(Bind, bind) for bind in fields["toolchains"]),
        environment=tuple((key, value) for key, value in fields["environment"]),
        zoneinfo=fields["zoneinfo"],
        program=decode(ProgramFact, program),
        runtime=decode(RuntimeFact, fields["runtime"]),
    )
    return plan, _plain(document["seen"])


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    if value.keys() == {"unknown"}:
        return Unknown(reason=value["unknown"])
    return {name: _plain(item) for name, item in value.items()}


def meaning(parent: str) -> Expected:
    return expected(recorded(parent)[0])


def trees(parent: str) -> Tree:
    """Return a copy of what was seen."""
    copied: Tree = _copied(recorded(parent)[1])
    return copied


def _copied(branch: Any) -> Any:
    return {name: _copied(item) for name, item in branch.items()} if isinstance(branch, dict) else branch


def differences(parent: str, seen: Tree) -> dict[str, Difference]:
    found = compare(meaning(parent), Seen(**seen))
    assert list(found) == sorted(found, key=lambda one: one.field)
    return {one.field: one for one in found}


def leaves(branch: Tree, at: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    for name, value in branch.items():
        if isinstance(value, dict):
            yield from leaves(value, (*at, name))
        else:
            yield (*at, name), value


def put(seen: Tree, strength: str, at: Path_, value: Any) -> Tree:
    """Write a value to a place; ``...`` takes it away."""
    branch = seen[strength]
    for name in at[:-1]:
        branch = branch[name]
    if value is ...:
        del branch[at[-1]]
    else:
        branch[at[-1]] = value
    return seen


def other(at: Path_, value: Any) -> Any:
    """Return a value that no plan has in that place."""
    if at[-1] == "flags":
        return tuple(flag for flag in value if flag != "nosuid")
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    return 1 if value is None else (*value, "x")


PLACES = [
    (parent, strength, at, value)
    for parent in PARENTS
    for strength in STRENGTHS
    for at, value in leaves(recorded(parent)[1][strength])
]
NAMES = [f"{parent} {'.'.join(at)}" for parent, _, at, _ in PLACES]


def shown_at(at: Path_) -> set[str]:
    """Return where a change of a place must show: there, or at the mount whose source it is, or nowhere."""
    if at[0] == "sources":
        return {f"mounts.{at[1]}.identity"}
    return set() if at in FREE else {".".join(at)}


@pytest.mark.parametrize("parent", PARENTS)
def test_recorded_run_is_what_its_plan_means(parent: str) -> None:
    assert differences(parent, trees(parent)) == {}


def test_recordings_hold_every_place_that_is_free_and_many_that_are_not() -> None:
    for parent in PARENTS:
        places = {at for of, _, at, _ in PLACES if of == parent}
        assert places >= FREE
        assert len(places - FREE) > 150


@pytest.mark.parametrize(("parent", "strength", "at", "value"), PLACES, ids=NAMES)
def test_place_that_holds_something_else_is_one_named_difference(
    parent: str, strength: str, at: Path_, value: Any
) -> None:
    found = differences(parent, put(trees(parent), strength, at, other(at, value)))
    assert found.keys() == shown_at(at)
    for difference in found.values():
        assert difference.reason == ""
        assert difference.expected != difference.seen


@pytest.mark.parametrize(("parent", "strength", "at", "value"), PLACES, ids=NAMES)
def test_place_that_is_missing_is_one_named_difference(parent: str, strength: str, at: Path_, value: Any) -> None:
    found = differences(parent, put(trees(parent), strength, at, ...))
    assert found.keys() == shown_at(at)


@pytest.mark.parametrize(("parent", "strength", "at", "value"), PLACES, ids=NAMES)
def test_place_that_nobody_could_look_at_is_one_difference_with_its_reason(
    parent: str, strength: str, at: Path_, value: Any
) -> None:
    found = differences(parent, put(trees(parent), strength, at, Unknown(reason="permission denied")))
    assert {field: (one.seen, one.reason) for field, one in found.items()} == {
        field: (found[field].seen if at[0] == "sources" else None, "permission denied") for field in shown_at(at)
    }


def branches(branch: Tree, at: Path_ = ()) -> Iterator[Path_]:
    yield at
    for name, value in branch.items():
        if isinstance(value, dict):
            yield from branches(value, (*at, name))


BRANCHES = [
    (parent, strength, at)
    for parent in PARENTS
    for strength in STRENGTHS
    for at in branches(recorded(parent)[1][strength])
    if at != ("sources",)
]


@pytest.mark.parametrize(
    ("parent", "strength", "at"), BRANCHES, ids=[f"{parent} {'.'.join(at) or of}" for parent, of, at in BRANCHES]
)
def test_place_that_no_plan_has_is_one_named_difference(parent: str, strength: str, at: Path_) -> None:
    found = differences(parent, put(trees(parent), strength, (*at, "added"), "anything"))
    assert {field: (one.expected, one.seen) for field, one in found.items()} == {
        ".".join((*at, "added")): ("nothing", "anything")
    }


@pytest.mark.parametrize("parent", PARENTS)
@pytest.mark.parametrize("branch", ["payload", "init", "mounts", "tree", "network", "runtime", "told"])
def test_branch_that_nobody_could_look_at_is_one_difference(parent: str, branch: str) -> None:
    seen = trees(parent)
    strength = next(strength for strength in STRENGTHS if branch in seen[strength])
    seen[strength][branch] = Unknown(reason="permission denied")
    found = differences(parent, seen)
    assert {field: one.reason for field, one in found.items()} == {branch: "permission denied"}


@pytest.mark.parametrize("parent", PARENTS)
def test_nothing_seen_at_all_is_no_agreement(parent: str) -> None:
    nothing: Tree = {strength: {} for strength in STRENGTHS}
    assert {"filter", "init", "mounts", "network", "payload", "told", "tree"} <= differences(parent, nothing).keys()


def test_limit_below_the_plans_is_as_good_and_none_at_all_is_not() -> None:
    for value, fields in ((1, set()), ("unlimited", {"payload.limits.processes"})):
        seen = put(trees("user"), "attested", ("payload", "limits", "processes"), value)
        assert differences("user", seen).keys() == fields


def test_flag_that_a_mount_brings_along_is_as_good() -> None:
    seen = trees("user")
    seen["attested"]["mounts"]["/usr"]["flags"] += ("noatime",)
    assert differences("user", seen) == {}


@pytest.mark.parametrize(
    ("interfaces", "routes", "fields"),
    [
        (("lo", "sit0", "tunl0"), ("lo",), set()),
        (("lo",), (), set()),
        (("eth0", "lo"), ("lo",), {"network.interfaces"}),
        (("lo", "tunl0"), ("lo", "tunl0"), {"network.routes"}),
        ((), (), {"network.interfaces"}),
    ],
)
def test_tunnel_that_is_down_is_tolerated_and_one_with_a_route_is_not(
    interfaces: tuple[str, ...], routes: tuple[str, ...], fields: set[str]
) -> None:
    seen = trees("user")
    seen["attested"]["network"] = {"interfaces": interfaces, "routes": routes}
    assert differences("user", seen).keys() == fields


MOUNT: Tree = {"access": "read-only", "flags": ("nosuid", "nodev"), "kind": "ext4", "identity": "7:8"}


@pytest.mark.parametrize(
    ("mount", "source", "fields"),
    [
        (MOUNT, "7:8", set()),
        (MOUNT, "7:9", {"mounts./usr/local.identity"}),
        (MOUNT, None, {"mounts./usr/local.identity"}),
        ({**MOUNT, "access": "read-write"}, "7:8", {"mounts./usr/local.access"}),
        ({**MOUNT, "flags": ("nodev",)}, "7:8", {"mounts./usr/local.flags"}),
    ],
)
def test_mount_that_the_host_has_below_a_system_directory_comes_along(
    mount: Tree, source: str | None, fields: set[str]
) -> None:
    seen = trees("user")
    seen["attested"]["mounts"]["/usr/local"] = mount
    if source is not None:
        seen["observed"]["sources"]["/usr/local"] = source
    assert differences("user", seen).keys() == fields


# -- from fields to claims


CLAIMS = [claim for level in levels().levels for claim in level.claims if claim.fields]
OBSERVED = {"runtime-digest"}


def test_claims_that_a_held_run_confirms_name_fields_and_no_others_do() -> None:
    for level in levels().levels:
        for claim in level.claims:
            assert bool(claim.fields) == (claim.confirmed == "attested"), claim.id


@pytest.mark.parametrize("parent", PARENTS)
def test_recorded_run_supports_every_claim_at_its_strength(parent: str) -> None:
    fact = attestation(meaning(parent), Seen(**trees(parent)))
    by_count = {"filter-bytes"} if parent == "user" else set()  # only root is shown the filter itself
    found = {claim.id: support(fact, claim.fields) for claim in CLAIMS}
    assert found == {
        claim.id: ("pass", "observed" if claim.id in OBSERVED | by_count else "attested") for claim in CLAIMS
    }


@pytest.mark.parametrize(("claim", "field"), [(claim, field) for claim in CLAIMS for field in claim.fields])
def test_claim_loses_its_support_with_any_field_that_it_rests_on(claim: Any, field: str) -> None:
    fact = attestation(meaning("root"), Seen(**trees("root")))
    for reason, result in (("", "fail"), ("permission denied", "unknown")):
        broken = fact.replace(differences=(Difference(field=field, expected=1, seen=2, reason=reason),))
        assert support(broken, claim.fields)[0] == result


def test_claim_whose_fields_nobody_compared_is_not_supported() -> None:
    nothing = AttestationFact(attested=(), observed=(), declared=(), differences=())
    for claim in CLAIMS:
        assert support(nothing, claim.fields) == ("unknown", "declared")


def test_field_that_is_compared_with_nothing_supports_nothing() -> None:
    fields = {**dict(recorded("user")[0]), "runtime": plans.runtime("/usr/bin/bwrap")}
    without = expected(plans.plan(**fields))  # that plan knows no digest of it
    fact = attestation(without, Seen(**trees("user")))
    assert support(fact, ("runtime",)) == ("unknown", "declared")
    assert support(fact, ("payload.parent_death_signal",)) == ("unknown", "declared")


def test_what_the_runtime_was_told_is_never_more_than_declared() -> None:
    fact = attestation(meaning("root"), Seen(**trees("root")))
    assert support(fact, ("told",)) == ("pass", "declared")
