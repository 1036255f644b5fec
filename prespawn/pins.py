"""The sources of a run as descriptors, compared with what was checked.

A name is looked up once and what it led to is kept; from here on a rename changes nothing. Where the caller still
holds the descriptors of the check, these are used and no name is looked up at all.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

from prespawn.policy.errors import HostError
from prespawn.policy.spelling import is_canonical, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from prespawn.launchers.invocation import Source

    from .descriptors import Descriptors

PINNED = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
CHANGED = "workspace-root-identity-changed"


def pinned(sources: tuple[Source, ...], opened: Mapping[str, int], own: Descriptors) -> dict[int, int]:
    """Return a descriptor (``O_PATH``) for each source, by its number in the new process.

    ``opened`` maps paths to descriptors that the caller holds. ``HostError`` ``workspace-root-identity-changed`` if a
    source is not what was checked.
    """
    pins: dict[int, int] = {}
    for source in sources:
        try:
            if source.below is None:
                fd = opened.get(source.path, -1)
                fd = own.own(os.open(source.path, PINNED)) if fd < 0 else fd
            else:
                fd = _walked(pins[source.below], source.path, own)
            _compare(source, os.fstat(fd), None if source.below is None else os.fstat(pins[source.below]))
        except OSError as error:
            found = f"`{shown(source.path)}` cannot be opened: {(error.strerror or 'no reason given').lower()}"
            raise HostError(CHANGED, f"{found}; allowed here: what was checked") from error
        pins[source.descriptor] = fd
    return pins


def _walked(root: int, path: str, own: Descriptors) -> int:
    if not is_canonical(path):
        raise HostError(CHANGED, f"`{shown(path)}` is not below the workspace; allowed here: a canonical relative path")
    for part in path.split("/"):
        root = own.own(os.open(part, PINNED, dir_fd=root))
    return root


def _compare(source: Source, found: os.stat_result, root: os.stat_result | None) -> None:
    """A directory of the identity that was checked; below one, a directory or file of the same file system."""
    if root is None:
        right = S_ISDIR(found.st_mode) and source.identity == (found.st_dev, found.st_ino)
        allowed = "the directory that was checked"
    else:
        right = (S_ISDIR(found.st_mode) or S_ISREG(found.st_mode)) and found.st_dev == root.st_dev
        allowed = "a directory or file of the workspace's own file system"
    if not right:
        raise HostError(CHANGED, f"`{shown(source.path)}` is another file or directory; allowed here: {allowed}")
