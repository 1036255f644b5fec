"""Runs an approved plan to its outcome: the caller's side.

``run`` starts one thread for the run (``course``), which does everything that belongs to one thread, and watches what
that thread cannot while it waits for a ptrace stop: the clock and the caller's cancel. What the caller does at the hold
(durable receipts, comparing the kernel's records with the plan) happens here too, in the caller's own thread, with the
caller's own view of the file system. All waits are for descriptors; none has a timer but the deadline.
"""

from __future__ import annotations

import _thread
import os
import select
import time

from prespawn.checker.plan import ApprovedPlan
from prespawn.launchers.bwrap import invocation
from prespawn.policy.errors import HostError

from .course import Course, Events
from .descriptors import Descriptors, limited
from .outcome import CANCELLED, DEADLINE
from .pumps import Side, Streams, kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prespawn.launchers.invocation import Invocation

    from .hold import Ready
    from .outcome import Outcome

_MILLISECOND = 1_000_000
_LONGEST_POLL = 1 << 30  # milliseconds; longer deadlines are waited for in pieces


def run(
    plan: ApprovedPlan,
    streams: Streams | None = None,
    *,
    opened: Mapping[str, int] | None = None,
    cancel: int | None = None,
    meanwhile: Callable[[Invocation], None] | None = None,
    on_held: Callable[[Ready], None] | None = None,
) -> Outcome:
    """Start the plan's worker, and return how it ended, once no process of it is left.

    ``opened`` maps source paths to descriptors that are open since the check; ``cancel`` is a descriptor that becomes
    readable when the run is to end. ``meanwhile`` is called with what bubblewrap was told, while it builds the sandbox,
    ``on_held`` before one instruction of the worker's program has run; if one of them raises, none ever will, and the
    exception comes out of here. bubblewrap's init binds itself to the life of what started it after it has made the
    payload, and before it puts on its filter: only who has seen that filter knows that a parent that is killed from
    here on leaves nothing. A launch looks.

    ``HostError``: the host could not do what the plan needs and nothing of the work has run: ``bwrap-missing``,
    ``bwrap-unreachable``, ``bwrap-too-old``, ``identity-switch-missing``, ``privilege-host-uid-zero``,
    ``plan-not-expressible``, ``workspace-root-identity-changed``, ``staging-refused``, ``idmap-refused``,
    ``user-namespaces-refused``, ``ptrace-refused``, ``worker-unreadable``, ``descriptor-leaked``,
    ``limit-not-enforceable``, ``descriptor-limit``, ``launch-failed``.
    """
    if not isinstance(plan, ApprovedPlan):
        raise TypeError("only an approved plan is ever started")
    deadline = time.monotonic_ns() + plan.limits.wall_clock * _MILLISECOND
    told, streams = invocation(plan), streams or Streams()
    try:
        return _run(plan, told, deadline, opened or {}, streams, cancel, meanwhile, on_held)
    except (OSError, HostError) as failed:
        cause = failed.__cause__ if isinstance(failed, HostError) else failed
        if (limit := limited(cause, len(told.sources) + len(told.files))) is not None:
            raise limit from failed
        raise


def _run(
    plan: ApprovedPlan, told: Invocation, deadline: int, opened: Mapping[str, int], streams: Streams,
    cancel: int | None, meanwhile: Callable[[Invocation], None] | None, on_held: Callable[[Ready], None] | None,
) -> Outcome:  # fmt: skip
    with Descriptors() as own:
        sides = (_source(streams.stdin, own), _sink(streams.stdout, own), _sink(streams.stderr, own))
        events = Events(**{name: own.own(os.eventfd(0)) for name in Events._fields})
        course = Course(told, plan.limits, sides, kept(streams), opened, events, asks=on_held is not None)
        try:
            _thread.start_new_thread(course.take, ())
            _watch(course, deadline, cancel, None if meanwhile is None else lambda: meanwhile(told), on_held)
        except BaseException:
            _end_at_once(course)
            raise
        return course.result()


def _watch(
    course: Course, deadline: int, cancel: int | None,
    meanwhile: Callable[[], None] | None, on_held: Callable[[Ready], None] | None,
) -> None:  # fmt: skip
    """Wait for the run's end; ask for it when the time has come or the caller says so."""
    events, poll = course.events, select.poll()
    for fd in (events.held, events.over, cancel, None if meanwhile is None else events.begun):
        if fd is not None:
            poll.register(fd, select.POLLIN)
    agreed = False
    while True:
        left = 0 if agreed else None if course.stop.reason else max(0, deadline - time.monotonic_ns())
        ready = {fd for fd, _ in poll.poll(None if left is None else min(-(-left // _MILLISECOND), _LONGEST_POLL))}
        if events.over in ready:
            return
        if cancel in ready:
            course.stop.request(CANCELLED)
            poll.unregister(cancel)
        if left is not None and time.monotonic_ns() >= deadline:
            course.stop.request(DEADLINE)
        if agreed:  # only now: an end that was asked for while the caller looked comes first
            course.agree()
            agreed = False
        if meanwhile is not None and events.begun in ready:
            os.eventfd_read(events.begun)
            meanwhile()
        if events.held in ready:
            os.eventfd_read(events.held)
            assert on_held is not None and course.held is not None
            on_held(course.held)
            agreed = True


def _end_at_once(course: Course) -> None:
    """End the run because of an exception in the caller's thread, and wait until nothing of it is left."""
    course.stop.request(CANCELLED)
    course.refuse()
    while not course.forgo() and not _is_over(course):
        continue


def _is_over(course: Course) -> bool:
    poll = select.poll()
    poll.register(course.events.over, select.POLLIN)
    try:
        return bool(poll.poll())
    except KeyboardInterrupt:  # asks again for what is under way: every process of the run has been sent SIGKILL
        return False


def _source(given: int | bytes | None, own: Descriptors) -> Side | bytes | None:
    return Side(given, os.O_RDONLY, own) if isinstance(given, int) else given


def _sink(given: int | None, own: Descriptors) -> Side | None:
    return None if given is None else Side(given, os.O_WRONLY, own)
