"""Every hostile input of the threat list, through the public gate and command line, on a real tree: its right answer.

Paths, vectors and environments run against a site that activates ``logical-v1`` and lists no vector; what a row expects
is a list of alternatives, and nothing beside them may come out.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.cli import WORKER, Shell, shell  # noqa: F401  # a fixture

from prespawn import Gate
from prespawn.trusted import SITE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data" / "payloads.jsonl").read_text("utf-8").splitlines()
]
PROGRAM = ["true"]  # a vector that is listed where the row is about something else
LINKS = {
    "abs": "/etc/passwd",
    "in": "f",
    "loop": "loop",
    "magic": "/proc/self/root",
    "procfd": "/proc/self/fd/0",
}
NEEDED = {"P", "Y", "A", "E"}


def rows(*kinds: str) -> list[Any]:
    chosen = [row for row in ROWS if row["kind"] in kinds]
    assert chosen
    return [pytest.param(row, id=f"{row['id']}-{row['n']}") for row in chosen]


@pytest.fixture
def world(shell: Shell) -> Shell:  # noqa: F811
    """A workspace with the files that the rows name, and one outside of it."""
    (shell.top / "outside.txt").write_text("secret")
    for name in ("f", "a"):
        shell.file(name, "")
    for name, text in LINKS.items():
        (shell.workspace / name).symlink_to(text)
    os.link(shell.top / "outside.txt", shell.workspace / "hard")
    os.mkfifo(shell.workspace / "fifo")
    with open(os.fsencode(shell.workspace / "rawff") + b"\xff", "wb"):
        pass
    return shell


def site(shell: Shell, listed: list[list[str]], env: dict[str, str] | None = None) -> None:  # noqa: F811
    shell.write_site(
        activated=["logical-v1"],
        pairs=[{"adapter": "exec@1", "profile": "logical-v1"}],
        argv={"logical-v1": listed},
        env=env or {},
    )


def ids(**fields: Any) -> set[str]:
    """Return the blockers of a declaration with these fields."""
    whole = {
        "prespawn": "declaration/v1", "profile": "logical-v1", "adapter": "exec@1", "cwd": ".", "declared_files": [],
        "env_keys": [], "execution": {"argv": PROGRAM}, "file_contract": {"mode": "read-only"},
    }  # fmt: skip
    verdict = Gate.load().check({**whole, **fields})
    assert not verdict.allowed
    assert verdict.blockers == () or {blocker.because for blocker in verdict.blockers} == {"fail"}
    return {blocker.id for blocker in verdict.blockers}


def assert_right(row: dict[str, Any], found: set[str]) -> None:
    """Nothing but what the row expects, and something of it; where it expects one thing, exactly that."""
    assert found, row
    assert found <= set(row["expect"]), row
    if len(row["expect"]) == 1:
        assert found == set(row["expect"])


def test_payloads_are_of_every_group() -> None:
    assert {row["id"][0] for row in ROWS} == NEEDED


def test_payloads_world_allows_what_is_not_hostile(world: Shell) -> None:
    site(world, [PROGRAM], {"TZ": "UTC"})
    whole = {
        "prespawn": "declaration/v1", "profile": "logical-v1", "adapter": "exec@1", "cwd": ".", "declared_files": ["f"],
        "env_keys": ["LANG", "TZ"], "execution": {"argv": PROGRAM}, "file_contract": {"mode": "read-only"},
    }  # fmt: skip
    assert Gate.load().check(whole).blockers == ()


@pytest.mark.parametrize("row", rows("path"))
def test_payload_path(row: dict[str, Any], world: Shell) -> None:
    site(world, [PROGRAM])
    data = row["data"].replace("{ws}", str(world.workspace)).removeprefix("fs:")
    assert_right(row, ids(run_id=data) if row["id"] == "P28" else ids(declared_files=[data]))


@pytest.mark.parametrize("row", rows("argv"))
def test_payload_argv(row: dict[str, Any], world: Shell) -> None:
    site(world, [])
    assert_right(row, ids(execution={"argv": row["data"]}))


@pytest.mark.parametrize("row", rows("env"))
def test_payload_environment(row: dict[str, Any], world: Shell) -> None:
    env = {key: value for key, value in row["data"].items() if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", key)}
    site(world, [PROGRAM], env)  # a site cannot even hold the other keys
    assert_right(row, ids(env_keys=list(row["data"])))


@pytest.mark.parametrize("row", rows("yaml"))
def test_payload_yaml_is_refused_by_lint(row: dict[str, Any], shell: Shell) -> None:  # noqa: F811
    data = base64.b64decode(row["data"])
    result = shell.run("lint", "--format", "json", shell.file("policy.yaml", data))
    assert result.code == 2
    assert_right(row, {finding["id"] for finding in result.json["findings"]})
    assert {finding["file"] for finding in result.json["findings"]} == {"policy.yaml"}
    assert (result.started, result.changed) == ([], set())
    if len(data) > SITE_BYTES:
        assert [finding["id"] for finding in result.json["findings"]] == ["policy-unreadable"]


@pytest.mark.parametrize("row", rows("json"))
def test_payload_json_is_refused_by_check(row: dict[str, Any], shell: Shell) -> None:  # noqa: F811
    name = shell.file("declaration.json", base64.b64decode(row["data"]))
    result = shell.run("check", "--format", "json", name)
    assert result.code == 2
    (answer,) = result.json["results"]
    assert answer["error"]["id"] == "input-invalid"
    text = shell.run("check", name)
    assert (text.code, text.out, len(text.errors)) == (2, "", 1)
    assert text.errors[0].endswith("(input-invalid)")
    assert text.errors[0].isprintable()
    assert (result.started, result.changed) == ([], set())


@pytest.fixture(autouse=True)
def as_worker(shell: Shell) -> Iterator[None]:  # noqa: F811
    """Where root runs the tests, the workspace's owner must be able to own what stands in it."""
    assert shell.workspace.stat().st_uid == WORKER
    yield
