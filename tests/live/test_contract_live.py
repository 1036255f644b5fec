"""Exit status and file contract of real runs are two results; a run that broke its contract has failed."""

from __future__ import annotations

import io
import os
import sys
import time
from typing import Any
from unittest import mock

import pytest
from support import runtimes
from support.sandboxes import Sandbox, sandbox

from prespawn.cli import main
from prespawn.gate import Gate
from prespawn.policy.errors import HostError
from prespawn.registry import Registry
from prespawn.tree import tree as really_tree

__all__ = ["sandbox"]  # the fixture

RUN = "run-1"


@pytest.fixture
def bwrap() -> str:
    """The one bubblewrap that a gate finds here."""
    return runtimes.needed(next(iter(runtimes.bubblewraps()), None))


def ready(home: str) -> None:
    """Make the workspace's files, as its owner, and go there."""
    os.chdir(f"{home}/workspace")
    os.environ.update({"XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/none"})


def launched(home: str, script: str, contract: dict[str, Any]) -> dict[str, Any]:
    """Launch a shell script under a contract, and return the two results and the registry's end."""
    ready(home)
    words = ("/bin/sh", "-c", script)
    gate = Gate.load().reviewing("sandbox-v1", words)
    declaration = {
        "prespawn": "declaration/v1", "run_id": RUN, "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".",
        "declared_files": [], "env_keys": [], "execution": {"argv": list(words)}, "execute": True,
        "file_contract": contract,
    }  # fmt: skip
    found: dict[str, Any] = {}
    try:
        run = gate.launch_typed(declaration, operator="ada")
    except HostError as error:
        found["error"] = (error.id, str(error))
    else:
        assert run.outcome is not None
        assert run.contract is not None
        found["exit"] = (run.outcome.how, run.outcome.status)
        found["contract"] = (run.contract.result, run.contract.seen)
        found["violations"] = [(change.path, change.how) for change in run.contract.violations]
    directory = os.open(f"{home}/state/prespawn", os.O_RDONLY)
    with Registry.open(directory) as registry:
        row = registry.run(RUN)
    os.close(directory)
    assert row is not None
    return {**found, "state": row.state, "end": row.end}


def play(sandbox: Sandbox, how: Any, *arguments: Any) -> Any:
    """Call something in a process of the parent's kind, in a workspace with a few files in it."""
    os.mkdir(f"{sandbox.home}/state")
    for name in ("src", "doc"):
        os.mkdir(f"{sandbox.workspace}/{name}")
        with open(f"{sandbox.workspace}/{name}/a", "w") as file:
            file.write(name)
    status = os.stat(sandbox.workspace)
    for directory, names, files in os.walk(sandbox.workspace):
        for name in (*names, *files):
            os.chown(f"{directory}/{name}", status.st_uid, status.st_gid)
    if sandbox.parent == "user":
        os.chown(f"{sandbox.home}/state", status.st_uid, status.st_gid)
    return sandbox.call(how, sandbox.home, *arguments)


SOURCES = {"mode": "mutation", "allowed_paths": ["src/**"]}
ALL = {"mode": "mutation", "allowed_paths": ["**"]}


@pytest.mark.parametrize(
    ("script", "contract", "status", "result", "violations"),
    [
        ("echo changed > src/a; echo new > src/b; touch doc/a", SOURCES, 0, "kept", []),
        ("echo changed > src/a; exit 1", SOURCES, 1, "kept", []),
        ("echo changed > doc/a", SOURCES, 0, "violated", [("doc/a", "content")]),
        ("rm doc/a; mkdir x; exit 3", SOURCES, 3, "violated", [("doc/a", "removed"), ("x", "added")]),
        ("chmod 600 doc/a", SOURCES, 0, "violated", [("doc/a", "mode")]),
        ("mkdir -p v/.git", ALL, 0, "violated", [("v/.git", "added")]),
        ("echo gitdir: /tmp > .git", ALL, 0, "violated", [(".git", "added")]),
        ("rm -r doc; ln -s src doc; mkdir .github", ALL, 0, "kept", []),
        ("(setsid sh -c 'while :; do echo x >> doc/a; done' &) ; sleep 0.1", SOURCES, 0, "violated",
         [("doc/a", "content")]),
    ],
)  # fmt: skip
def test_exit_and_contract_are_two_results(
    sandbox: Sandbox, script: str, contract: dict[str, Any], status: int, result: str, violations: list[Any]
) -> None:
    seen = play(sandbox, launched, script, contract)
    assert (seen["exit"], seen["contract"]) == (("exited", status), (result, "compared"))
    assert seen["violations"] == violations
    assert (seen["state"], seen["end"]["contract"], seen["end"]["status"]) == ("ended", result, status)


