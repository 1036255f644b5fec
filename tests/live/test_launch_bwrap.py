"""The launch contract against real bubblewraps, as root and as an ordinary user; the twin of the scripted lane."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from prespawn.checker.plan import Identity
from support import as_user, runtimes
from support.scenarios import SCENARIOS, Played, Scenario, judge, played, prepared

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKER = as_user.USER if runtimes.ROOT else os.getuid()


@pytest.fixture(params=runtimes.bubblewraps() or [None], ids=str)
def bwrap(request: pytest.FixtureRequest) -> str:
    return runtimes.needed(request.param)


@pytest.fixture(params=runtimes.parents())
def parent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def home(parent: str) -> Iterator[str]:
    """A directory with a workspace of the worker's: under root below a directory that the worker may not walk."""
    directory = tempfile.mkdtemp(prefix="prespawn-test-")
    os.mkdir(f"{directory}/workspace")
    if runtimes.ROOT:
        os.chown(f"{directory}/workspace", WORKER, WORKER)
        os.chmod(directory, 0o700 if parent == "root" else 0o755)
    yield directory
    shutil.rmtree(directory)


def play(scenario: Scenario, parent: str, bwrap: str, home: str, **changes: Any) -> Played:
    """Play a scenario against a real bubblewrap."""
    gid = WORKER if runtimes.ROOT else os.getgid()
    identity = Identity(uid=WORKER, gid=gid, inner_uid=1000, inner_gid=1000)
    fields = {**prepared(scenario, bwrap, f"{home}/workspace", identity, live=True), **changes}
    drops = runtimes.ROOT and parent == "user"
    seen = as_user.call(WORKER if drops else None, played, scenario, fields)
    assert isinstance(seen, Played)
    return seen


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_scenario_ends_as_it_should(scenario: Scenario, parent: str, bwrap: str, home: str) -> None:
    judge(scenario, play(scenario, parent, bwrap, home))
