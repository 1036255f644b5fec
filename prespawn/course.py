"""The course of one run, from pinned sources to an empty tree: what the run's own thread does.

The mount namespace, ptrace, waiting for children and the parent that bubblewrap dies with all belong to one thread:
this one, which lives exactly as long as the run. In order, each step only after the one before it::

    make the control groups, where the plan has bounds for them
    -> pin the sources (identities equal the plan's) -> as root: stage them -> spawn bubblewrap, which waits for options
    -> hold at the payload's exec -> only 0, 1, 2 open; limits set -> the caller agrees -> release
    -> pumps, until the payload ends, a ceiling is reached, or somebody stops it
    -> kill init and wait for it: now the tree is empty -> drain what is left in the pipes
    -> read the kernel's counters, remove the groups -> outcome

What bubblewrap says is told from what the worker says by time, not by text: whatever stands in the stderr pipe at the
hold was written by bubblewrap, for the worker has not run, and bubblewrap writes nothing there afterwards.
"""

from __future__ import annotations

import _thread
import os

from prespawn.policy.errors import HostError
from prespawn.policy.record import Record
from prespawn.policy.spelling import shown

from . import kernel, rlimits
from .cgroups import Groups, name_here
from .descriptors import Descriptors
from .hold import Fallen, Held, Hold, Ready
from .outcome import SETUP_FAILED, Outcome
from .pumps import PIECE, write_whole
from .refusals import refusal
from .start import Started, start
from .stop import Stop, kill
from .work import end, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
    from collections.abc import Mapping

    from prespawn.launchers.invocation import Invocation
    from prespawn.policy.profile import Limits

    from .pumps import Ceiling
    from .work import Sides
else:
    import _signal as signals  # `signal` builds enums: 3.6 ms at every start

_UNREADABLE = "the records of the held worker cannot be read; allowed here: a program that its user may read"
_LONGEST_DETAIL = 2000  # bytes of bubblewrap's words that are kept, the last ones


class Events(Record):
    """Eventfds between the two threads: ``begun``, ``held`` and ``over`` for the caller's, ``stop`` for the run's."""

    begun: int
    held: int
    over: int
    stop: int


