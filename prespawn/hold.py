"""Holding a run at its own exec: the worker's program is mapped, and not one instruction of it has run.

bubblewrap is attached to while it still waits for its options, and followed through its two forks (its init, then the
payload) to the payload's exec. There capabilities, ``no_new_privs``, session, environment, descriptors and executable
are final, nothing of the work has been seen by anybody, and nothing had to be put into the sandbox for it. Whatever
ends before that point says by its place what failed; no text is parsed for it.

ptrace and ``waitpid`` belong to one thread: everything here is called by the thread that spawned, which lives as long
as the run. That thread's end kills what it still traces. A wait here can only end with the tree, so whoever may end it
is told of every process by pidfd, in the order in which they appear (``stop.Stop``).

The order of the steps::

    seize bubblewrap; send its options
    bubblewrap forks   -> init, attached already;    let bubblewrap go
    init forks         -> payload, attached already; let init go
    payload execs      -> held

Each wait is for any child or tracee of this thread, and of no other thread. To wait for one pid would be wrong: an init
that is killed between its fork and our look at it takes the event with it, and cannot end before somebody reaps the
payload, which nobody had heard of.
"""

from __future__ import annotations

import os

from prespawn.policy.errors import HostError
from prespawn.policy.record import Record

from . import kernel
from .stop import SIGKILL, kill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prespawn.launchers.invocation import Invocation

    from .descriptors import Descriptors
    from .stop import Stop

_FORKED = (kernel.EVENT_FORK, kernel.EVENT_VFORK, kernel.EVENT_CLONE)
_EXECUTED = (kernel.EVENT_EXEC,)


class Held(Record):
    """A run that is stopped at its exec: bubblewrap, its init and the payload, by pid as the host sees them."""

    runtime: int
    init: int
    init_pidfd: int
    payload: int
    payload_pidfd: int


class Ready(Held):
    """A held run with all that was done to it, to be looked at before it is released.

    ``told`` is what bubblewrap was told, ``streams`` are the parent's ends of the payload's first three descriptors,
    and ``filter`` is the kernel's copy of the filter of system calls where one was told and the parent may have it.
    ``groups`` are the run's own control groups by hierarchy, as ``/proc/PID/cgroup`` names them.
    """

    told: Invocation
    streams: tuple[int, int, int]
    filter: bytes | None
    groups: Mapping[str, str] = {}


class Fallen(Record):
    """A run that ended on the way: ``stage`` as in ``Outcome``, ``init`` if there was one."""

    stage: str
    init: int | None = None
    init_pidfd: int | None = None


class Hold:
    """Brings one run to its exec; every pid in here is a child or tracee of the thread that uses it."""

    __slots__ = ("_ended", "_own", "_stop", "_stopped", "_waiting")

    def __init__(self, stop: Stop, own: Descriptors) -> None:
        self._stop, self._own = stop, own
        self._ended: set[int] = set()
        self._stopped: set[int] = set()  # at an event that was asked for; nothing reports that stop again
        self._waiting: dict[int, int] = {}  # stopped, with a status that was not asked for yet

    def reach(self, runtime: int, send_options: Callable[[], None]) -> Held | Fallen:
        """Bring a process that waits for its options to the payload's exec, or say where it ended.

        ``HostError`` ``ptrace-refused`` if this host does not let a parent trace its child.
        """
        if not _seized(runtime):
            return Fallen(stage="runtime")
        send_options()
        init = self._run_until(runtime, _FORKED)
        if init is None or init in self._ended:
            return Fallen(stage="runtime")
        init_pidfd = self._own.own(os.pidfd_open(init))
        self._stop.guard(init_pidfd)
        self._let_go(runtime)
        payload = self._run_until(init, (*_FORKED, *_EXECUTED))
        if payload is None or payload in self._ended:
            return Fallen(stage="root", init=init, init_pidfd=init_pidfd)
        payload_pidfd = self._own.own(os.pidfd_open(payload))
        if payload != init:  # else init itself became the program, which no plan wants: whoever looks will see it
            self._let_go(init)
            if self._run_until(payload, _EXECUTED) is None:
                return Fallen(stage="program", init=init, init_pidfd=init_pidfd)
        return Held(runtime=runtime, init=init, init_pidfd=init_pidfd, payload=payload, payload_pidfd=payload_pidfd)

    def release(self, held: Held) -> None:
        """Let the payload run; from here on nothing is traced."""
        self._let_go(held.payload)

    def discard(self, held: Held) -> None:
        """End a held payload before its first instruction."""
        kill(held.payload_pidfd)
        self._run_until(held.payload, ())

    def reap(self) -> None:
        """Reap every child and tracee of the calling thread, killing the ones that are stopped, until none is left.

        A traced zombie keeps its pid namespace alive, and one that was never let go stays stopped for ever. Children of
        other threads are not touched.
        """
        for pid in (*self._waiting, *self._stopped):  # its stop has been reported, and will not be a second time
            _end_stopped(pid)
        self._waiting.clear()
        self._stopped.clear()
        while True:
            try:
                pid, status = os.waitpid(-1, kernel.WALL | kernel.WNOTHREAD)
            except ChildProcessError:
                return
            if os.WIFSTOPPED(status):
                _end_stopped(pid)

    def _run_until(self, pid: int, events: tuple[int, ...]) -> int | None:
        """Run a traced process until one of some events and return the event's message, or None if it ended instead."""
        while (status := self._next(pid)) is not None:
            event = status >> 16
            self._stopped.add(pid)
            try:
                if event in events:
                    return kernel.event_message(pid)
                kernel.ptrace(kernel.PTRACE_CONT, pid, 0 if event else os.WSTOPSIG(status))
                self._stopped.discard(pid)
            except ProcessLookupError:  # killed while it was stopped: the next wait says so
                continue
        return None

    def _next(self, pid: int) -> int | None:
        """Wait for a process to stop and return its status, or None if it has ended; keep what others report."""
        while pid not in self._ended:
            if pid in self._waiting:
                return self._waiting.pop(pid)
            try:
                found, status = os.waitpid(-1, kernel.WALL | kernel.WNOTHREAD)
            except ChildProcessError:  # another thread of this program waits for any child, and has reaped ours, ended
                self._ended.add(pid)
                break
            if os.WIFSTOPPED(status):
                self._waiting[found] = status
            else:
                self._waiting.pop(found, None)
                self._stopped.discard(found)
                self._ended.add(found)
        return None

    def _let_go(self, pid: int) -> None:
        try:
            kernel.ptrace(kernel.PTRACE_DETACH, pid)
        except ProcessLookupError:  # killed while stopped: reap it, as a traced zombie keeps its pid namespace alive
            self._run_until(pid, ())
        self._stopped.discard(pid)


def _end_stopped(pid: int) -> None:
    """End a process that is stopped for us; one that is not any more has ended, and its number may be another's."""
    try:
        kernel.event_message(pid)
    except ProcessLookupError:
        return
    os.kill(pid, SIGKILL)


def _seized(pid: int) -> bool:
    try:
        kernel.ptrace(kernel.PTRACE_SEIZE, pid, kernel.TRACE_TO_EXEC)
    except ProcessLookupError:
        return False
    except PermissionError:
        if _is_ended(pid):  # a zombie is refused with the same word
            return False
        raise HostError("ptrace-refused", _REFUSED) from None
    return True


_REFUSED = (
    "this host does not let the parent trace the process that it started; allowed here: ptrace on a child"
    " (`kernel.yama.ptrace_scope` of 0 or 1, no seccomp filter on ptrace, a `bwrap` that is not setuid)"
)


def _is_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
