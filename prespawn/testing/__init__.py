"""For authors of adapters: the blockers' cases as portable vectors, and the check that an adapter keeps both halves.

An adapter is any program that decides whether a worker may start. It reads one vector as JSON on standard input and
answers with one JSON document on standard output. Two things are looked at for each: the portable blocker is reported
under its id, and nothing was started. The second is seen from outside, by the kernel's word on every program that came
of the adapter, and not by what it says.

From a test suite, with ``pytest_plugins = ["prespawn.testing.plugin"]``::

    def test_adapter(prespawn_vector):
        check(prespawn_vector, [sys.executable, "adapter.py"])

From a shell: ``prespawn conform -- python adapter.py``.
"""

from __future__ import annotations

from .conform import Finding, conform, tried
from .vectors import FORMAT, vectors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["FORMAT", "Finding", "check", "conform", "tried", "vectors"]


def check(vector: Mapping[str, Any], command: Sequence[str]) -> None:
    """Fail, with every finding, if an adapter does not keep both halves of one vector."""
    found = tried(vector, command)
    assert not found, "; ".join(str(finding) for finding in found)
