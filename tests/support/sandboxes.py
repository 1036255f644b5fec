"""Live sandboxes for tests: every real bubblewrap of this host, under every kind of parent that can be had here."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from prespawn.checker.plan import Bind, Identity
from prespawn.policy.catalogue import built_in_site
from prespawn.pumps import Streams
from prespawn.supervise import run

from . import as_user, plans, runtimes
from .scenarios import Played, Scenario, played, prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKER = as_user.USER if runtimes.ROOT else os.getuid()
GROUP = as_user.USER if runtimes.ROOT else os.getgid()
BUBBLEWRAPS: list[str | None] = [*runtimes.bubblewraps()] or [None]
OWNER = "owner"  # a parent that is root, and a workspace that belongs to it
MAPPED = built_in_site().worker_id or -1  # whom root's files are the worker's as


@dataclass(frozen=True)
class Sandbox:
    """A real bubblewrap, a parent (``root``, ``user`` or ``OWNER``) and a directory with the ``workspace`` in it.

    It belongs to the worker; under ``OWNER`` to root, whose files are mapped to the worker's id. ``identity`` is the
    worker's, ``ids`` are user and group that the workspace belongs to.
    """

    bwrap: str
    parent: str
    home: str

    @property
    def workspace(self) -> str:
        return f"{self.home}/workspace"

    @property
    def identity(self) -> Identity:
        uid, gid = (MAPPED, MAPPED) if self.parent == OWNER else (WORKER, GROUP)
        return Identity(uid=uid, gid=gid, inner_uid=1000, inner_gid=1000)

    @property
    def ids(self) -> tuple[int, int]:
        return (0, 0) if self.parent == OWNER else (WORKER, GROUP)

    def bind(self, *, writable: bool = True) -> Bind:
        """Return the bind of the workspace as it is now."""
        bind = plans.bind(self.workspace, "/workspace", writable=writable)
        return bind.replace(mapped=0) if self.parent == OWNER else bind

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a process of the parent's kind; it must leave no process behind."""
        return as_user.call(WORKER if runtimes.ROOT and self.parent == "user" else None, function, *arguments)

    def fields(self, scenario: Scenario, **changes: Any) -> dict[str, Any]:
        """Return the plan's fields for a scenario."""
        fields = prepared(scenario, self.bwrap, self.workspace, self.identity, live=True)
        return {**fields, "workspace": self.bind(), **changes}

    def play(self, scenario: Scenario, **changes: Any) -> Played:
        """Play a scenario."""
        seen = self.call(played, scenario, self.fields(scenario, **changes))
        assert isinstance(seen, Played)
        return seen

    def inside(self, script: str, limits: dict[str, int] | None = None, **changes: Any) -> str:
        """Return what a shell script prints inside, stdout and stderr together; it must exit 0."""
        scenario = Scenario("inside", ("sh", "-c", f"exec 2>&1\n{script}"), {}, limits=limits or {})
        outcome, text = self.call(printed, self.fields(scenario, **changes))
        assert (outcome["how"], outcome["status"]) == ("exited", 0), (outcome, text)
        return str(text)


def printed(values: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Run a plan and return its outcome and what the worker printed."""
    os.environ["PRESPAWN_CANARY"] = "canary-of-the-parent"
    out = os.memfd_create("out")
    outcome = run(plans.plan(**values), Streams(stdout=out))
    content = os.pread(out, 1 << 22, 0).decode("utf-8", "backslashreplace")
    os.close(out)
    return dict(outcome), content


@pytest.fixture(params=BUBBLEWRAPS, ids=lambda path: str(path).strip("/").replace("/", "-")[-40:])
def bwrap(request: pytest.FixtureRequest) -> str:
    return runtimes.needed(request.param)


@pytest.fixture(params=[*runtimes.parents(), *([OWNER] if runtimes.ROOT else [])])
def sandbox(request: pytest.FixtureRequest, bwrap: str) -> Iterator[Sandbox]:
    """A sandbox; under a root parent its workspace lies below a directory that the worker may not walk."""
    directory = tempfile.mkdtemp(prefix="prespawn-test-")
    made = Sandbox(bwrap, request.param, directory)
    os.mkdir(made.workspace)
    if runtimes.ROOT:
        os.chown(made.workspace, *made.ids)
        os.chmod(made.workspace, 0o700 if request.param == OWNER else 0o755)
        os.chmod(directory, 0o755 if request.param == "user" else 0o700)
    yield made
    shutil.rmtree(directory)