def test_read_only_contract_is_kept_by_the_kernel(sandbox: Sandbox) -> None:
    script = "echo x > src/a; rm doc/a; chmod 600 doc/a; touch src/a; mkdir new; ln -s a src/l; exit 7"
    seen = play(sandbox, launched, script, {"mode": "read-only"})
    assert (seen["exit"], seen["contract"], seen["violations"]) == (("exited", 7), ("kept", "kernel"), [])
    assert sorted(os.listdir(sandbox.workspace)) == ["doc", "src"]
    assert os.listdir(f"{sandbox.workspace}/doc") == ["a"]


def test_top_level_repository_is_held_by_the_kernel(sandbox: Sandbox) -> None:
    os.makedirs(f"{sandbox.workspace}/.git/hooks")
    script = "echo x > .git/hooks/pre-commit; mv .git moved; rm -rf .git; echo done > src/a"
    seen = play(sandbox, launched, script, ALL)
    assert (seen["exit"], seen["contract"]) == (("exited", 0), ("kept", "compared"))
    assert os.listdir(f"{sandbox.workspace}/.git") == ["hooks"]


def unseen(home: str, script: str, which: int) -> dict[str, Any]:
    """Launch, and let one of the looks at the workspace fail."""
    looks = iter(range(9))

    def failing(*given: Any, **named: Any) -> Any:
        if next(looks) == which:
            raise OSError(5, "Input/output error", "doc/a\n")
        return really_tree(*given, **named)

    with mock.patch("prespawn.tree.tree", failing):
        return launched(home, script, SOURCES)


def test_workspace_that_cannot_be_looked_at_before_is_not_worked_in(sandbox: Sandbox) -> None:
    seen = play(sandbox, unseen, "touch src/ran", 0)
    said = "the workspace could not be looked at before the run: `doc/a\\x0a`: input/output error"
    assert seen["error"] == ("file-contract-not-comparable", said)
    assert (seen["state"], seen["end"]["how"]) == ("never-started", "file-contract-not-comparable")
    assert os.listdir(f"{sandbox.workspace}/src") == ["a"]


def test_workspace_that_cannot_be_looked_at_afterwards_is_not_a_pass(sandbox: Sandbox) -> None:
    seen = play(sandbox, unseen, "touch src/ran", 1)
    assert (seen["exit"], seen["contract"]) == (("exited", 0), ("unknown", "nobody"))
    assert (seen["state"], seen["end"]["contract"]) == ("ended", "unknown")


def typed(home: str, script: str) -> tuple[int, str]:
    """Type an ``exec`` line and return its status and what it said on standard error."""
    ready(home)
    said = os.memfd_create("said")
    os.dup2(said, 2)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8")
    code = main(["exec", "--", "/bin/sh", "-c", script])
    sys.stderr.flush()
    return code, os.pread(said, 1 << 16, 0).decode()


@pytest.mark.parametrize(("status", "passed_on"), [(0, 125), (4, 4)])
def test_exec_names_a_violation_and_fails(sandbox: Sandbox, status: int, passed_on: int) -> None:
    code, said = play(sandbox, typed, f"mkdir -p v/.git; exit {status}")
    assert code == passed_on
    assert said.splitlines()[-1] == "prespawn: the file contract was violated: `v/.git` (added)"


def test_exec_without_a_violation_says_nothing_of_it(sandbox: Sandbox) -> None:
    assert play(sandbox, typed, "echo x > src/new; rm -r doc") == (0, "")


def test_look_is_taken_when_the_process_tree_is_empty(sandbox: Sandbox) -> None:
    """A detached writer changes files until the very end: what is compared is what stands there afterwards."""
    script = "(setsid sh -c 'while :; do mkdir v v/.git; rmdir v/.git v; done' &) ; sleep 0.2"
    seen = play(sandbox, launched, script, ALL)
    found = f"{sandbox.workspace}/v/.git"
    time.sleep(0.05)
    assert (seen["violations"] == [("v/.git", "added")]) is os.path.isdir(found)
    assert seen["contract"][1] == "compared"
