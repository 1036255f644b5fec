"""What bubblewrap's last words mean where they mean one thing: a host that refuses it, or a bubblewrap that is too old.

bubblewrap has no codes, only sentences, which it prints untranslated (its environment is empty). These few are known
from its source; anything else stays what it is, a set-up that failed. Nothing is read from the text but which of them
it is: the rule that refuses is read from the kernel's own switches.
"""

from __future__ import annotations

from prespawn.policy.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_REFUSED = (
    "No permissions to create new namespace",  # clone: EPERM
    "No permissions to create a new namespace",  # the same, since 0.9
    "Creating new namespace failed",  # ENOSPC, EINVAL and the rest
    "setting up uid map: Permission denied",  # AppArmor gives the namespace and takes its capabilities
    "setting up uid map: Operation not permitted",
    "loopback: Failed RTM_NEWADDR: Operation not permitted",
)
_TOO_OLD = ("Unknown option --disable-userns", "Unknown option --bind-fd", "Unknown option --ro-bind-fd")

SWITCHES: tuple[tuple[str, str, str], ...] = (
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor's rule `kernel.apparmor_restrict_unprivileged_userns=1` permits them to the system's bubblewrap only",
    ),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "`kernel.unprivileged_userns_clone=0`"),
    ("/proc/sys/user/max_user_namespaces", "0", "`user.max_user_namespaces=0`"),
)
"""A switch of the kernel, the value with which it refuses, and what to call it."""

_REMEDY = "`apt install bubblewrap` (it may do what a copy may not), or have the host's owner lift the rule"


def refusal(words: str, switch: Callable[[str], str]) -> HostError | None:
    """Return the error that bubblewrap's words stand for, or None; ``switch`` reads one of ``SWITCHES``."""
    if any(text in words for text in _TOO_OLD):
        message = (
            "this `bwrap` does not know the options that a sandbox needs; allowed here: 0.8 with `--bind-fd`, or later"
        )
        return HostError("bwrap-too-old", f"{message}; `apt install bubblewrap`, or the extra `prespawn[bwrap]`")
    if not any(text in words for text in _REFUSED):
        return None
    rules = [name for path, refusing, name in SWITCHES if switch(path) == refusing]
    rule = rules[0] if rules else "a rule of this host that is not among the known switches"
    return HostError("user-namespaces-refused", f"this host refuses user namespaces to `bwrap`: {rule}; {_REMEDY}")
