"""All facts of one declaration, gathered once.

``gather`` is total: whatever the system refuses becomes ``Unknown`` with a reason in the fact that needed it, and what
the declaration or the policy does not have is ``ABSENT``. It returns the facts together with the descriptors that they
were read from, so that what was checked is what a launcher can use.

Example::

    with gather(declaration, policy, now=now, run_id_used=False, registry="absent", most_entries=200_000,
                launchers={"bwrap": ("limits.wall_clock",)}) as held:
        verdict = Checker(policy, rules).check(declaration, held.facts)
"""

from __future__ import annotations

import os

from prespawn.checker.facts import Facts
from prespawn.checker.selection import profile_of, workspace_name
from prespawn.policy.known import ABSENT, Absent, Unknown

from .environment import environment
from .held import Held
from .host import host
from .look import Look
from .mounts import TOOLCHAINS, mounts, open_leases, open_toolchains
from .places import cwd, no_workspace, trusted_place, workspace
from .program import Trees, Worker, bin_directories, program
from .runtime import BWRAP, image, runtime
from .targets import open_state, state, target
from .walk import declared_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any

    from prespawn.checker.declaration import Declaration
    from prespawn.checker.facts import HostFact, MountFact, ProgramFact, TargetFact, WorkspaceFact
    from prespawn.policy.bundle import Policy
    from prespawn.policy.profile import Profile
    from prespawn.policy.site import Workspace

    from .mounts import Grant
    from .targets import Opened


def gather(
    declaration: Declaration,
    policy: Policy,
    *,
    now: int,
    run_id_used: bool | Unknown,
    registry: str | Unknown,
    most_entries: int,
    launchers: Mapping[str, tuple[str, ...]],
    always: tuple[str, ...] = (),
    evidence: tuple[str, ...] | Unknown = (),
    caller_env: Mapping[str, str] | None = None,
    extra_path: tuple[str, ...] = (),
    site_file: str | None = None,
    memo: MutableMapping[str, object] | None = None,
    caller: str | None = None,
) -> Held:
    """Look at the host for one declaration; the caller closes what is returned.

    ``now`` is the present time in Unix seconds; ``run_id_used`` and ``registry`` are what the registry says of itself
    (see ``Facts`` and ``StateFact``); ``most_entries`` bounds each walk through a tree; ``launchers`` names those of
    this installation with what each enforces here, ``always`` what the parent holds every run to; ``evidence`` are the
    kinds that this host has for the profile.
    ``caller_env`` holds the variables that the operator passed on by name, ``extra_path`` directories (absolute, or
    relative to the workspace) in which programs are looked for first, ``site_file`` the resolved path of the site's
    file, ``memo`` what earlier looks wrote down (digests are added to it), and ``caller`` the kind of driver that asks.
    """
    held = Held()
    try:
        look = Look(policy.lists, most_entries, {} if memo is None else memo)
        gathering = _Gathering(held, look, declaration, policy)
        held.facts = Facts(
            declaration=declaration.digest, now=now, run_id_used=_any(run_id_used), evidence=_any(evidence),
            caller=ABSENT if caller is None else caller,
            **gathering.of_places(site_file, registry),
            **gathering.of_execution(launchers, always, {} if caller_env is None else caller_env, extra_path),
        )  # fmt: skip
    except BaseException:
        held.close()
        raise
    return held


