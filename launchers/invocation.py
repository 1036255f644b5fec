"""What a launcher says is to be started, as values: words, descriptor numbers, files and limits.

Numbers are those in the new process and are fixed by the plan alone, so that an invocation can be compared and shown;
the trusted parent opens what stands behind them.
"""

from __future__ import annotations

from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.checker.plan import Identity

    Option = tuple[str, ...]

ARGUMENTS, STATUS = 3, 4  # where the runtime reads its options, and where it writes its own records


class Source(Record):
    """One tree or file of the host that is mounted at ``target``, and the number under which bubblewrap gets it.

    ``identity`` is device and inode when it was checked. It is None for what lies ``below`` another source (that one's
    number): then ``path`` is relative, and is walked from there without following a link. ``mapped`` as in ``Bind``.
    """

    descriptor: int
    path: str
    target: str
    below: int | None
    identity: tuple[int, int] | None
    writable: bool
    mapped: int | None = None


class File(Record):
    """What bubblewrap reads from ``descriptor``: ``content``, or a copy of a host file.

    It writes it to ``target``; where that is None it is for itself: the filter of system calls.
    """

    descriptor: int
    target: str | None
    content: bytes
    copied: str | None


class Invocation(Record):
    """What is to be started, complete.

    ``program`` and ``argv0`` are bubblewrap's; ``options`` go through descriptor ``ARGUMENTS``, ``command`` stands
    after ``--``. ``rlimits`` are what bubblewrap has no option for: name as in ``setrlimit(2)``, and value, soft and
    hard alike. ``bounds`` are those on all processes together, which control groups hold: name as in the profile's
    limits, and value. ``options`` hold the values of environment variables: print ``described(invocation)`` instead.
    """

    program: str
    argv0: str
    identity: Identity
    options: tuple[Option, ...]
    command: tuple[str, ...]
    sources: tuple[Source, ...]
    files: tuple[File, ...]
    rlimits: tuple[tuple[str, int], ...]
    bounds: tuple[tuple[str, int], ...] = ()

    def __repr__(self) -> str:
        return f"Invocation(program={self.program!r}, command={len(self.command)} words)"

    @property
    def vector(self) -> tuple[str, ...]:
        """bubblewrap's argument vector without ``argv[0]``: no option of the plan and no value stands in it."""
        return ("--args", str(ARGUMENTS), "--", *self.command)

    @property
    def arguments(self) -> bytes:
        """What bubblewrap reads from descriptor ``ARGUMENTS``."""
        words = [word for option in self.options for word in option]
        return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)
