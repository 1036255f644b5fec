"""From release to outcome: what flows is moved, the end is noticed, the tree is emptied, and the end gets its name.

How a run ended is decided by what was seen first, and never by a number that only looks like it: bubblewrap's record
of an exit that stands there before anybody stopped the run is the worker's own end, whatever comes after. A record that
is missing when bubblewrap is gone means that the run is lost.
"""

from __future__ import annotations

import os
import select

from . import kernel
from . import outcome as ends
from .outcome import Outcome
from .pumps import Ceiling, Inward, Outward, wait
from .status import Status
from .stop import kill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from prespawn.policy.profile import Limits

    from .descriptors import Descriptors
    from .hold import Held
    from .pumps import Side
    from .start import Started
    from .stop import Stop

    Sides = tuple[Side | bytes | None, Side | None, Side | None]

_GRACE = 1000  # milliseconds in which bubblewrap may reap its init and go by itself


def work(
    started: Started, held: Held, stop: Stop, limits: Limits, sides: Sides, kept: tuple[Ceiling, ...], own: Descriptors
) -> Outcome:
    """Move what flows until the run ends, end what is left of it, and return the outcome.

    ``kept`` is the log, and whatever else is to take every piece.
    """
    both = (Ceiling("output", limits.output), *kept)
    errors = both if limits.diagnostics is None else (Ceiling("diagnostics", limits.diagnostics), *both)
    stdin, stdout, stderr = sides
    outward = (Outward(started.stdout, stdout, both, own), Outward(started.stderr, stderr, errors, own))
    status = Status(started.status)
    reason = _moved((Inward(stdin, started.stdin, own), *outward), errors, status, started.pidfd, stop)
    end(held.init_pidfd, started.pidfd)
    _deliver(outward, stop)
    return Outcome(
        **_how(reason, errors, status.exit_code, held),
        stdout=outward[0].taken,
        stderr=outward[1].taken,
        undelivered=sum(stream.undelivered for stream in outward),
        init=held.init,
    )


def end(init_pidfd: int, runtime_pidfd: int) -> None:
    """End a sandbox: when its init is gone, every process of its pid namespace is.

    bubblewrap then reaps init and goes; one that does not (stopped from outside) is ended as well.
    """
    kill(init_pidfd)
    _gone(init_pidfd, None)
    if not _gone(runtime_pidfd, _GRACE):
        kill(runtime_pidfd)


def _gone(pidfd: int, timeout: int | None) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(timeout))


def _moved(
    streams: tuple[Inward | Outward, ...], ceilings: tuple[Ceiling, ...], status: Status, runtime: int, stop: Stop
) -> str | None:
    """Move what flows; return why the run was stopped, or None when it needs no stopping."""
    while not any(ceiling.reached for ceiling in ceilings):
        ready = wait(streams, (stop.fd, runtime, *((status.fd,) if status.is_open else ())))
        assert ready is not None  # it waits without a limit
        if ready:
            status.read()
        if status.exit_code is not None or runtime in ready:
            break
        if stop.fd in ready:
            return stop.reason
    return None


def _deliver(streams: tuple[Outward, ...], stop: Stop) -> None:
    """Hand over what stands in the pipes of a run that is no more; wait for a slow reader, but only until a stop.

    It does not wait for the pipes to end: nobody is left to write, and whoever else may hold one is none of this run.
    """
    while True:
        for stream in streams:
            stream.drain()
        pending = tuple(stream for stream in streams if stream.is_pending)
        if not pending:
            return
        if stop.reason is None:
            wait(pending, (stop.fd,))
        elif wait(pending, timeout=0) is None:
            for stream in pending:
                stream.drop()
            return


def _how(reason: str | None, ceilings: tuple[Ceiling, ...], exit_code: int | None, held: Held) -> dict[str, Any]:
    reached = next((ceiling for ceiling in ceilings if ceiling.reached), None)
    if reached is not None:  # also if the last piece was cut after the worker's own end
        return {"how": ends.OUTPUT_CEILING, "ceiling": reached.name}
    if reason is not None:
        return {"how": reason}
    if exit_code is None:
        return {"how": ends.LOST, "detail": "bubblewrap ended without a record of the worker's end"}
    seen = kernel.exit_record(held.payload_pidfd)
    if seen is None:
        return {"how": ends.EXITED, "status": exit_code}
    if os.WIFSIGNALED(seen):
        return {"how": ends.SIGNALLED, "signal": os.WTERMSIG(seen)}
    return {"how": ends.EXITED, "status": os.WEXITSTATUS(seen)}
