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
from .pumps import Ceiling, Inward, Log, Outward, wait
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
    started: Started, held: Held, stop: Stop, limits: Limits, sides: Sides, log: int | None, own: Descriptors
) -> Outcome:
    """Move what flows until the run ends, end what is left of it, and return the outcome."""
    log_file = () if log is None else (Log(log),)
    both = (Ceiling("output", limits.output), *log_file)
    errors = both if limits.diagnostics is None else (Ceiling("diagnostics", limits.diagnostics), *both)
    stdin, stdout, stderr = sides
    outward = (Outward(started.stdout, stdout, both, own), Outward(started.stderr, stderr, errors, own))
    status = Status(started.status)
    cut = _moved((Inward(stdin, started.stdin, own), *outward), errors, status, started.pidfd, stop)
    how = _how(cut, status, held, stop) if cut is None or status.exit_code is not None else _cut(cut)
    end(held.init_pidfd, started.pidfd)
    _deliver(outward, stop)
    return Outcome(
        **how,
        stdout=outward[0].taken,
        stderr=outward[1].taken,
        undelivered=sum(stream.undelivered for stream in outward),
        init=held.init,
    )
