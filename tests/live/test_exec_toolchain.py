"""``exec`` with a toolchain, from the command line to the real bubblewrap: the printed line mends, word for word."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import runtimes
from support.cli import ROOT, WORKER, Shell, shell

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["shell"]  # the fixture

PYTHON = "/usr/bin/python3"
TOOL = """\
import os, sys
try: open(os.path.join(sys.argv[1], "new"), "w")
except OSError as error: print(error.strerror)
print(sys.argv[2:], sys.version_info[0], os.path.dirname(os.path.realpath("/proc/self/exe")) == sys.argv[1] + "/bin")
"""


def typed(shell: Shell, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    runtimes.needed(next(iter(runtimes.bubblewraps()), None))
    return subprocess.run(
        (sys.executable, "-P", "-m", "prespawn", *words), cwd=shell.workspace, stdin=subprocess.DEVNULL,
        env={"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"], **environment}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


@pytest.fixture
def toolchain(shell: Shell) -> Path:
    """A Python outside the workspace, and an environment of the workspace that was made with it."""
    if not os.path.isfile(PYTHON):
        pytest.skip(f"no `{PYTHON}` on this host")
    root = shell.top / "opt" / "python 3"
    (root / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(PYTHON), root / "bin" / "python3")
    binaries = shell.workspace / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(root / "bin" / "python3")
    (binaries / "tool").write_text(f"#!{binaries}/python\n{TOOL}")
    (binaries / "tool").chmod(0o755)
    for path in (shell.workspace / ".venv", binaries, binaries / "tool"):
        os.chown(path, WORKER, WORKER if ROOT else -1)
    return root


def test_printed_line_mends(shell: Shell, toolchain: Path) -> None:
    refused = typed(shell, "exec", "--", "tool", str(toolchain), "it's", "$HOME", "a  b")
    assert (refused.returncode, refused.stdout) == (125, "")
    blocked, hint = refused.stderr.splitlines()
    assert blocked.startswith("prespawn: execution-interpreter-outside: ")
    name, *line = shlex.split(hint.removeprefix("prespawn: with its toolchain: "))
    assert name == "prespawn"
    mended = typed(shell, *line)
    assert (mended.returncode, mended.stderr) == (0, "")
    assert mended.stdout == f"Read-only file system\n[{chr(34)}it's{chr(34)}, '$HOME', 'a  b'] 3 True\n"
    assert not (toolchain / "new").exists()


def test_environment_of_the_workspace_comes_first(shell: Shell, toolchain: Path) -> None:
    seen = typed(shell, "exec", "--toolchain", str(toolchain), "--", "sh", "-c", "command -v python; echo $PATH")
    program, path = seen.stdout.splitlines()
    assert program == f"{shell.workspace}/.venv/bin/python"
    assert path.split(":")[:2] == [f"{shell.workspace}/.venv/bin", f"{toolchain}/bin"]


def test_each_toolchain_is_there_at_its_own_path(shell: Shell, toolchain: Path) -> None:
    other = shell.top / "opt" / "other"
    (other / "bin").mkdir(parents=True)
    words = ("exec", "--toolchain", str(toolchain), "--toolchain", str(other), "--")
    listed = typed(shell, *words, "ls", str(shell.top / "opt"))
    assert (listed.returncode, listed.stdout) == (0, "other\npython 3\n")
    alone = typed(shell, "exec", "--", "sh", "-c", f"test -e {shell.top}/opt; echo $?")
    assert alone.stdout == "1\n"


def test_variable_of_the_caller_is_passed_on_by_its_name_alone(shell: Shell) -> None:
    script = ("sh", "-c", 'echo "$TZ-$TERM"')
    passed = typed(shell, "exec", "--env", "TZ", "--", *script, TZ="Europe/Oslo", TERM="vt100", COLOUR="x")
    assert (passed.returncode, passed.stdout) == (0, "Europe/Oslo-\n")
    refused = typed(shell, "exec", "--env", "COLOUR", "--", *script, COLOUR="canary-value")
    assert refused.returncode == 125
    assert refused.stderr.startswith("prespawn: env-key-not-allowed: `env_keys[0]` is `COLOUR`")
    assert "canary-value" not in refused.stderr


def test_command_that_fails_is_told_of_the_network_once(shell: Shell) -> None:
    failed = typed(shell, "exec", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (failed.returncode, failed.stdout) == (3, "out\n")
    assert failed.stderr == "err\nprespawn: the command ended with status 3; it had no network\n"
    assert typed(shell, "exec", "--", "true").stderr == ""
