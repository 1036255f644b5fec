"""A driver's kind: said when the gate is loaded, bound by the site to one profile, recorded with the facts."""

from __future__ import annotations

from typing import Any

from support.cli import Shell, shell  # noqa: F401  # a fixture

from prespawn import Gate

DECLARED: dict[str, Any] = {
    "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "declared_files": [], "env_keys": [],
    "execution": {"argv": ["true"]}, "file_contract": {"mode": "read-only"},
}  # fmt: skip


def mismatches(caller: str | None, **fields: Any) -> list[tuple[str, object, tuple[object, ...]]]:
    """Return field, value found and values allowed of what stands in the way of a caller of this kind."""
    checked = Gate.load(caller=caller).check({**DECLARED, **fields})
    assert checked.facts is None or not caller or checked.facts.caller == caller
    named = (blocker for blocker in checked.blockers if blocker.id == "caller-profile-mismatch")
    return [(blocker.field, blocker.found, blocker.allowed) for blocker in named]


def test_caller_is_held_to_the_profile_of_its_kind(shell: Shell) -> None:  # noqa: F811
    shell.write_site(callers={"observe": "logical-v1", "build": "sandbox-v1"})
    assert mismatches("observe") == [("profile", "sandbox-v1 for observe", ("logical-v1",))]
    assert mismatches("build") == []
    assert mismatches(None) == []


def test_caller_of_an_unknown_kind_is_refused(shell: Shell) -> None:  # noqa: F811
    shell.write_site(callers={"observe": "logical-v1"})
    assert mismatches("observer") == [("caller", "observer", ("observe",))]


def test_declaration_cannot_say_a_kind(shell: Shell) -> None:  # noqa: F811
    shell.write_site(callers={"observe": "logical-v1"})
    verdict = Gate.load(caller="observe").check({**DECLARED, "caller": "build"})
    assert [blocker.id for blocker in verdict.blockers] == ["declaration-invalid"]
