"""From a JSON value to a declaration: are the keys the format's, and nothing else?

Values are not judged here, whatever they are: each boundary has its own blocker for that. A name that no declaration may
bring is let through as well, so that ``request-field-forbidden`` can say so.
"""

from __future__ import annotations

from prespawn.policy.record import Record

from .declaration import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .declaration import Declaration

BOUNDS = {"depth": 32, "nodes": 50_000}  # the reader's own, for values that no reader has seen


class Refused(Record):
    """Why a value is no declaration: ``field`` is the place, ``found`` says what stands there."""

    field: str
    found: str
