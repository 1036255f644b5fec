"""One option for all lanes: with ``--require-all`` a skipped or expected failure is a failure, whatever its reason."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

from hypothesis import settings

settings.register_profile("bounded", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("long", deadline=None, max_examples=5000)
settings.load_profile(os.environ.get("PRESPAWN_HYPOTHESIS", "bounded"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-all", action="store_true", help="a skip is a failure: for machines that have every runtime"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if item.config.getoption("--require-all") and report.outcome == "skipped":  # type: ignore[attr-defined]
        report.outcome = "failed"  # type: ignore[attr-defined]
        report.longrepr = f"{item.nodeid} was skipped where nothing may be: {report.longrepr}"  # type: ignore[attr-defined]
    return report
