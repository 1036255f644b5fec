"""An adapter: what runs in the sandbox and turns the run packet into one agent runtime's run.

Format: ``schemas/adapter.yaml``. An adapter can add blockers under its own namespace and report a lower level; it
can never remove a core blocker (a test holds invariant 7).
"""

from __future__ import annotations

from .record import Record


class Adapter(Record):
    """``takes`` names the parts of a declaration that it reads: ``argv``, ``input``, ``model``, ``session``."""

    id: str
    title: str
    profiles: tuple[str, ...]
    takes: tuple[str, ...]
    tools: tuple[str, ...]
    blockers: tuple[str, ...]
    level_at_most: str
