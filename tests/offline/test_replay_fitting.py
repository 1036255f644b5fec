"""Recorded facts that lost something: what was blocked is not allowed by what is left."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.cases import fact_paths, put
from support.cli import DECLARATION, Shell, runtime, shell

from prespawn import Gate
from prespawn.checker.replay import facts_document, replayed

if TYPE_CHECKING:
    from prespawn.checker.verdict import Verdict

__all__ = ["runtime", "shell"]  # the fixtures

pytestmark = pytest.mark.usefixtures("runtime")

BLOCKED: dict[str, dict[str, Any]] = {
    "declared-file-missing": {"declared_files": ["nope.py"]},
    "declared-file-hardlink": {"declared_files": ["twice.py"]},
    "declared-file-special": {"declared_files": ["folder"]},
    "env-value-missing": {"env_keys": ["TERM"]},
    "execution-program-not-found": {"execution": {"argv": ["no-such-program"]}},
    "execute-cwd-mismatch": {"cwd": "/"},
    "log-path-outside-workspace": {"log_path": "elsewhere/log"},
    "registry-path-mismatch": {"registry_path": "other.db"},
}


def recorded(shell: Shell, **changes: Any) -> tuple[Gate, dict[str, Any], Verdict, dict[str, Any]]:
    (shell.workspace / "folder").mkdir()
    (shell.workspace / "once.py").write_text("")
    (shell.workspace / "twice.py").hardlink_to(shell.workspace / "once.py")
    gate, declared = Gate.load(), {**yaml.safe_load(DECLARATION), **changes}
    checked = gate.check(declared)
    assert checked.facts is not None
    return gate, declared, checked, json.loads(json.dumps(facts_document(checked.facts)))


def again(gate: Gate, declared: dict[str, Any], document: dict[str, Any], path: str, value: Any) -> Verdict:
    world = copy.deepcopy({"facts": document})
    put(world, path, value)
    return gate.check_replayed(declared, replayed(world["facts"]))


@pytest.mark.parametrize("id", BLOCKED)
def test_no_part_set_to_null_allows_what_was_blocked(id: str, shell: Shell) -> None:
    gate, declared, checked, document = recorded(shell, **BLOCKED[id])
    assert id in {blocker.id for blocker in checked.blockers}
    assert gate.check_replayed(declared, replayed(document)).document() == checked.document()
    allowed = [path for path in fact_paths(document) if again(gate, declared, document, path, None).allowed]
    assert allowed == []


def test_no_list_that_lost_its_entries_allows_what_was_blocked(shell: Shell) -> None:
    files = {"declared_files": ["nope.py", "once.py"], "env_keys": ["TERM"]}
    gate, declared, _, document = recorded(shell, **files)
    for path, found in (
        ("facts.declared_files", []),
        ("facts.declared_files", [document["declared_files"][1]] * 2),
        ("facts.environment", []),
    ):
        verdict = again(gate, declared, document, path, found)
        assert not verdict.allowed
        assert {blocker.because for blocker in verdict.blockers if blocker.id.startswith("declared-file-")} <= {
            "fail" if path == "facts.environment" else "unknown"
        }


def test_parts_that_must_be_there_are_unknown_where_they_are_not(shell: Shell) -> None:
    log = {"log_path": "reports/main/log", "registry_path": "registry.db", "cwd": str(shell.workspace)}
    gate, declared, checked, document = recorded(shell, **log, declared_files=["once.py"], env_keys=["LANG"])
    assert {"cwd", "log", "registry", "program", "runtime"} <= {name for name, part in document.items() if part}
    for part in (
        "workspace", "workspace.place", "workspace.sockets", "workspace.covers", "cwd", "log", "log.leaves", "registry",
        "state", "state.controlled", "declared_files", "declared_files[0].leaves", "environment",
        "environment[0].valid", "program", "program.found", "program.executable", "runtime", "runtime.found", "host",
        "run_id_used", "now", "evidence", "mounts",
    ):  # fmt: skip
        verdict = again(gate, declared, document, f"facts.{part}", None)
        assert {one.id for one in checked.blockers} <= {one.id for one in verdict.blockers}, part
        if part not in ("now", "evidence", "mounts", "run_id_used"):  # asked later, or of what is not there here
            assert any(one.because == "unknown" for one in verdict.blockers), part
