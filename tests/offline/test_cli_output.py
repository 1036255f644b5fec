"""Whatever is typed and whatever the standard streams are: a code of the table, no traceback, no control bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.cli import DECLARATION, Shell, runtime, shell

from prespawn import exit_codes
from prespawn.cli.commands import cli

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["runtime", "shell"]  # the fixtures

COMMANDS = sorted(cli.commands)
LINES = (
    ["check", "d.yaml"],
    ["check", "--format", "json", "d.yaml"],
    ["blockers"],
    ["profiles"],
    ["explain", "env-key-loader"],
    ["lint", "bad.yaml"],
    ["run", "d.yaml"],
    ["--help"],
    ["check", "--help"],
    ["--version"],
)


def process(line: Sequence[str], shell: Shell, *, redirect: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run a command line in a process of its own, its standard streams left as a shell leaves them."""
    script = f'exec "$0" -P -m prespawn "$@" {redirect}'
    environment = {"PATH": os.environ["PATH"], "LANG": "C", "XDG_STATE_HOME": str(shell.top / "xdg-state")}
    return subprocess.run(
        ["/bin/sh", "-c", script, sys.executable, *line],
        cwd=shell.workspace, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def files(shell: Shell) -> None:
    shell.file("d.yaml")
    shell.file("bad.yaml", DECLARATION.replace("env_keys: []", "env_keys: [LD_PRELOAD]"))


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_output_that_nobody_reads_is_the_end_by_sigpipe(line: list[str], shell: Shell) -> None:
    files(shell)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "prespawn", *line],
        cwd=shell.workspace, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == exit_codes.EXEC_SIGNAL + 13
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_output_that_cannot_be_written_is_a_failure_of_the_host(line: list[str], shell: Shell) -> None:
    files(shell)
    done = process(line, shell, redirect=">/dev/full")
    said = b"prespawn: standard output takes no more: no space left on device; give it somewhere to go"
    assert done.returncode == exit_codes.HOST_FAILED
    assert done.stderr.splitlines()[-1] == said + b" (output-not-written)"
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("redirect", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("line", (LINES[0], LINES[5], LINES[7]), ids=" ".join)
def test_closed_stream_is_a_null_device(line: list[str], redirect: str, shell: Shell) -> None:
    files(shell)
    open_ones, closed = process(line, shell), process(line, shell, redirect=redirect)
    assert closed.returncode == open_ones.returncode
    assert closed.stdout == (b"" if ">&-" in redirect.replace("2>&-", "") else open_ones.stdout)
    assert closed.stderr == (b"" if "2>&-" in redirect else open_ones.stderr)


def test_error_that_nobody_reads_changes_no_code(shell: Shell) -> None:
    done = process(["check", "gone"], shell, redirect="2>/dev/full")
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "latin-1"])
def test_no_encoding_of_a_terminal_refuses_a_name(encoding: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    name = "größe-\U0001f600.yaml"
    shell.file(name)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "prespawn", "check", os.fsencode(name), b"\xff"],
        cwd=shell.workspace, env={**os.environ, "LANG": "C.UTF-8"}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == exit_codes.USAGE
    said = name.encode(encoding, "backslashreplace")
    assert done.stdout.startswith(said)
    expected = b"prespawn: \\udcff: no such file or directory; allowed: a regular file that can be read"
    assert done.stderr == expected + b" (input-unreadable)\n"


def test_completion_by_click_offers_commands_options_and_ids(shell: Shell) -> None:
    def offered(words: str, number: int) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "prespawn"],
            cwd=shell.workspace, capture_output=True, timeout=60, check=False, text=True,
            env={**os.environ, "_PRESPAWN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert offered("prespawn ", 1) == sorted(COMMANDS)
    assert offered("prespawn e", 1) == ["exec", "explain"]
    assert offered("prespawn explain env-key-l", 2) == ["env-key-loader"]
    assert offered("prespawn activate logical", 2) == ["logical-v1"]
    assert "--record-facts" in offered("prespawn check --", 2)
    assert offered("prespawn check --format j", 3) == ["json"]


def test_completion_script_is_printed_for_a_shell() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "prespawn"],
        env={**os.environ, "_PRESPAWN_COMPLETE": "zsh_source"}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"#compdef prespawn")


# --- anything at all


NAMES = st.sampled_from(
    ("d.yaml", "bad.yaml", "gone", "", ".", "..", "-", "--", "fifo", "loop", "/dev/null", "env-key-loader",
     "sandbox-v1", "logical-v1", "\x1b[2J", "a\nb", "\u202e", "\udcff", "a\0b", "n" * 300, "main=.", "main=/", "json",
     "text", "exec@1")
)  # fmt: skip
OPTIONS = st.sampled_from(
    ("--site", "--format", "--facts", "--record-facts", "--workspace", "--profile", "--env", "--adapter", "--toolchain",
     "-h", "--help", "--version", "--format=json", "--site=gone", "--nope", "-x", "--execute")
)  # fmt: skip
READING = ("check", "run", "approve", "lint", "explain", "blockers", "profiles")


@pytest.mark.usefixtures("runtime")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(READING), st.lists(NAMES | OPTIONS | st.text(max_size=5), max_size=6))
def test_line_of_anything_ends_by_the_table_and_does_nothing(shell: Shell, command: str, words: list[str]) -> None:
    files(shell)
    if not (shell.workspace / "fifo").exists():
        os.mkfifo(shell.workspace / "fifo")
        (shell.workspace / "loop").symlink_to("loop")
    before = set(os.listdir(shell.workspace))
    result = shell.run(command, *words, stdin=DECLARATION.encode())
    made = set(os.listdir(shell.workspace)) - before
    for name in made:  # facts were recorded, where a line says so
        (shell.workspace / name).unlink()
    assert not made or "--record-facts" in words
    assert result.code in (0, 1, 2, 3, 4)
    assert result.started == []
    assert made or result.is_quiet


@pytest.mark.usefixtures("runtime")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_file_of_anything_ends_by_the_table_and_does_nothing(shell: Shell, content: bytes) -> None:
    for name in ("x.yaml", "x.json"):
        shell.file(name, content)
        shell.file("y.yaml", DECLARATION.encode().replace(b"[ls]", content))
        for line in (("check", name), ("lint", name), ("run", name), ("check", "y.yaml"), ("lint", "y.yaml")):
            result = shell.run(*line)
            assert result.code in (0, 1, 2, 4), line
            assert result.is_quiet
