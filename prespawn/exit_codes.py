"""Every exit code of the command line, in one place.

``exec`` passes the status of its command on and has numbers of its own for the rest, after Docker and ``timeout(1)``;
all other commands answer with the first group. Over many files the worst answer wins, in the order of ``WORST_FIRST``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ALLOWED = 0  # allowed, clean, succeeded
BLOCKED = 1  # a blocker, a finding
USAGE = 2  # a wrong command line, or input that cannot be read
NOTHING = 3  # there was nothing to evaluate
UNDECIDED = 4  # only unknown facts stand in the way
HOST_FAILED = 5  # approved, but the host failed closed: nothing ran
RAN_BADLY = 6  # it ran and did not end well
INTERNAL = 70  # EX_SOFTWARE of sysexits.h

EXEC_DEADLINE = 124
EXEC_NOT_STARTED = 125  # before the start; a cut at a limit; exit 0, but contract violated or output lost
EXEC_NOT_EXECUTABLE = 126
EXEC_NOT_FOUND = 127
EXEC_SIGNAL = 128  # plus the number of the signal

WORST_FIRST = (INTERNAL, USAGE, BLOCKED, UNDECIDED, NOTHING, ALLOWED)


def worst(codes: Iterable[int]) -> int:
    """Return the worst of several answers; of none at all, that there was nothing to evaluate."""
    return min(codes, key=WORST_FIRST.index, default=NOTHING)
