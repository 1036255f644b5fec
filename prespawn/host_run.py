"""Runs an approved plan as a process of the host, through a keeper: the caller's side.

Everything happens in the caller's thread, with one wait for all of it: the worker's streams, the keeper's words, the
caller's cancel, the deadline. The worker's process exists and waits when ``on_held`` is called; not one instruction of
its program has run then. The order of the steps::

    open workspace and program as they were checked -> spawn the keeper -> it forks the worker, which waits
    -> the caller agrees -> the worker executes its program -> pumps
    -> the worker ends, a ceiling or the deadline is reached, or the caller cancels
    -> the keeper ends every process that came of it, and says so -> drain -> outcome

Where the worker ended the keeper itself (they share a user unless root started them), nobody saw how it ended: the run
is lost. That is in reach of every host process, and part of what ``logical`` does not cover.
"""

from __future__ import annotations

import os
import select
import sys
import time

from prespawn.checker.plan import ApprovedPlan
from prespawn.launchers import local
from prespawn.policy.errors import HostError
from prespawn.policy.record import Record
from prespawn.policy.spelling import shown

from . import outcome as ends
from .descriptors import Descriptors
from .outcome import Outcome
from .pumps import Ceiling, Inward, Outward, Side, Streams, kept, wait, write_whole
from .spawn import spawn
from .stop import kill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from prespawn.launchers.local import LocalInvocation

_MILLISECOND = 1_000_000
_LONGEST_POLL = 1 << 30  # milliseconds
_KEEPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper.py")


class Waiting(Record):
    """The worker's process before its program: its pid and a pidfd of it."""

    payload: int
    pidfd: int


def run(
    plan: ApprovedPlan, streams: Streams | None = None, *,
    opened: Mapping[str, int] | None = None, cancel: int | None = None,
    on_held: Callable[[Waiting], None] | None = None,
) -> Outcome:  # fmt: skip
    """Start the plan's worker, and return how it ended, once no process that came of it is left.

    Arguments as for ``supervise.run``. ``HostError``: ``privilege-host-uid-zero``, ``plan-not-expressible``,
    ``workspace-root-identity-changed``, ``program-identity-changed``, ``launch-failed``: nothing of the work has run.
    """
    if not isinstance(plan, ApprovedPlan):
        raise TypeError("only an approved plan is ever started")
    deadline = time.monotonic_ns() + plan.limits.wall_clock * _MILLISECOND
    told, streams = local.invocation(plan), streams or Streams()
    with Descriptors() as own:
        kept_run = _Kept(told, opened or {}, own)
        try:
            kept_run.reach()
            if kept_run.waiting is not None and on_held is not None:
                on_held(kept_run.waiting)
            return kept_run.work(plan, streams, cancel, deadline)
        finally:
            kept_run.end()


