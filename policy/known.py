"""What stands where a value is not there: not known, or not applicable.

``Unknown`` says that nobody could look, and why; every attribute of it is unknown for the same reason, so a
condition that reads ``facts.log.inside`` need not care at which step the view was lost. ``ABSENT`` says that
there is nothing to look at (no log was asked for); every attribute of it is absent as well.
"""

from __future__ import annotations

from .record import Record


class Unknown(Record):
    """A value that could not be looked at; ``reason`` is a short sentence for people."""

    reason: str

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class Absent(Record):
    """A value that does not apply here."""

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "ABSENT"  # the one there is, for it is asked for by identity


ABSENT = Absent()
