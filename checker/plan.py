"""The plan: everything that the sandbox will be, as values.

No name is looked up and no default is added after this point. A ``Plan`` can be shown; an ``ApprovedPlan`` is the only
thing that is ever started. It refuses to be built without the seal that ``checker.approve`` holds, so that one in hand
is proof that a verdict without blockers and an approval stood before it.

Sizes are bytes, times milliseconds; paths are absolute.
"""

from __future__ import annotations

from prespawn.policy.known import ABSENT
from prespawn.policy.record import Record

from .contract import Contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from prespawn.policy.filters import Filter
    from prespawn.policy.known import Absent
    from prespawn.policy.profile import Limits, Profile

    from .facts import ProgramFact, RuntimeFact, SystemEntry


class Bind(Record):
    """One host directory inside the sandbox, and the identity that it had when it was checked.

    ``mapped`` is the id (as user and as group) whose files in it are the worker's as long as the run lasts, and to whom
    all belongs that the worker makes there; None where every file is whose it is.
    """

    source: str
    target: str
    device: int
    inode: int
    writable: bool
    mapped: int | None = None


class Identity(Record):
    """Whom the worker is on the host (``uid``, ``gid``) and inside (``inner_uid``, ``inner_gid``)."""

    uid: int
    gid: int
    inner_uid: int
    inner_gid: int


class Plan(Record):
    """One run as it would be, for a preview.

    ``environment`` holds values and is never printed; ``alias`` is a second name of the workspace inside (its host
    path), so that absolute paths written by tools keep working; ``read_only`` are paths below the workspace that are
    bound read-only over it; ``program`` is what ``argv[0]`` led to when it was checked; ``filter`` is the filter of
    system calls that the profile names, for this host's machine, None where it names none; ``contract`` is what the run
    may change, nothing unless it is said.
    """

    run_id: str
    profile: Profile
    adapter: str
    level: str
    digests: Mapping[str, str]
    approval: Mapping[str, object]
    launcher: str
    runtime: RuntimeFact
    identity: Identity
    argv: tuple[str, ...]
    cwd: str
    workspace: Bind | None
    alias: str | None
    read_only: tuple[str, ...]
    toolchains: tuple[Bind, ...]
    system: tuple[SystemEntry, ...]
    zoneinfo: str | Absent
    environment: tuple[tuple[str, str], ...]
    search_path: tuple[str, ...]
    limits: Limits
    log: str | None
    program: ProgramFact | Absent = ABSENT
    filter: Filter | None = None
    contract: Contract = Contract()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(run_id={self.run_id!r}, profile={self.profile.id!r})"


class ApprovedPlan(Plan):
    """One run, decided and approved: what a launcher starts."""

    def __init__(self, *, seal: object = None, **values: Any) -> None:
        if seal is not _SEAL:
            raise TypeError(_ALONE)
        super().__init__(**values)

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(_ALONE)  # a copy was approved by nobody, and it holds values of the environment


_SEAL = object()
_ALONE = "a plan is made by `checker.approve` alone"