class _Kept:
    """A keeper, our ends of its pipes, and what it has said."""

    def __init__(self, told: LocalInvocation, opened: Mapping[str, int], own: Descriptors) -> None:
        self.own, self.told = own, told
        self.waiting: Waiting | None = None
        self._text = b""
        self._words: dict[str, int] = {}
        workspace = _workspace(told, opened, own)
        program = _program(told, own)
        pipes = {0: own.pipe(), 1: own.pipe(), 2: own.pipe(), 3: own.pipe(), 4: own.pipe()}
        theirs = {number: pipes[number][0 if number in (0, 3) else 1] for number in pipes}
        ours = {number: pipes[number][1 if number in (0, 3) else 0] for number in pipes}
        self.stdin, self.stdout, self.stderr, self.control, self.status = (ours[number] for number in range(5))
        vector = ("prespawn-keeper", "-I", "-S", _KEEPER)
        try:
            pid = spawn(sys.executable, vector, {**theirs, 5: workspace, 6: program})
        except OSError as error:
            raise _failed("the keeper could not be started", error) from error
        self.pidfd, self._pid = own.own(os.pidfd_open(pid)), pid
        for fd in theirs.values():
            own.close(fd)
        for fd in (self.stdin, self.stdout, self.stderr, self.status):
            os.set_blocking(fd, False)

    def reach(self) -> None:
        """Tell the keeper what to start, and wait until the worker's process waits."""
        self._tell(_instructions(self.told))
        poll = select.poll()
        poll.register(self.status, select.POLLIN)
        while "ready" not in self._words:
            poll.poll()
            if not self._read():
                raise HostError("launch-failed", "the keeper of the run ended before there was a worker")
        payload = self._words["ready"]
        self.waiting = Waiting(payload=payload, pidfd=self.own.own(os.pidfd_open(payload)))

    def work(self, plan: ApprovedPlan, streams: Streams, cancel: int | None, deadline: int) -> Outcome:
        """Let the worker run, move what flows, and return how it ended."""
        own = self.own
        both = (Ceiling("output", plan.limits.output), *kept(streams))
        diagnostics = plan.limits.diagnostics
        errors = both if diagnostics is None else (Ceiling("diagnostics", diagnostics), *both)
        outward = (
            Outward(self.stdout, _sink(streams.stdout, own), both, own),
            Outward(self.stderr, _sink(streams.stderr, own), errors, own),
        )
        source = Side(streams.stdin, os.O_RDONLY, own) if isinstance(streams.stdin, int) else streams.stdin
        inward = Inward(source, self.stdin, own)
        self._tell(b"g")
        reason = self._moved((inward, *outward), errors, cancel, deadline)
        self.end()
        _deliver(outward, cancel, deadline)
        return Outcome(
            **self._how(reason, errors), stdout=outward[0].taken, stderr=outward[1].taken,
            undelivered=sum(stream.undelivered for stream in outward),
        )  # fmt: skip

    def _tell(self, text: bytes) -> None:
        try:
            write_whole(self.control, text)
        except BrokenPipeError:  # the keeper is gone: what it said until then, and no more, is what is known
            return

    def end(self) -> None:
        """Have every process of the run ended, and wait for the keeper's end; a second time there is nothing to do."""
        if self.control < 0:
            return
        self.own.close(self.control)  # its end is the word
        self.control = -1
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        poll.poll()
        while self._read():
            continue
        if self.waiting is not None:
            kill(self.waiting.pidfd)
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:  # somebody else of this program waits for any child
            return

    def _moved(
        self, streams: tuple[Inward | Outward, ...], ceilings: tuple[Ceiling, ...], cancel: int | None, deadline: int
    ) -> str | None:
        others = (self.status, *(() if cancel is None else (cancel,)))
        while not any(ceiling.reached for ceiling in ceilings):
            left = deadline - time.monotonic_ns()
            if left <= 0:
                return ends.DEADLINE
            ready = wait(streams, others, min(-(-left // _MILLISECOND), _LONGEST_POLL)) or set()
            if self.status in ready and (not self._read() or self._words.keys() & {"exit", "signal", "failed"}):
                return None
            if cancel in ready:
                return ends.CANCELLED
        return None

    def _read(self) -> bool:
        """Take in what the keeper says; False once it says nothing more."""
        try:
            piece = os.read(self.status, 1 << 12)
        except BlockingIOError:
            return True
        self._text += piece
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            word, _, number = line.decode("ascii").partition(" ")
            self._words[word] = int(number or 0)
        return piece != b""

    def _how(self, reason: str | None, ceilings: tuple[Ceiling, ...]) -> dict[str, Any]:
        reached = next((ceiling for ceiling in ceilings if ceiling.reached), None)
        if "empty" not in self._words:
            return {"how": ends.LOST, "detail": "the keeper of the run was ended, and with it what it saw"}
        if reached is not None:
            return {"how": ends.OUTPUT_CEILING, "ceiling": reached.name}
        if reason is not None:
            return {"how": reason}
        if "failed" in self._words:
            said = os.strerror(self._words["failed"]).lower()
            return {"how": ends.SETUP_FAILED, "stage": "program", "detail": said}
        if "signal" in self._words:
            return {"how": ends.SIGNALLED, "signal": self._words["signal"]}
        if "exit" in self._words:
            return {"how": ends.EXITED, "status": self._words["exit"]}
        return {"how": ends.LOST, "detail": "nobody saw how the worker ended"}


def _deliver(streams: tuple[Outward, ...], cancel: int | None, deadline: int) -> None:
    """Hand over what stands in the pipes; wait for a slow reader, but only until the deadline or a cancel."""
    while True:
        for stream in streams:
            stream.drain()
        pending = tuple(stream for stream in streams if stream.is_pending)
        left = (deadline - time.monotonic_ns()) // _MILLISECOND
        if not pending:
            return
        found = wait(pending, () if cancel is None else (cancel,), max(0, min(left, _LONGEST_POLL)))
        if found is None or cancel in found:
            for stream in pending:
                stream.drop()
            return


def _sink(given: int | None, own: Descriptors) -> Side | None:
    return None if given is None else Side(given, os.O_WRONLY, own)


def _workspace(told: LocalInvocation, opened: Mapping[str, int], own: Descriptors) -> int:
    """Open the directory through the descriptor of the check; as root only its owner works in it."""
    try:
        above = opened.get(told.cwd)
        path = told.cwd if above is None else "."
        fd = own.own(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above))
    except OSError as error:
        raise _failed(f"`{shown(told.cwd)}` could not be opened", error) from error
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) != told.workspace:
        raise HostError("workspace-root-identity-changed", f"`{shown(told.cwd)}` is not the directory that was checked")
    allowed = os.geteuid() if os.geteuid() != 0 else status.st_uid
    if told.user.uid != allowed or told.user.uid == 0:
        found = (
            f"the worker is uid {told.user.uid}, the parent uid {os.geteuid()}, the workspace of uid {status.st_uid}"
        )
        raise HostError("identity-switch-missing", f"{found}; allowed here: the workspace's owner, if that is not root")
    return fd


def _program(told: LocalInvocation, own: Descriptors) -> int:
    try:
        fd = own.own(os.open(told.program, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise _failed(f"`{shown(told.program)}` could not be opened", error) from error
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) != told.identity:
        raise HostError("program-identity-changed", f"`{shown(told.program)}` is not the program that was checked")
    return fd


def _instructions(told: LocalInvocation) -> bytes:
    pairs = [word for pair in told.environment for word in pair]
    limits = [str(word) for pair in told.rlimits for word in pair]
    words = (
        str(told.user.uid), str(told.user.gid), told.program, str(len(told.argv)), *told.argv,
        str(len(told.environment)), *pairs, str(len(told.rlimits)), *limits,
    )  # fmt: skip
    text = b"\0".join(word.encode("utf-8", "surrogateescape") for word in words)
    return b"%020d" % len(text) + text


def _failed(what: str, error: OSError) -> HostError:
    return HostError("launch-failed", f"{what}: {(error.strerror or 'no reason given').lower()}")
