"""What a checker function found: the three things a message shows."""

from __future__ import annotations

from prespawn.policy.record import Record


class Finding(Record):
    """``field`` is the dotted place, ``found`` the value there, ``allowed`` what may stand there instead."""

    field: str
    found: object
    allowed: tuple[object, ...]
