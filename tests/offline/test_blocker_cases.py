"""Every blocker's own cases, and what the set of all blockers promises for good.

A case demands exactly its blocker: id, field, value found, values allowed, and beside one that is unknown the level
that cannot be told. Nothing else may come out, and nothing at all where the case says that the input passes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.cases import UNKNOWN, expected, fact_paths, put, reported
from support.world import LISTS, World, base, pages, plain, verdict_of

from prespawn import compile as generator
from prespawn.blockers import shipped
from prespawn.blockers.rule import compile_rules
from prespawn.checker.check import LEVEL_UNKNOWN
from prespawn.checker.functions import FUNCTIONS
from prespawn.compile import BLOCKERS, blocker_files
from prespawn.policy.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
PAGES = pages()
CASES = [pytest.param(id, case, id=f"{id}: {case['name']}") for id, page in PAGES.items() for case in page["cases"]]
ASKED = [id for id, page in PAGES.items() if page["status"] == "active" and page["when"] != "raised"]
PORTABLE = {
    "execute-cwd-mismatch", "declared-file-outside-workspace", "declared-file-missing", "env-key-not-allowed",
    "log-path-outside-workspace", "registry-path-outside-workspace", "execution-preview-shell-interpolation",
    "isolation-level-unknown",
}  # fmt: skip
LASTING = {
    "request-field-forbidden", "profile-unknown", "profile-not-activated", "profile-not-activatable",
    "adapter-profile-not-allowed", "run-id-reused", "log-path-exists", "approval-missing", "approval-mismatch",
    "approval-expired", "approval-used", "execute-not-declared", "isolation-level-insufficient",
    "isolation-level-overclaimed", "registry-not-parent-controlled", "internal-error", "declaration-invalid",
}  # fmt: skip


@pytest.mark.parametrize(("id", "case"), CASES)
def test_case_gives_exactly_what_it_says(id: str, case: Mapping[str, Any]) -> None:
    verdict = verdict_of(case)
    assert reported(verdict) == expected(id, case)
    assert verdict.allowed is ("passes" in case)
    level = [blocker.reason for blocker in verdict.blockers if blocker.id == LEVEL_UNKNOWN and blocker.reason]
    assert level == ([id] if verdict.undecided else [])


def test_base_of_all_cases_passes() -> None:
    assert World(plain()).check("launch").blockers == ()


@pytest.mark.parametrize("id", ASKED)
def test_blocker_has_a_case_that_blocks_and_a_near_miss(id: str) -> None:
    cases = PAGES[id]["cases"]
    assert [case for case in cases if case.get("blocks", {}).get("because") == "fail"]
    assert [case for case in cases if "passes" in case]


@pytest.mark.parametrize("id", ASKED)
def test_blocker_that_one_lost_fact_makes_unknown_has_a_case_for_it(id: str) -> None:
    cases = PAGES[id]["cases"]
    if not any(case.get("blocks", {}).get("because") == "unknown" for case in cases):
        passing = [case for case in cases if "passes" in case]
        assert not [(case["name"], path) for case in passing for path in fact_paths(plain(case)["facts"])
                    if _unknown_without(case, path) == [id]]  # fmt: skip


def _unknown_without(case: Mapping[str, Any], path: str) -> list[str]:
    values = plain(case)
    put(values, path, UNKNOWN)
    blockers = World(values).check(case["phase"]).blockers
    return [one.id for one in blockers if one.because == "unknown" and one.id != LEVEL_UNKNOWN]


def test_case_names_are_unique_in_their_file() -> None:
    for id, page in PAGES.items():
        names = [case["name"] for case in page["cases"]]
        assert len(set(names)) == len(names), id


def test_every_file_is_named_after_its_id_and_pinned() -> None:
    ids = [path.stem for path in blocker_files()]
    assert list(PAGES) == ids == sorted(ids)
    assert (BLOCKERS / "pinned.txt").read_text("utf-8").split() == ids


def test_pinned_list_never_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    files = blocker_files()
    monkeypatch.setattr(generator, "blocker_files", lambda: files[1:])
    assert generator.pinned_ids() == "".join(f"{path.stem}\n" for path in files)


def test_portable_eight_are_there_by_their_names_and_no_others() -> None:
    assert {id for id, page in PAGES.items() if page["portable"]} == PORTABLE
    assert all(PAGES[id]["status"] == "active" for id in PORTABLE)


def test_ids_that_were_fixed_once_are_there() -> None:
    assert set(PAGES) >= LASTING


def test_only_what_is_a_checks_own_failure_has_no_condition() -> None:
    assert {id for id, page in PAGES.items() if page["when"] == "raised"} == {"declaration-invalid", "internal-error"}
    assert {id for id, page in PAGES.items() if page["when"] == "function"} == set(FUNCTIONS)


def test_core_blockers_are_silent_for_core_blockers_alone() -> None:
    for id, page in PAGES.items():
        assert set(page["unless"]) <= {other for other in PAGES if "/" not in other}, id


def test_core_blocker_that_is_silent_for_an_adapters_is_refused() -> None:
    file = shipped.RULES["log-path-exists"]
    added = {**file, "id": "exec/log-path-full", "unless": []}
    with pytest.raises(InputError) as refused:
        compile_rules([{**file, "unless": ["exec/log-path-full"]}, added], LISTS)
    assert (refused.value.id, str(refused.value)) == (
        "policy-value",
        "blocker `log-path-exists` is silent for `exec/log-path-full`, which an adapter adds; allowed: core blockers",
    )


def test_cases_change_neither_the_base_nor_each_other() -> None:
    before, cases = base(), [case for page in PAGES.values() for case in page["cases"]]
    first = [verdict_of(case).canonical() for case in cases]
    again = [verdict_of(case).canonical() for case in reversed(cases)]
    assert first == again[::-1]
    assert base() == before


@pytest.mark.parametrize(("field", "value", "id"), [("place.kind", "missing", "workspace-missing"),
                                                    ("known", False, "workspace-unknown")])  # fmt: skip
def test_workspace_that_is_not_there_has_no_companions(field: str, value: object, id: str) -> None:
    values = plain()
    put(values, f"facts.workspace.{field}", value)
    for lost in ("device", "inode", "owner"):
        put(values, f"facts.workspace.place.{lost}", None)
    for lost in ("worker_uid", "worker_gid", "identity_switch"):
        put(values, f"facts.host.{lost}", UNKNOWN)
    put(values, "facts.cwd", None)
    if id == "workspace-unknown":
        put(values, "declaration.workspace", "other")
    for phase in ("check", "launch"):
        assert [one.id for one in World(values).check(phase).blockers if one.id != LEVEL_UNKNOWN] == [id]


def test_bwrap_is_not_missed_where_the_workspace_itself_is_forbidden() -> None:
    values = plain()
    put(values, "facts.workspace.covers", ["the system tree"])
    for field, value in {"found": False, "path": None, "digest": None, "reachable": None}.items():
        put(values, f"facts.runtime.{field}", value)
    assert [one.id for one in World(values).check("check").blockers] == ["workspace-root-forbidden"]


ADDED = """\
prespawn: blocker/v1
id: workspace-on-nfs
boundary: mounts
title: the workspace lies on a network file system
portable: false
status: active
since: 1
phase: check
operator: once
each: null
unless: []
when: {equals: {value: facts.workspace.place.filesystem, to: nfs4}}
report: {field: workspace, found: "{facts.workspace.place.filesystem}", allowed: [a local file system]}
why: A file system that another host can write is nothing that this host's records can speak for.
remedy: copy the workspace to a local file system
reference: []
cases:
  - name: a root on the network
    set: {facts.workspace.place.filesystem: nfs4}
    blocks: {field: workspace, found: %s, allowed: [a local file system]}
  - name: a root on a local disk
    set: {facts.workspace.place.filesystem: xfs}
    passes: true
  - name: the file system could not be told
    forget: facts.workspace.place.filesystem
    blocks: {field: workspace, because: unknown, allowed: [a local file system]}
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what makes the package and its cases, as a checkout has it."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in ("policy", "blockers", "checker", "launchers", "prespawn", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.cfg", copy)
    return copy


