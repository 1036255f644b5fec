"""The drivers of ``examples/drivers``, each run as it stands: previewed, blocked without a spawn, approved and run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import runtimes
from support.cli import Shell, shell

__all__ = ["shell"]  # the fixture

DRIVERS = Path(__file__).parents[2] / "examples" / "drivers"
PRESPAWN = os.path.join(os.path.dirname(sys.executable), "prespawn")
SCRIPT = """\
prespawn: declaration/v1
profile: sandbox-v1
adapter: exec@1
cwd: .
declared_files: []
env_keys: []
execution: {argv: [touch, ran]}
file_contract: {mode: mutation, allowed_paths: [ran]}
execute: true
"""
BLOCKED = SCRIPT.replace("env_keys: []", "env_keys: [SOME_KEY]")
NODE = shutil.which("node")


def lines(language: str) -> list[str]:
    """Return the line that starts a driver; skips aloud where its language is missing."""
    if language == "javascript":
        if NODE is None:
            message = "no `node` on this host: `apt install nodejs`"
            if runtimes.REQUIRED:
                pytest.fail(message)
            pytest.skip(message)
        return [NODE, str(DRIVERS / "driver.mjs")]
    return {
        "python": [sys.executable, str(DRIVERS / "driver.py")], "shell": ["/bin/sh", str(DRIVERS / "driver.sh")]
    }[language]  # fmt: skip


@pytest.fixture
def workspace(shell: Shell) -> Shell:
    runtimes.needed(next(iter(runtimes.bubblewraps()), None))
    shell.write_site()
    return shell


def call(shell: Shell, words: list[str], stdin: str = "") -> tuple[int, str, str]:
    """Run a program in the workspace with an environment that finds prespawn and no site but the one named."""
    environment = {"PATH": os.environ["PATH"], "PRESPAWN": PRESPAWN, "XDG_STATE_HOME": str(shell.top / "xdg-state")}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    done = subprocess.run(
        words,
        input=stdin,
        capture_output=True,
        text=True,
        cwd=shell.workspace,
        env=environment,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


LANGUAGES = ("python", "shell", "javascript")


@pytest.mark.parametrize("language", LANGUAGES)
def test_driver_previews_and_starts_nothing(workspace: Shell, language: str) -> None:
    workspace.file("d.yaml", SCRIPT)
    code, out, err = call(workspace, [*lines(language), "preview", "d.yaml", "--site", str(workspace.site)])
    assert (code, err) == (0, "")
    assert "--unshare-user" in out
    assert os.listdir(workspace.workspace) == ["d.yaml"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_driver_stops_at_a_blocker_and_nothing_is_spawned(workspace: Shell, language: str) -> None:
    workspace.file("d.yaml", BLOCKED)
    code, out, _ = call(workspace, [*lines(language), "run", "d.yaml", "--site", str(workspace.site)])
    assert code == 1
    assert "env-key-not-allowed" in out
    assert os.listdir(workspace.workspace) == ["d.yaml"]
    assert not (workspace.state / "registry.db").exists()


@pytest.mark.parametrize("language", LANGUAGES)
def test_driver_approves_and_runs(workspace: Shell, language: str) -> None:
    workspace.file("d.yaml", SCRIPT)
    code, out, err = call(workspace, [*lines(language), "run", "d.yaml", "--site", str(workspace.site)])
    assert code == 0, (out, err)
    assert sorted(os.listdir(workspace.workspace)) == ["d.yaml", "ran"]


def test_gate_answers_in_json(workspace: Shell) -> None:
    declared = {
        "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".", "declared_files": [],
        "env_keys": [], "execution": {"argv": ["ls"]}, "file_contract": {"mode": "read-only"},
    }  # fmt: skip
    line = [sys.executable, str(DRIVERS / "gate.py"), str(workspace.site)]
    answers = []
    twice = json.dumps(declared)[:-1] + ', "env_keys": []}'
    for text in (json.dumps(declared), json.dumps({**declared, "env_keys": ["SOME_KEY"]}), "{}", "no json", twice):
        code, out, _ = call(workspace, line, text)
        said = json.loads(out)
        answers.append((code, said["allowed"], [blocker["id"] for blocker in said.get("blockers", ())]))
    assert answers[0] == (0, True, [])
    assert answers[1][:2] == (1, False)
    assert "env-key-not-allowed" in answers[1][2]
    assert answers[2:] == [(1, False, ["declaration-invalid"]), (2, False, []), (2, False, [])]


def hooked(shell: Shell, command: Any, **changes: Any) -> tuple[int, Any, str]:
    told = {
        "session_id": "s", "cwd": str(shell.workspace), "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": command, "description": "kept"}, **changes,
    }  # fmt: skip
    code, out, err = call(shell, [sys.executable, str(DRIVERS / "claude_code_hook.py")], json.dumps(told))
    return code, json.loads(out) if out else None, err


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [("echo $((40 + 2)) | cat; id -u", 0, "42\n1000\n"), ("echo \"it's\" '$HOME'; exit 3", 3, "it's $HOME\n")],
)
def test_hook_rewrites_a_shell_call_and_the_sandbox_runs_it(
    workspace: Shell, command: str, status: int, said: str
) -> None:
    code, answer, _ = hooked(workspace, command)
    decision = answer["hookSpecificOutput"]
    assert (code, decision["hookEventName"], decision["permissionDecision"]) == (0, "PreToolUse", "allow")
    assert decision["updatedInput"]["description"] == "kept"
    ended, out, _ = call(workspace, ["bash", "-c", decision["updatedInput"]["command"]])
    assert (ended, out) == (status, said)


def test_hook_says_nothing_of_other_tools_and_refuses_what_it_does_not_understand(workspace: Shell) -> None:
    assert hooked(workspace, "ls", tool_name="Read") == (0, None, "")
    assert hooked(workspace, 7) == (2, None, "prespawn hook: the call has no command\n")
    assert hooked(workspace, "ls", hook_event_name="Stop") == (2, None, "prespawn hook: this hook is for PreToolUse\n")
    code, out, err = call(workspace, [sys.executable, str(DRIVERS / "claude_code_hook.py")], "[]")
    assert (code, out, err) == (2, "", "prespawn hook: the call is no JSON object\n")
