"""Which bounds on all processes of a run together the control groups of this host can hold for this caller.

Nothing is made here: it is looked at which controllers the caller's own groups have, and whether it may make groups
below. Only a profile that states such a bound asks.
"""

from __future__ import annotations

from prespawn.cgroup_places import CONTROLLERS, REQUIRED, here
from prespawn.policy.known import Unknown

from .look import why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.policy.profile import Limits


def controls(limits: Limits) -> tuple[str, ...] | Unknown:
    """Return the limits, as ``limits.memory``, that a group would hold; of those that the profile states."""
    wanted = [name for name in REQUIRED if getattr(limits, name) is not None]
    if not wanted:
        return ()
    try:
        places = here()
    except (OSError, ValueError) as error:
        return why(error, "/proc/thread-self/cgroup")  # type: ignore[no-any-return]
    return tuple(f"limits.{name}" for name in wanted if CONTROLLERS[name] in places)