def test_blocker_is_added_by_adding_one_file(copied: Path) -> None:
    _run(copied, "-m", "prespawn.compile")  # what was left stale is another test's business
    before = _texts(copied)
    (copied / "blockers" / "workspace-on-nfs.yaml").write_text(ADDED % "nfs4", "utf-8")
    _run(copied, "-m", "prespawn.compile")
    changed = {path for path, text in _texts(copied).items() if before.get(path) != text}
    assert changed == {
        "blockers/workspace-on-nfs.yaml", "blockers/shipped.py", "blockers/shipped_conditions.py",
        "blockers/README.md", "blockers/pinned.txt",
    }  # fmt: skip
    assert "3 passed" in _cases(copied, 0)
    assert "workspace-on-nfs" in _run(
        copied, "-c", "from prespawn.pages import page; print(page('workspace-on-nfs')['id'])"
    )
    (copied / "blockers" / "workspace-on-nfs.yaml").write_text(ADDED % "nfs3", "utf-8")
    assert "1 failed, 2 passed" in _cases(copied, 1)


def _cases(copied: Path, status: int) -> str:
    test = "tests/offline/test_blocker_cases.py::test_case_gives_exactly_what_it_says"
    return _run(copied, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "nfs", test, status=status)


def _run(copied: Path, *arguments: str, status: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-P", *arguments], cwd=copied, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def _texts(copied: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(copied)): path.read_bytes()
        for path in copied.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and "tests" not in path.relative_to(copied).parts[:1]
    }
