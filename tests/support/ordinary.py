"""Runs under the scripted runtime as an ordinary user, whoever runs the tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import pytest

from prespawn.checker.plan import Identity

from . import as_user, scripted_bwrap
from .scenarios import prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .scenarios import Scenario

ROOT = os.geteuid() == 0
"""This lane needs no root: under root each run is played in a process that has become an ordinary user."""


@pytest.fixture
def home() -> Iterator[str]:
    """A directory that the ordinary user may walk, with a workspace that belongs to them."""
    directory = tempfile.mkdtemp(prefix="prespawn-test-")
    os.chmod(directory, 0o755)
    os.mkdir(f"{directory}/workspace")
    if ROOT:
        os.chown(f"{directory}/workspace", as_user.USER, as_user.USER)
    yield directory
    shutil.rmtree(directory)


def fields(scenario: Scenario, home: str) -> dict[str, Any]:
    """Return the plan's fields for a scenario against the scripted runtime."""
    uid, gid = (as_user.USER, as_user.USER) if ROOT else (os.getuid(), os.getgid())
    runtime = scripted_bwrap.install(home, scenario.mode)
    identity = Identity(uid=uid, gid=gid, inner_uid=1000, inner_gid=1000)
    return prepared(scenario, runtime, f"{home}/workspace", identity, live=False)


def as_ordinary_user(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of an ordinary user, and return what it returns."""
    return as_user.call(as_user.USER if ROOT else None, function, *arguments)
