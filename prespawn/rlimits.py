"""Resource limits of a held run, set from outside and read back.

They are set at the hold and on payload and init alike. ``RLIMIT_NPROC`` counts per user *namespace* from the moment
it is set inside one: set here it bounds this run alone, set before bubblewrap it would count everything that the user
runs on the host.

Without CAP_SYS_RESOURCE, which root lacks in most containers, the kernel lets a process set another's limits only if
its real ids are the other's: a root parent borrows the worker's real ids for these calls, in this thread alone.
"""

from __future__ import annotations

import os
import resource

from prespawn.policy.errors import HostError

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.checker.plan import Identity


def apply(pids: tuple[int, ...], limits: tuple[tuple[str, int], ...], identity: Identity) -> None:
    """Set limits on processes of the worker, soft and hard alike.

    A hard limit that already is lower stays: nobody may raise it, and the run is held to less than its plan allows.
    ``HostError`` ``limit-not-enforceable`` if one could not be set or does not read back.
    """
    borrowed = identity.uid != os.getuid()
    if borrowed:
        kernel.set_real_ids(identity.uid, identity.gid)
    try:
        for pid in pids:
            for name, value in limits:
                _set(pid, name, value)
    finally:
        if borrowed:
            kernel.set_real_ids(os.geteuid(), os.getegid())


def prefer_victims(pids: tuple[int, ...]) -> None:
    """Have the kernel kill these, and what they start, before any other process when memory runs out."""
    for pid in pids:
        try:
            with open(f"/proc/{pid}/oom_score_adj", "wb", buffering=0) as file:
                file.write(b"1000")
        except OSError as error:
            message = f"oom_score_adj could not be set: {(error.strerror or str(error)).lower()}"
            raise HostError("limit-not-enforceable", message) from error


def _set(pid: int, name: str, value: int) -> None:
    which = getattr(resource, name)
    try:
        now = resource.prlimit(pid, which)[1]
        wanted = value if now == resource.RLIM_INFINITY else min(value, now)
        resource.prlimit(pid, which, (wanted, wanted))
        found = resource.prlimit(pid, which)
    except OSError as error:
        raise HostError("limit-not-enforceable", f"{name} could not be set to `{value}`: {error.strerror}") from error
    if found != (wanted, wanted):
        raise HostError("limit-not-enforceable", f"{name} is `{found[0]}`; allowed here: `{wanted}`")
