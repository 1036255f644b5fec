"""The line that mends an ``exec`` line: a shell reads it back as it is meant; it is there only where it would mend."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import ROOT, WORKER, Shell, shell

from prespawn import Gate
from prespawn.checker.facts import ProgramFact
from prespawn.cli.mending import mending_line, quoted
from prespawn.cli.plain import EXEC_VALUES, MANY, parse
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.spelling import is_printable_name

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["shell"]  # the fixture


def fact(toolchain: Any) -> ProgramFact:
    return ProgramFact(
        given="pytest", found=True, executable=True, origin="workspace", path="/srv/ws/.venv/bin/pytest", name="pytest",
        device=1, inode=2, interpreter="/opt/python-3.11/bin/python3.11", interpreter_origin="outside",
        toolchain=toolchain,
    )  # fmt: skip


@given(st.lists(st.text().filter(is_printable_name), min_size=1))
def test_shell_reads_the_line_back(words: list[str]) -> None:
    line = mending_line(fact("/opt/a b/python"), {}, words)
    assert line is not None
    assert shlex.split(line) == ["prespawn", "exec", "--toolchain", "/opt/a b/python", "--", *words]


@given(st.text())
def test_shell_reads_a_word_back(word: str) -> None:
    assert shlex.split(quoted(word)) == [word]


def test_line_is_the_very_one_that_is_documented() -> None:
    line = mending_line(fact("/opt/python-3.11"), {}, ["pytest", "-q"])
    assert line == "prespawn exec --toolchain /opt/python-3.11 -- pytest -q"


def test_line_keeps_the_options_that_were_typed() -> None:
    options: dict[str, Any] = {
        "site": "my site.yaml",
        "profile": None,
        "workspace": ["main=/a"],
        "env": ("TZ", "TERM"),
        "toolchain": (),
    }
    line = mending_line(fact("/opt/python-3.11"), options, ["pytest", "$HOME", ""])
    assert line == (
        "prespawn exec --site 'my site.yaml' --workspace main=/a --env TZ --env TERM --toolchain /opt/python-3.11"
        " -- pytest '$HOME' ''"
    )
    read = parse(shlex.split(line)[2 : shlex.split(line).index("--")], EXEC_VALUES, tuple(MANY))
    assert read is not None
    assert read.options == {
        "site": "my site.yaml", "workspaces": ("main=/a",), "env": ("TZ", "TERM"), "toolchains": ("/opt/python-3.11",),
    }  # fmt: skip


@pytest.mark.parametrize("word", ["a\nb", "\x1b[2J", "\u202e", "\ud800"], ids=ascii)
def test_word_that_cannot_be_shown_as_it_is_leaves_no_line(word: str) -> None:
    assert mending_line(fact("/opt/python-3.11"), {}, ["pytest", word]) is None


@pytest.mark.parametrize("program", [fact(ABSENT), fact(Unknown(reason="x")), ABSENT, Unknown(reason="x")])
def test_no_line_where_no_one_toolchain_would_do(program: Any) -> None:
    assert mending_line(program, {}, ["pytest"]) is None


# --- as `exec` says it; nothing is started


def environment(shell: Shell, python: Path) -> None:
    """Make an environment in the workspace whose Python is elsewhere, with one script in it."""
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    binaries = shell.workspace / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(python)
    (binaries / "pytest").write_text(f"#!{binaries}/python\n")
    (binaries / "pytest").chmod(0o755)
    for path in (binaries.parent, binaries, binaries / "pytest"):
        os.chown(path, WORKER, WORKER if ROOT else -1)


@pytest.mark.parametrize(
    ("command", "id"),
    [(("pytest", "-q"), "execution-interpreter-outside"), (("python", "x y"), "execution-program-outside")],
    ids=["script", "link"],
)
def test_exec_prints_the_line_before_anything_is_started(shell: Shell, command: tuple[str, ...], id: str) -> None:
    environment(shell, shell.top / "opt" / "python-3.11" / "bin" / "python3.11")
    result = shell.run("exec", "--", *command)
    assert (result.code, result.started, result.changed, result.out) == (125, [], set(), "")
    blocked, hint = result.errors
    assert blocked.startswith(f"prespawn: {id}: `execution.argv[0]` is ")
    assert hint == (
        f"prespawn: with its toolchain: prespawn exec --toolchain {shell.top}/opt/python-3.11 -- {shlex.join(command)}"
    )


def test_exec_prints_no_line_where_it_would_not_mend(shell: Shell) -> None:
    environment(shell, shell.top / "opt" / "python3.11")
    result = shell.run("exec", "--", "pytest")
    assert (result.code, result.started, len(result.errors)) == (125, [], 1)


REGISTRY = "registry-not-parent-controlled"


@pytest.mark.parametrize(
    ("directory", "found"),
    [
        ("{top}/nowhere", {"mount-source-missing": "{top}/nowhere: missing"}),
        ("nowhere", {"mount-source-missing": "{top}/ws/nowhere: missing"}),
        ("/etc", {"mount-forbidden-source": "/etc: "}),
        ("/", {"mount-forbidden-source": "/: the file system root", REGISTRY: "{top}"}),
        ("{top}/xdg-state", {"mount-forbidden-source": "{top}/xdg-state: the state directory", REGISTRY: "{top}"}),
    ],
    ids=["missing", "relative", "etc", "root", "state"],
)
def test_typed_toolchain_is_judged_like_a_sites(shell: Shell, directory: str, found: dict[str, str]) -> None:
    result = shell.run("exec", "--toolchain", directory.format(top=shell.top), "--", "true")
    assert (result.code, result.started, result.changed) == (125, [], set())
    assert len(result.errors) == len(found)
    for line, (id, value) in zip(result.errors, found.items(), strict=True):
        field = "registry_path" if id == REGISTRY else "toolchains[typed-1]"
        assert line.startswith(f"prespawn: {id}: `{field}` is `{value.format(top=shell.top)}"), line


def test_typed_toolchain_is_another_policy(shell: Shell) -> None:
    gate = Gate.load()
    digests = {
        gate.reviewing("sandbox-v1", ("true",), toolchains=roots).policy.digest
        for roots in ((), ("/opt/a",), ("/opt/b",), ("/opt/a", "/opt/b"), ("/opt/b", "/opt/a"))
    }
    assert len(digests) == 5
