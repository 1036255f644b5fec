"""The one module that starts a process.

A process starts with an empty environment, in a session of its own, with every signal at its default, and with exactly
the descriptors that are named: a value of the parent that is not handed on here is not handed on at all. Before each
start the audit event ``prespawn.spawn`` is raised with the program's path, so whoever watches can count.

Whom it runs as: itself, or, started by root, another user through ``setpriv``, which drops ids, groups, bounding set
and the right to regain any of them. It costs a program in between (0.2 of a bubblewrap start) and no Python code after
a fork, which in a process of 200 MiB would cost nine times as much.
"""

from __future__ import annotations

import os
import sys
from fcntl import F_DUPFD_CLOEXEC, F_GETFD, FD_CLOEXEC, fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
    from collections.abc import Iterator, Mapping
else:
    import _signal as signals  # `signal` builds enums: 3.6 ms at every start

SETPRIV = "/usr/bin/setpriv"


def spawn(
    program: str, vector: tuple[str, ...], descriptors: Mapping[int, int], environment: Mapping[str, str] | None = None
) -> int:
    """Start a program and return its pid.

    ``vector`` begins with ``argv[0]``; ``descriptors`` maps the numbers in the new process, from 0 without a gap, to
    ours. ``environment`` is for programs that are no worker's, empty if None. ``OSError`` if the program could not
    be executed: then there is no process.
    """
    sys.audit("prespawn.spawn", program)
    lifted = {number: fcntl(fd, F_DUPFD_CLOEXEC, len(descriptors)) for number, fd in descriptors.items()}
    try:
        return os.posix_spawn(
            program,
            vector,
            {} if environment is None else environment,
            file_actions=[*_placed(lifted), *_closed(len(descriptors))],
            setsid=True,
            setsigmask=(),
            setsigdef=signals.valid_signals(),  # Python ignores SIGPIPE, and what is ignored stays so across an exec
        )
    finally:
        for fd in lifted.values():
            os.close(fd)


def as_user(uid: int, gid: int, program: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the vector for ``SETPRIV`` that runs a program as another user, with no way back."""
    drop = ("--reuid", str(uid), "--regid", str(gid), "--clear-groups", "--no-new-privs", "--bounding-set", "-all")
    return ("setpriv", *drop, "--", program, *arguments)


def _placed(lifted: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    for number, fd in lifted.items():
        yield os.POSIX_SPAWN_DUP2, fd, number


def _closed(first: int) -> Iterator[tuple[int, int]]:
    """Close whatever the process around us left inheritable.

    Ours are close-on-exec. One that another thread opens at this very moment is found at the hold, where the payload's
    descriptors are counted.
    """
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd >= first and _inheritable(fd):
            yield os.POSIX_SPAWN_CLOSE, fd


def _inheritable(fd: int) -> bool:
    try:
        return not fcntl(fd, F_GETFD) & FD_CLOEXEC
    except OSError:  # the listing's own descriptor, closed since
        return False