class _Gathering:
    """What one gathering has opened so far."""

    def __init__(self, held: Held, look: Look, declaration: Declaration, policy: Policy) -> None:
        self.held, self.look, self.declaration, self.site = held, look, declaration, policy.site
        self.profile: Profile | Absent = profile_of(declaration, policy)
        self.name = workspace_name(declaration, policy.site)
        self.without_workspace = self.profile is not ABSENT and self.profile.workspace is ABSENT
        self.workspace: Workspace | None = None
        if self.name is not None and not self.without_workspace:
            self.workspace = policy.site.workspaces[self.name]
        self.place: Any = ABSENT
        self.grants: tuple[Grant, ...] = ()

    # -- directories and files

    def of_places(self, site_file: str | None, registry: Any) -> dict[str, Any]:
        """Return the facts about places, and open what the others need."""
        state_dir = open_state(self.look, self.site.state_dir)
        self.held.state = self.held.own(state_dir.fd)
        mine = {"the site file": site_file, "the state directory": state_dir.path}
        own = {words: path for words, path in mine.items() if isinstance(path, str)}
        facts: dict[str, Any] = {"workspace": self._workspace(own)}
        facts["cwd"], facts["declared_files"] = self._cwd(), self._declared_files()
        facts["mounts"] = self._mounts(own)
        seen = [(f"workspace `{self.name}`", self.place), *((grant.words, grant.place) for grant in self.grants)]
        facts["state"] = state(self.look, state_dir, registry, seen)
        facts["log"], facts["registry"] = self._log(state_dir), self._registry(state_dir)
        return facts

    def _workspace(self, own: Mapping[str, str]) -> WorkspaceFact | Absent:
        if self.without_workspace:
            return ABSENT
        if self.workspace is None or self.name is None:
            declared = self.declaration.workspace
            return no_workspace(declared if isinstance(declared, str) else "")
        self.place, fd = trusted_place(self.look, self.workspace.root, relative=True)
        self.held.own(fd)
        if self.place.kind == "directory":
            self.held.workspace = fd
        return workspace(self.look, self.name, self.place, self.held.workspace, own, self._system())

    def _system(self) -> tuple[str, ...]:
        """Return the pieces of this host that the worker's own root repeats."""
        repeats = not isinstance(self.profile, Absent) and self.profile.root.system == "read-only"
        return self.look.lists["system-tree"].names if repeats else ()

    def _cwd(self) -> Any:
        """Look where ``cwd`` leads; without a root there is nothing to compare it with."""
        if self.held.workspace < 0:
            return self.place if isinstance(self.place, Unknown) else ABSENT
        return cwd(self.look, self.declaration.cwd, self.held.workspace)

    def _declared_files(self) -> Any:
        files = self.declaration.declared_files
        root: Any = self.held.workspace
        if root < 0:
            root = self.place if isinstance(self.place, Unknown) else ABSENT
        return tuple(declared_file(root, path) for path in files) if isinstance(files, list) else ()

    def _mounts(self, own: Mapping[str, str]) -> tuple[MountFact, ...]:
        if self.workspace is None or self.name is None:
            return ()
        self.grants = open_toolchains(self.look, self.site, self.workspace.toolchains)
        for grant in self.grants:
            self.held.own(grant.fd)
        self.held.toolchains = {grant.name: grant.fd for grant in self.grants if grant.fd >= 0}
        if self.profile.workspace.source != "lease":
            return mounts(self.look, self.grants, {f"workspace `{self.name}`": self.place}, own, self._system())
        leases = open_leases(self.look, self.site, self.workspace)
        for grant in leases:
            self.held.own(grant.fd)
        self.grants += leases
        return mounts(self.look, self.grants, self._others_leases(), own, self._system())

    def _others_leases(self) -> dict[str, Any]:
        """Return the places of what other workspaces of the site are given."""
        places = {}
        for name, other in self.site.workspaces.items():
            roots = {f"the workspace of `{name}`": other.root, f"the state of `{name}`": other.state}
            for words, root in roots.items() if name != self.name else ():
                if root is not None:
                    places[words], fd = trusted_place(self.look, root, relative=True)
                    self.held.own(fd)
        return places

    # -- what the parent writes

    def _log(self, state_dir: Opened) -> TargetFact | Absent:
        """Look where the log will stand; without a declared path, only at the directory that is reserved for it."""
        if self.workspace is None:
            return ABSENT
        reports, declared = self.workspace.reports, self.declaration.log_path
        fact, fd = target(state_dir, reports, f"{reports}/log" if declared is ABSENT else declared)
        self.held.log = self.held.own(fd)
        return ABSENT if declared is ABSENT else fact

    def _registry(self, state_dir: Opened) -> TargetFact | Absent:
        if self.declaration.registry_path is ABSENT:
            return ABSENT
        fact, fd = target(state_dir, "", self.declaration.registry_path)
        self.held.own(fd)
        return fact

    # -- what will run, and where

    def of_execution(
        self,
        launchers: Mapping[str, tuple[str, ...]],
        always: tuple[str, ...],
        caller_env: Mapping[str, str],
        extra_path: tuple[str, ...],
    ) -> dict[str, Any]:
        """Return the facts about environment, program, runtime, image and host."""
        fixed = {} if isinstance(self.profile, Absent) else self.profile.environment.fixed
        shapes = self.look.lists["credential-shapes"]
        on = host(self.look, self.place.owner, self._worker_id())
        return {
            "environment": environment(self.declaration.env_keys, fixed, self.site.env, caller_env, shapes),
            "program": self._program(on, extra_path),
            "host": on,
            **self._launcher(launchers, always),
        }

    def _worker_id(self) -> int | None:
        """Return whom root's files can be mapped to: a launcher that mounts them itself is needed for that."""
        mounts = not isinstance(self.profile, Absent) and self.profile.launcher == BWRAP
        return self.site.worker_id if mounts else None

    def _program(self, on: HostFact, extra_path: tuple[str, ...]) -> ProgramFact | Absent:
        profile = self.profile
        if isinstance(profile, Absent) or profile.root.system == "image":
            return ABSENT
        root = self._root()
        here = root if isinstance(root, str) else ""
        toolchains = [grant.place.path for grant in self.grants if grant.purpose == TOOLCHAINS and grant.fd >= 0]
        roots = [path for path in toolchains if isinstance(path, str)]
        extra = (os.path.join(here, path) for path in extra_path if here or path.startswith("/"))
        self.held.search_path = search = (*extra, *bin_directories(roots), *self.look.lists["search-path"].names)
        system = ("/",) if profile.root.system == "host" else self.look.lists["system-tree"].names
        uid = on.worker_uid if isinstance(on.worker_uid, int) else -1
        gids = {on.worker_gid} if isinstance(on.worker_gid, int) else set()
        gids |= set(os.getgroups()) if uid == self.look.uid else set()
        trees = Trees(workspace=root, search=search, visible=(*system, *roots))
        owner = on.mapped_owner if isinstance(on.mapped_owner, int) else None
        return program(self.declaration.argv, trees, Worker(uid=uid, gids=frozenset(gids), mapped=owner))

    def _root(self) -> str | Unknown | None:
        """Return the resolved path of the workspace's root; None where there is none."""
        path = self.place.path
        return path if isinstance(path, Unknown) or self.held.workspace >= 0 else None

    def _launcher(self, launchers: Mapping[str, tuple[str, ...]], always: tuple[str, ...]) -> dict[str, Any]:
        if isinstance(self.profile, Absent):
            return {"runtime": ABSENT, "image": ABSENT}
        root = self._root()
        fact, fd = runtime(self.look, self.profile, launchers, always, root if isinstance(root, str) else None)
        self.held.runtime = self.held.own(fd)
        return {"runtime": fact, "image": image(self.profile)}


def _any(value: Any) -> Any:
    return value
