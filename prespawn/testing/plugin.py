"""The pytest plugin: a test that asks for ``prespawn_vector`` runs once for each portable vector.

``pytest_plugins = ["prespawn.testing.plugin"]`` in a ``conftest.py``, or ``-p prespawn.testing.plugin``;
``--prespawn-vectors all`` takes those of every blocker.
"""

from __future__ import annotations

import pytest

from .vectors import vectors


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--prespawn-vectors", choices=("portable", "all"), default="portable", help="which vectors")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run whatever asks for a vector on each."""
    if "prespawn_vector" in metafunc.fixturenames:
        found = vectors(everything=metafunc.config.getoption("--prespawn-vectors") == "all")
        metafunc.parametrize("prespawn_vector", found, ids=[vector["name"] for vector in found])
