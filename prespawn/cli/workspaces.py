"""``--workspace NAME=DIR``: the driver sets the root of a named workspace for this one process."""

from __future__ import annotations

from prespawn.policy.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def workspace_roots(options: Sequence[str]) -> Mapping[str, str]:
    """Return the roots by name; ``InputError`` for one without a name or a directory, or named twice."""
    roots: dict[str, str] = {}
    for option in options:
        name, _, root = option.partition("=")
        if not name or not root:
            raise InputError("usage", f"`--workspace` is `{option}`; allowed here: `NAME=DIR`")
        if name in roots:
            raise InputError("usage", f"`--workspace` gives `{name}` two roots; keep one")
        roots[name] = root
    return roots
