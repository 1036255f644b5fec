"""The site: this installation's trusted configuration, which no declaration can touch.

Paths are kept as written (``~`` included); what they lead to is a fact. The built-in site is used where no file is
given: the workspace is the current directory, the state lies under the user's state directory, ``sandbox-v1`` is
active. Format and authority: ``schemas/site.yaml``.
"""

from __future__ import annotations

from .codec import decode
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Workspace(Record):
    """One named root; ``reports`` lies below the ``state_dir``, ``state`` is a leased root's second directory."""

    root: str
    reports: str
    protected_paths: tuple[str, ...] = ()
    toolchains: tuple[str, ...] = ()
    state: str | None = None


class Pair(Record):
    """One allowed combination."""

    adapter: str
    profile: str


class ApprovalRule(Record):
    """Who may approve, and for how long.

    ``owner`` is the uid whose approvals are believed, None for the caller's own and root's; ``driver_may_approve`` is
    ``blocker-free`` or ``nothing``; ``lifetime`` is in milliseconds.
    """

    directory: str = "approvals"
    owner: int | None = None
    require_separate_approver: bool = False
    driver_may_approve: str = "nothing"
    lifetime: int = 3_600_000


class Site(Record):
    """The whole of it."""

    nested = {"workspaces": {"*": Workspace}, "pairs": (Pair,), "approvals": ApprovalRule}
    state_dir: str
    workspaces: Mapping[str, Workspace]
    lease_root: str | None = None
    worker_id: int | None = None
    toolchains: Mapping[str, str] = {}
    activated: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    callers: Mapping[str, str] = {}
    approvals: ApprovalRule = ApprovalRule()
    argv: Mapping[str, tuple[tuple[str, ...], ...]] = {}
    env: Mapping[str, str] = {}
    images: Mapping[str, str] = {}
    providers: Mapping[str, object] = {}


def site_of(plain: Mapping[str, Any]) -> Site:
    """Return the site of normalised fields: a toolchain is its path, an argument vector a tuple, however written."""
    toolchains = {name: at if isinstance(at, str) else at["path"] for name, at in plain["toolchains"].items()}
    vectors = {profile: tuple(map(tuple, listed)) for profile, listed in plain["argv"].items()}
    return decode(Site, {**plain, "toolchains": toolchains, "argv": vectors}, unknowns=False)
