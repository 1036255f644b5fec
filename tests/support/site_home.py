"""A site of its own for whole runs: a workspace, a state directory and a site file, below a directory that is trusted.

For tests that launch for real and then look at what is left on disk; the parent is whoever runs the tests, and under
root the worker is another user.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prespawn.gate import Gate

from . import runtimes
from .cli import ROOT, WORKER, trusted_base

if TYPE_CHECKING:
    from collections.abc import Iterator


class Home:
    """The directories of one site; ``approvals`` are the site's words on who may approve."""

    def __init__(self, top: Path) -> None:
        self.top, self.workspace, self.state, self.site = top, top / "ws", top / "state", top / "site.yaml"
        self.workspace.mkdir(mode=0o755)
        if ROOT:
            os.chown(self.workspace, WORKER, WORKER)
        self.write()

    def write(self, **changes: Any) -> None:
        """Write the site file."""
        document = {
            "prespawn": "site/v1",
            "state_dir": str(self.state),
            "workspaces": {"main": {"root": str(self.workspace), "reports": "reports"}},
            "activated": ["sandbox-v1"],
            "pairs": [{"adapter": "exec@1", "profile": "sandbox-v1"}],
            "approvals": {"driver_may_approve": "blocker-free"},
            **changes,
        }
        self.site.write_text(json.dumps(document), "utf-8")

    def gate(self) -> Gate:
        """Load the site."""
        return Gate.load(str(self.site))

    def declare(self, *words: str, **changes: Any) -> dict[str, Any]:
        """Return a declaration that runs a command of the system."""
        made: dict[str, Any] = {
            "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".",
            "declared_files": [], "env_keys": [], "execution": {"argv": list(words) or ["true"]}, "execute": True,
            "file_contract": {"mode": "mutation", "allowed_paths": ["**"]},
        }  # fmt: skip
        return {**made, **changes}

    def write_declaration(self, *words: str, **changes: Any) -> str:
        """Write one as a file and return its path."""
        path = self.top / "declaration.json"
        path.write_text(json.dumps(self.declare(*words, **changes)), "utf-8")
        return str(path)


@pytest.fixture
def site_home() -> Iterator[Home]:
    """A home of its own; skips aloud where no directory passes the trust test."""
    base = trusted_base()
    if base is None:
        pytest.skip("neither /var/lib nor /opt nor a home can be written and is closed to others")
    umask = os.umask(0o022)
    top = Path(tempfile.mkdtemp(prefix="prespawn-test-", dir=base)).resolve()
    top.chmod(0o755)
    yield Home(top)
    os.umask(umask)
    shutil.rmtree(top)


@pytest.fixture
def live_home(site_home: Home) -> Home:
    """The same, where there is a bubblewrap to run something with."""
    runtimes.needed(next(iter(runtimes.bubblewraps()), None))
    return site_home
