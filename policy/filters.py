"""The shipped filters of system calls, each for one machine, as a kernel takes them.

They are made from ``seccomp/*.json`` and the tables of numbers beside it by ``python -m prespawn.compile``, through
``policy.seccomp``, ``policy.syscalls`` and ``launchers.seccomp``; a test holds that they are what those say. The
literals stand in a module of their own, so that a line that starts nothing does not load them.
"""

from __future__ import annotations

from .record import Record

NO_FILTER = "none"  # what a profile says that has none


class Filter(Record):
    """A filter by the name that profiles have for it, for one machine as ``uname -m`` names it.

    ``program`` is an array of ``struct sock_filter``, ``digest`` is that of what it was made from: the filter's
    document and the machine's table.
    """

    name: str
    machine: str
    digest: str
    program: bytes

    def __repr__(self) -> str:
        return f"Filter(name={self.name!r}, machine={self.machine!r}, digest={self.digest!r})"


def shipped_filter(name: str, machine: str) -> Filter:
    """Return a shipped filter for a machine; ``KeyError`` where one of the two is not known."""
    from .shipped_filters import DIGESTS, PROGRAMS

    return Filter(name=name, machine=machine, digest=DIGESTS[name][machine], program=PROGRAMS[name][machine])
