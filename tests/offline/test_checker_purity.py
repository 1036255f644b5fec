"""The checker touches nothing outside itself: no file, socket, process, clock, randomness, environment or module.

``test_layers`` reads its imports; here it runs under an audit hook, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import guard
from support.world import pages

GUARD = Path(guard.__file__)


def touched(what: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", str(GUARD), what], capture_output=True, text=True, check=True, timeout=120
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_checker_touches_nothing_over_all_cases_and_refusals() -> None:
    result = touched("cases")
    assert result["touched"] == []
    cases = 1 + sum(len(page["cases"]) for page in pages().values())
    assert result["verdicts"] > 4 * cases


@pytest.mark.parametrize("what", guard.REACHES)
def test_guard_sees_a_check_that_reaches_for(what: str) -> None:
    assert what in touched(what)["touched"]
