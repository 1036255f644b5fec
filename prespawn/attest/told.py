"""What the runtime was told, by option: the one thing about some of them that can be known.

Neither the signal that follows a parent's death nor the number of user namespaces that a process may make can be read
from outside. That bubblewrap was told to set them is the parent's own word, and is recorded as no more than that.
"""

from __future__ import annotations

from prespawn.policy.canonical import digest_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.launchers.invocation import Invocation

_WITH_VALUES = ("uid", "gid", "hostname", "cap-drop", "cap-add")
SECCOMP = "--seccomp"


def told(of: Invocation) -> dict[str, object]:
    """Return how often each option was given, of a few their values, and the digest of the filter."""
    counts: dict[str, int] = {}
    values: dict[str, object] = dict.fromkeys(_WITH_VALUES, ())
    for option in of.options:
        key = option[0][2:]
        if key in _WITH_VALUES:
            values[key] += option[1:]  # type: ignore[operator]  # a tuple, as every value here is
        else:
            counts[key] = counts.get(key, 0) + 1
    program = filter_of(of)
    digest = {} if program is None else {"filter": digest_bytes(program)}
    return {**counts, **{key: value for key, value in values.items() if value}, **digest}


def filter_of(of: Invocation) -> bytes | None:
    """Return the filter of system calls that the runtime was given, or None."""
    numbers = [option[1] for option in of.options if option[0] == SECCOMP]
    return next((file.content for file in of.files if [str(file.descriptor)] == numbers), None)
