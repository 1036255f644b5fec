"""Why a run is to end before it ends by itself, and the way to end it while nobody can look up.

Two threads share one ``Stop``: the caller's, which watches clock and cancel, and the run's. While the run's thread
waits for bubblewrap to reach the worker's program it sits in ``waitpid``, the only call that reports a ptrace stop and
one that knows no deadline; so in that time the caller's thread kills, through the pidfd that is guarded here:
bubblewrap's, and init's as soon as there is one (bubblewrap reaps it and goes by itself). Later the run's thread polls
``fd`` beside everything else and ends the run itself.
"""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
else:
    import _signal as signals  # `signal` builds enums: 3.6 ms at every start

SIGKILL = int(signals.SIGKILL)


def kill(pidfd: int) -> None:
    """End the process behind a pidfd; one that has ended already stays ended."""
    try:
        signals.pidfd_send_signal(pidfd, SIGKILL)
    except ProcessLookupError:
        return


class Stop:
    """The first reason counts: ``deadline`` or ``cancelled``."""

    __slots__ = ("_guarded", "_lock", "_reason", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd  # an eventfd, readable from the first request on
        self._lock = _thread.allocate_lock()
        self._reason: str | None = None
        self._guarded: int | None = None

    @property
    def reason(self) -> str | None:
        """The reason, once there is one."""
        with self._lock:
            return self._reason

    def request(self, reason: str) -> None:
        """Ask for the end, and end what is guarded."""
        with self._lock:
            self._reason = self._reason or reason
            if self._guarded is not None:
                kill(self._guarded)
        os.eventfd_write(self.fd, 1)

    def guard(self, pidfd: int) -> None:
        """Have one process, in place of the one before it, killed at once when the end is asked for, or has been."""
        with self._lock:
            self._guarded = pidfd
            if self._reason:
                kill(pidfd)

    def unguard(self) -> str | None:
        """Leave killing to the run's own thread from here on; return the reason if it is too late for that."""
        with self._lock:
            self._guarded = None
            return self._reason