class Course:
    """One run; ``take`` is the thread's body, everything else is for the caller's thread."""

    def __init__(
        self,
        told: Invocation,
        limits: Limits,
        sides: Sides,
        kept: tuple[Ceiling, ...],
        opened: Mapping[str, int],
        events: Events,
        *,
        asks: bool,
    ) -> None:
        self.events, self.stop = events, Stop(events.stop)
        self.held: Ready | None = None
        self._claim = _thread.allocate_lock()
        self._told, self._limits, self._opened = told, limits, opened
        self._sides, self._kept, self._asks = sides, kept, asks
        self._answer, self._agreed = _thread.allocate_lock(), False
        self._answer.acquire()
        self._end: Outcome | BaseException | None = None

    def take(self) -> None:
        """Run it, and notify the caller when nothing of it is left."""
        if not self._claim.acquire(False):
            return
        signals.pthread_sigmask(signals.SIG_BLOCK, signals.valid_signals())  # signals are for the caller's threads
        try:
            with Descriptors() as own:
                self._end = self._run(own)
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread, by `result`
            self._end = error
        os.eventfd_write(self.events.over, 1)  # the last act: now the caller closes what this thread used

    def forgo(self) -> bool:
        """Make sure that the thread does nothing, and return whether it had not begun."""
        return self._claim.acquire(False)

    def agree(self) -> None:
        """Let the held payload run."""
        self._agreed = True
        self._answer.release()

    def refuse(self) -> None:
        """Never let the payload run, if it is still held."""
        if self._answer.locked():
            self._answer.release()

    def result(self) -> Outcome:
        """Return the outcome, or raise what the run's thread could not deal with."""
        if isinstance(self._end, BaseException):
            raise self._end
        assert self._end is not None
        return self._end

    def _run(self, own: Descriptors) -> Outcome:
        groups = Groups.made(self._told.bounds, name_here)
        try:
            outcome = self._within(groups, own)
            counters = groups.counters()
        finally:
            groups.remove()
        outcome = outcome.counted(counters.killed, counters.refused)
        return outcome.replace(detail=f"{outcome.detail} {groups.left}".strip()) if groups.left else outcome

    def _within(self, groups: Groups, own: Descriptors) -> Outcome:
        started = start(self._told, self._opened, groups, own)
        hold = Hold(self.stop, own)
        try:
            self.stop.guard(started.pidfd)
            groups.place(started.pid)
            held = hold.reach(started.pid, lambda: self._send(started, own))
            said = _available(started.stderr)
            if isinstance(held, Fallen):
                return self._fallen(hold, held, said, started)
            try:
                self._make_ready(held, started, groups)
            except BaseException:
                self._drop(hold, held, started)
                if self.stop.reason is None:  # else it was killed meanwhile, and what failed is only a consequence
                    raise
            if (reason := self.stop.unguard()) is not None:
                self._drop(hold, held, started)
                return Outcome(how=reason, stage="program", init=held.init)
            hold.release(held)
            return work(started, held, self.stop, self._limits, self._sides, self._kept, own)
        finally:
            self.stop.unguard()
            kill(started.pidfd)
            hold.reap()

    def _drop(self, hold: Hold, held: Held, started: Started) -> None:
        """End a run whose payload is held: not one instruction of it will run."""
        hold.discard(held)
        end(held.init_pidfd, started.pidfd)

    def _send(self, started: Started, own: Descriptors) -> None:
        try:
            write_whole(started.options, self._told.arguments)
            os.eventfd_write(self.events.begun, 1)
        except BrokenPipeError:  # it ended without reading them: the hold sees that
            return
        finally:
            own.close(started.options)

    def _make_ready(self, held: Held, started: Started, groups: Groups) -> None:
        """Check and set what is to be final before the first instruction, then ask the caller."""
        try:
            names = os.listdir(f"/proc/{held.payload}/fd")
        except PermissionError as error:
            raise HostError("worker-unreadable", _UNREADABLE) from error
        except OSError as error:
            raise HostError("launch-failed", "the held worker was ended by somebody else") from error
        if extra := set(names) - {"0", "1", "2"}:
            found = ", ".join(f"`{name}`" for name in sorted(extra, key=int))
            raise HostError(
                "descriptor-leaked", f"the worker would hold descriptors {found}; allowed here: `0`, `1`, `2`"
            )
        rlimits.apply((held.payload, held.init), self._told.rlimits, self._told.identity)
        if self._told.bounds:  # whoever is killed for memory, it is not bubblewrap, which would take everything with it
            rlimits.prefer_victims((held.payload, held.init))
        if self._asks:
            streams = (started.stdin, started.stdout, started.stderr)
            fields = {**dict(held), "filter": self._filter(held), "groups": groups.paths}
            self.held = Ready(**fields, told=self._told, streams=streams)
            os.eventfd_write(self.events.held, 1)
            self._answer.acquire()
            if not self._agreed:
                raise HostError("launch-failed", "the run was refused while it was held")

    def _filter(self, held: Held) -> bytes | None:
        """Return the kernel's copy of the payload's filter, which only its tracer can ask for, and only as root."""
        if not any(option[0] == "--seccomp" for option in self._told.options):
            return None
        try:
            return kernel.seccomp_filter(held.payload)
        except OSError:  # not for us, or not there: what was told is compared with the kernel's count alone
            return None

    def _fallen(self, hold: Hold, fallen: Fallen, said: bytes, started: Started) -> Outcome:
        if fallen.init_pidfd is not None:
            end(fallen.init_pidfd, started.pidfd)
        kill(started.pidfd)
        hold.reap()
        if self.stop.reason is not None:
            return Outcome(how=self.stop.reason, stage=fallen.stage, init=fallen.init)
        words = _words(said + _available(started.stderr))
        error = refusal(words, _switch)
        if error is not None:
            raise error
        return Outcome(how=SETUP_FAILED, stage=fallen.stage, init=fallen.init, detail=words)


def _available(fd: int) -> bytes:
    """Return what stands in a non-blocking pipe; where somebody goes on writing, as much as a pipe holds."""
    try:
        return os.read(fd, PIECE)
    except BlockingIOError:
        return b""


def _words(said: bytes) -> str:
    text = " ".join(said[-_LONGEST_DETAIL:].decode("utf-8", "backslashreplace").split())
    return shown(text)


def _switch(path: str) -> str:
    """Return the value of a switch of the kernel, nothing where there is no such switch."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode("ascii", "backslashreplace").strip()
    except OSError:
        return ""
