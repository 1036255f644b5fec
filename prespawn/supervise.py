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

from .course import Course
from .descriptors import Descriptors
from .outcome import CANCELLED, DEADLINE
from .pumps import Side, Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .hold import Held
    from .outcome import Outcome

_MILLISECOND = 1_000_000
_LONGEST_POLL = 1 << 30  # milliseconds; longer deadlines are waited for in pieces


def run(
    plan: ApprovedPlan,
    streams: Streams | None = None,
    *,
    opened: Mapping[str, int] | None = None,
    cancel: int | None = None,
    on_held: Callable[[Held], None] | None = None,
) -> Outcome:
    """Start the plan's worker, and return how it ended, once no process of it is left.

    ``opened`` maps source paths to descriptors that are open since the check; ``cancel`` is a descriptor that becomes
    readable when the run is to end. ``on_held`` is called before one instruction of the worker's program has run; if it
    raises, none ever will, and the exception comes out of here.

    ``HostError``: the host could not do what the plan needs and nothing of the work has run: ``bwrap-missing``,
    ``bwrap-unreachable``, ``bwrap-too-old``, ``identity-switch-missing``, ``privilege-host-uid-zero``,
    ``plan-not-expressible``, ``workspace-root-identity-changed``, ``staging-refused``, ``user-namespaces-refused``,
    ``ptrace-refused``, ``descriptor-leaked``, ``limit-not-enforceable``, ``launch-failed``.
    """
    if not isinstance(plan, ApprovedPlan):
        raise TypeError("only an approved plan is ever started")
    deadline = time.monotonic_ns() + plan.limits.wall_clock * _MILLISECOND
    told, streams = invocation(plan), streams or Streams()
    with Descriptors() as own:
        sides = (_source(streams.stdin, own), _sink(streams.stdout, own), _sink(streams.stderr, own))
        notice, stop = own.own(os.eventfd(0)), own.own(os.eventfd(0))
        course = Course(told, plan.limits, sides, streams.log, opened or {}, notice, stop, asks=on_held is not None)
        _thread.start_new_thread(course.take, ())
        _watch(course, deadline, cancel, on_held)
        return course.result()


def _watch(course: Course, deadline: int, cancel: int | None, on_held: Callable[[Held], None] | None) -> None:
    """Wait for the run's end; whatever else happens here ends the run first."""
    try:
        _wait(course, deadline, cancel, on_held)
    except BaseException:
        course.stop.request(CANCELLED)
        course.refuse()
        while not course.is_over:
            _wait_for_end(course)
        raise


def _wait(course: Course, deadline: int, cancel: int | None, on_held: Callable[[Held], None] | None) -> None:
    poll = select.poll()
    poll.register(course.notice, select.POLLIN)
    if cancel is not None:
        poll.register(cancel, select.POLLIN)
    while not course.is_over:
        left = None if course.stop.reason else max(0, deadline - time.monotonic_ns())
        ready = {fd for fd, _ in poll.poll(None if left is None else min(-(-left // _MILLISECOND), _LONGEST_POLL))}
        if cancel in ready:
            course.stop.request(CANCELLED)
            poll.unregister(cancel)
        if left is not None and time.monotonic_ns() >= deadline:
            course.stop.request(DEADLINE)
        if course.notice in ready:
            os.eventfd_read(course.notice)
            if on_held is not None and course.held is not None and not course.is_over:
                on_held(course.held)
                course.agree()


def _wait_for_end(course: Course) -> None:
    poll = select.poll()
    poll.register(course.notice, select.POLLIN)
    try:
        poll.poll()
        os.eventfd_read(course.notice)
    except KeyboardInterrupt:  # asked again for what is under way: every process of the run has been sent SIGKILL
        return


def _source(given: int | bytes | None, own: Descriptors) -> Side | bytes | None:
    return Side(given, os.O_RDONLY, own) if isinstance(given, int) else given


def _sink(given: int | None, own: Descriptors) -> Side | None:
    return None if given is None else Side(given, os.O_WRONLY, own)
