"""The command line, called in this process, with a place of its own for what it reads and a watch on what it starts.

A ``Shell`` has a workspace, a state and a configuration directory below one directory that passes the trust test of
site files. What a command line spawned is counted by an audit hook, what it wrote is found by comparing the tree.
"""

from __future__ import annotations

import io
import json
import os
import pwd
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prespawn.cli import main
from prespawn.facts import runtime as runtime_facts
from prespawn.trusted_path import Walk

from . import scripted_bwrap
from .facts_world import MINE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = MINE == 0
WORKER = 1000 if ROOT else MINE  # whom a run's files belong to: root runs nothing as itself
DECLARATION = """\
prespawn: declaration/v1
profile: sandbox-v1
adapter: exec@1
cwd: .
declared_files: []
env_keys: []
execution: {argv: [ls]}
file_contract: {mode: read-only}
"""
_STARTS = ("prespawn.spawn", "subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system")
_started: list[str] = []


def _hook(event: str, _arguments: tuple[Any, ...]) -> None:
    if event in _STARTS:
        _started.append(event)


sys.addaudithook(_hook)


class Result:
    """One command line's exit code and what it wrote, and what it started and changed on disk."""

    def __init__(self, code: int, out: str, err: str, started: list[str], changed: set[str]) -> None:
        self.code, self.out, self.err, self.started, self.changed = code, out, err, started, changed

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def errors(self) -> list[str]:
        return self.err.splitlines()

    @property
    def is_quiet(self) -> bool:
        """Say whether nothing was started and nothing changed, and nothing written that a terminal would obey."""
        return (self.started, self.changed) == ([], set()) and is_plain(self.out) and is_plain(self.err)


def is_plain(text: str) -> bool:
    """Say whether every line holds nothing but what can be seen."""
    return text == "" or (text.endswith("\n") and all(line.isprintable() for line in text[:-1].split("\n")))


class Shell:
    """Calls command lines in a workspace; see the module's text."""

    def __init__(self, top: Path) -> None:
        self.top, self.workspace = top, top / "ws"
        self.site, self.state = top / "config" / "prespawn" / "site.yaml", top / "state"
        for directory in (self.workspace, self.state, self.site.parent):
            directory.mkdir(parents=True, mode=0o755)
        if ROOT:
            os.chown(self.workspace, WORKER, WORKER)

    def file(self, name: str, content: str | bytes = DECLARATION) -> str:
        """Write a file of the workspace (an absolute name: anywhere) and return its name."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
        return name

    def write_site(self, **changes: Any) -> None:
        """Write the user's site file: one workspace, the sandbox active, and what is changed."""
        document = {
            "prespawn": "site/v1",
            "state_dir": str(self.state),
            "workspaces": {"main": {"root": str(self.workspace), "reports": "reports"}},
            "activated": ["sandbox-v1"],
            "pairs": [{"adapter": "exec@1", "profile": "sandbox-v1"}],
            **changes,
        }
        self.site.write_text(json.dumps(document, ensure_ascii=False), "utf-8")

    def run(self, *words: str, stdin: bytes = b"") -> Result:
        """Call a command line in the workspace."""
        before, begun, old = self._tree(), len(_started), (sys.stdin, sys.stdout, sys.stderr)
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin), "utf-8"), out, err
        try:
            code = main(words)
        finally:
            sys.stdin, sys.stdout, sys.stderr = old
        changed = {path for path, _ in before.items() ^ self._tree().items()}
        return Result(code, _text(out), _text(err), _started[begun:], changed)

    def _tree(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for directory, names, files in os.walk(os.fsencode(self.top)):
            for name in (*names, *files):
                path = os.path.join(directory, name)
                status = os.lstat(path)
                shown = os.fsdecode(os.path.relpath(path, os.fsencode(self.top)))
                found[shown] = (status.st_mode, status.st_size, status.st_ino, status.st_mtime_ns)
        return found


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")


def trusted_base() -> str | None:
    """Return a directory in which files pass the trust test, so not ``/tmp``; as root one that others can reach."""
    own = pwd.getpwuid(MINE).pw_dir if MINE in {entry.pw_uid for entry in pwd.getpwall()} else "/nonexistent"
    return next((base for base in ("/var/lib", "/opt", own) if _is_trusted(base)), None)


def _is_trusted(path: str) -> bool:
    try:
        with Walk(path, follow_last=True) as way:
            return way.fault is None and not way.missing and os.access(path, os.W_OK | os.X_OK)
    except OSError:
        return False


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell of its own; skips aloud where no directory passes the trust test."""
    base = trusted_base()
    if base is None:
        pytest.skip("neither /var/lib nor /opt nor a home can be written and is closed to others")
    umask = os.umask(0o022)
    top = Path(tempfile.mkdtemp(prefix="prespawn-test-", dir=base)).resolve()
    top.chmod(0o755)
    made = Shell(top)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(top / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(top / "xdg-state"))
    (top / "xdg-state").mkdir(mode=0o700)
    monkeypatch.chdir(made.workspace)
    yield made
    os.umask(umask)
    shutil.rmtree(top)


@pytest.fixture
def runtime(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> str:
    """The scripted runtime in the place of bubblewrap, whether this host has one or not; its path."""
    path = scripted_bwrap.install(str(shell.top))
    monkeypatch.setattr(runtime_facts, "find_bwrap", lambda *_: path)
    return path
