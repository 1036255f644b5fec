"""``prespawn exec`` up to the start: what stands in its way is one line each, the code is the table's, nothing happens.

What becomes of a command that is started is the live lane's; here a runtime that only pretends is ended before its
worker's first instruction.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from support.cli import ROOT, WORKER, Shell, is_plain, runtime, shell

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["runtime", "shell"]  # the fixtures

pytestmark = pytest.mark.usefixtures("runtime")
HELP = "`prespawn exec --help` says what is allowed here (usage)"
BLOCKED = (
    (("--profile", "nope", "--", "ls"), 125, {"profile-unknown"}),
    (("--profile", "x\x1b\n", "--", "ls"), 125, {"profile-unknown"}),
    (
        ("--profile", "logical-v1", "--", "ls"),
        125,
        {"profile-not-activated", "adapter-profile-not-allowed"},
    ),
    (("--env", "FOO", "--", "ls"), 125, {"env-key-not-allowed"}),
    (("--env", "LD_PRELOAD", "--", "ls"), 125, {"env-key-not-allowed"}),
    (("--env", "SSH_AUTH_SOCK", "--", "ls"), 125, {"env-key-not-allowed"}),
    (("--env", "A=B", "--", "ls"), 125, {"env-key-invalid"}),
    (("--env", "\x1b]0;x\x07", "--", "ls"), 125, {"env-key-invalid"}),
    (("--env", "TERM", "--", "ls"), 125, {"env-value-missing"}),
    (("--workspace", "main=/etc", "--", "ls"), 125, {"workspace-root-forbidden"}),
    (("--", ""), 125, {"execution-preview-argv-invalid"}),
    (("--", "ls", "a\0b"), 125, {"execution-preview-argv-invalid"}),
    (("--", "ls", "\udcff"), 125, {"execution-preview-argv-invalid"}),
    (("--", "/etc/passwd"), 125, {"execution-program-outside"}),
    (("--", "no-such-program"), 127, {"execution-program-not-found"}),
    (("--", "./gone"), 127, {"execution-program-not-found"}),
    (("--", "a\x1b[2Jb"), 127, {"execution-program-not-found"}),
    (("--", "./text"), 126, {"execution-program-not-executable"}),
    (("--", "."), 126, {"execution-program-not-executable"}),
    (("no-such-program",), 127, {"execution-program-not-found"}),
)


@pytest.mark.parametrize(("words", "code", "ids"), BLOCKED, ids=lambda value: ascii(value)[:40])
def test_blocked_line_starts_nothing(
    words: Sequence[str], code: int, ids: set[str], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM", raising=False)
    shell.file("text", "x")
    result = shell.run("exec", *words)
    assert (result.code, result.out) == (code, "")
    assert {line.split(": ")[1] for line in result.errors} == ids
    assert all(line.startswith("prespawn: ") for line in result.errors)
    assert result.is_quiet


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), f"missing argument `-- CMD...`; {HELP}"),
        (("--",), f"missing argument `-- CMD...`; {HELP}"),
        (("--nope", "--", "ls"), f"no such option `--nope`; {HELP}"),
        (("--format", "json", "--", "ls"), f"no such option `--format`; {HELP}"),
        (("--env",), f"option `--env` requires an argument; {HELP}"),
        (("--workspace", "main=", "--", "ls"), "`--workspace` is `main=`; allowed here: `NAME=DIR` (usage)"),
        (("--workspace", "x=/", "--", "ls"), "the site has no workspace `x`; allowed here: `main` (usage)"),
        (("--toolchain", "", "--", "ls"), "`--toolchain` is ``; allowed here: a directory (usage)"),
        (
            ("--site", "gone\x1b", "--", "ls"),
            r"gone\x1b: no such file or directory; allowed: a site file; `prespawn init DIR` writes one "
            "(policy-unreadable)",
        ),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_wrong_line_is_one_sentence_and_125(words: Sequence[str], error: str, shell: Shell) -> None:
    result = shell.run("exec", *words)
    assert (result.code, result.out, result.errors) == (125, "", [f"prespawn: {error}"])
    assert result.is_quiet


def test_site_with_an_error_is_125_with_its_place(shell: Shell) -> None:
    shell.site.write_text("prespawn: site/v1\nstate_dir: [\n")
    result = shell.run("exec", "--", "ls")
    assert (result.code, result.out, len(result.errors)) == (125, "", 1)
    assert result.errors[0].startswith(f"{shell.site}:3:1: not YAML: ")
    assert result.is_quiet


def test_directory_that_is_no_workspace_of_the_site_runs_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write_site()
    other = shell.top / "other"
    other.mkdir()
    os.chown(other, WORKER, WORKER if ROOT else -1)
    monkeypatch.chdir(other)
    result = shell.run("exec", "--", "ls")
    assert (result.code, result.out, len(result.errors)) == (125, "", 1)
    said = f"prespawn: execute-cwd-mismatch: `cwd` is `{other}`; allowed here: `{shell.workspace}`; "
    assert result.errors[0].startswith(said)
    assert result.is_quiet


def test_directory_that_is_gone_runs_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = shell.top / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = shell.run("exec", "--", "ls")
    assert (result.code, result.out) == (125, "")
    assert result.errors
    assert is_plain(result.err)
    assert result.started == []


def test_runtime_that_only_pretends_is_ended_before_the_workers_first_instruction(shell: Shell) -> None:
    result = shell.run("exec", "--", "touch", "made")
    assert result.code == 125
    assert not (shell.workspace / "made").exists()
    assert not [path for path in result.changed if path.startswith("ws")]
    assert result.started[:1] == ["prespawn.spawn"]
    assert result.errors
    assert is_plain(result.err)
    assert "Traceback" not in result.err
