"""What is wrong with files of our own formats beyond their shape, as far as it can be seen without a host.

Trusted files are judged by the same named lists as runs are: a profile that allows ``LD_PRELOAD`` lets no run pass, and
whoever writes it should hear so before one is blocked. Paths are compared as they are spelled; what they lead to is a
question for the gate. A declaration is judged by the gate's own rules on facts that nobody has looked at (``unseen``),
under the most generous site that there could be: what is reported there is wrong everywhere.

Each finding is a blocker, with the place in the document, and has that blocker's id where it is one's hazard. It leaves
to others: shape and reading (``policy``), what stands beside the file (the caller says what is known), and all words.
"""

from __future__ import annotations

from prespawn.policy.canonical import digest
from prespawn.policy.known import Absent
from prespawn.policy.record import Record
from prespawn.policy.site import Pair
from prespawn.policy.spelling import is_run_id
from prespawn.policy.wording import place

from .check import Checker
from .facts import RuntimeFact
from .selection import profile_of
from .unseen import nobody_looked, unseen
from .verdict import Blocker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prespawn.blockers.rule import Rule
    from prespawn.policy.bundle import Policy
    from prespawn.policy.profile import Profile
    from prespawn.policy.site import Site
    from prespawn.policy.wording import Pointer

    from .declaration import Declaration
    from .facts import Facts

DANGLING = "policy-dangling-name"
REMEDIES = {DANGLING: "name one that is there, or take the name out"}
"""What to do about the hazards that are no blockers: a run never meets them, for what is not there is not given."""

_SITE_DECIDES = ("execution-preview-not-allowed", "execution-preview-interpreter")
"""Whether a shell or another interpreter is right is for the site to say, which may list the vector whole."""


class Finding(Record):
    """One thing wrong with a file: ``at`` points to it in the document, with ``key`` to the name of the key there."""

    at: Pointer
    key: bool
    blocker: Blocker


class Lint:
    """The judge of one set of files; ``policy`` has all profiles and adapters that are known beside them."""

    def __init__(self, policy: Policy, rules: Sequence[Rule]) -> None:
        self._policy, self._rules = policy, tuple(rules)
        self._by_id = {rule.id: rule for rule in rules}

    def profile(self, profile: Profile) -> Iterator[Finding]:
        """Yield what no run under a profile could pass with: its environment."""
        at: Pointer = ("environment", "fixed")
        for key, value in profile.environment.fixed.items():
            yield from self._key(key, (*at, key), True)
            yield from self._value(value, (*at, key))
        for index, key in enumerate(profile.environment.allowed_keys):
            yield from self._key(key, ("environment", "allowed_keys", index), False)

    def site(self, site: Site) -> Iterator[Finding]:
        """Yield what no run under a site could pass with, and names that lead nowhere."""
        for key, value in site.env.items():
            yield from self._key(key, ("env", key), True)
            yield from self._value(value, ("env", key))
        for name, path in site.toolchains.items():
            yield from self._place("mount-forbidden-source", path, ("toolchains", name))
        yield from self._workspaces(site)
        yield from self._names(site)

    def declaration(self, declaration: Declaration) -> Iterator[Finding]:
        """Yield the blockers that hold for a declaration under every site and on every host."""
        checker = Checker(self._policy.replace(site=self._generous(declaration)), self._rules)
        for blocker in checker.check(declaration, self._unseen(declaration)).blockers:
            if blocker.because == "fail" and not _may_be_right(blocker, declaration):
                key = blocker.id.startswith("request-field-")
                yield Finding(at=tuple(pointer(blocker.field)), key=key, blocker=blocker)

    # -- environment

    def _key(self, key: str, at: Pointer, is_key: bool) -> Iterator[Finding]:
        for id, name in (("env-key-loader", "env-loader"), ("env-key-host-exposure", "env-host-exposure")):
            if self._policy.lists[name].holds(key):
                yield self._found(id, key, at, key=is_key)
                return

    def _value(self, value: str, at: Pointer) -> Iterator[Finding]:
        shape = self._policy.lists["credential-shapes"].shape_of(value)
        if shape is not None:
            yield self._found("env-value-credential-shaped", f"a value that looks like {shape}", at)

    # -- places

    def _workspaces(self, site: Site) -> Iterator[Finding]:
        state = parts_of(site.state_dir)
        for name, workspace in site.workspaces.items():
            at: Pointer = ("workspaces", name, "root")
            yield from self._place("workspace-root-forbidden", workspace.root, at)
            root = parts_of(workspace.root)
            if root and (_holds(root, state) or _holds(state, root)):
                found = f"{workspace.root}, one tree with state_dir"
                yield self._found("registry-not-parent-controlled", found, at)

    def _place(self, id: str, path: str, at: Pointer) -> Iterator[Finding]:
        forbidden = self._forbidden(parts_of(path))
        if forbidden is not None:
            yield self._found(id, f"{path}: {forbidden}", at)

    def _forbidden(self, parts: Sequence[str]) -> str | None:
        """Return why a tree that is spelled so can be given to no worker, or None."""
        mounts, sockets = self._policy.lists["forbidden-mounts"], self._policy.lists["runtime-sockets"]
        path = "/".join(parts).replace("//", "/", 1)
        if list(parts) == ["~"] or (parts[:2] == ("/", "home") and len(parts) == 3):
            return "a home directory"
        for name in (*mounts.names, *sockets.names) if parts else ():
            if _holds(parts, parts_of(name)):
                return f"it is or holds {name}"
        inside = next((prefix for prefix in mounts.prefixes if path.startswith(prefix)), None)
        ends = next((suffix for suffix in (*sockets.suffixes, *mounts.suffixes) if path.endswith(suffix)), None)
        return f"it lies in {inside}" if inside else f"it ends with {ends}" if ends else None

    # -- names

    def _names(self, site: Site) -> Iterator[Finding]:
        profiles, adapters = self._policy.profiles, self._policy.adapters
        for name, workspace in site.workspaces.items():
            for index, tool in enumerate(workspace.toolchains):
                yield from self._name(tool, site.toolchains, ("workspaces", name, "toolchains", index))
        for index, entry in enumerate(site.activated):
            yield from self._activated(entry, ("activated", index))
        for index, pair in enumerate(site.pairs):
            yield from self._name(pair.adapter, adapters, ("pairs", index, "adapter"))
            yield from self._name(pair.profile, profiles, ("pairs", index, "profile"))
        for caller, profile in site.callers.items():
            yield from self._name(profile, profiles, ("callers", caller))
        for profile in site.argv:
            yield from self._name(profile, profiles, ("argv", profile), key=True)

    def _activated(self, entry: str, at: Pointer) -> Iterator[Finding]:
        id, pinned, _ = entry.partition("@")
        yield from self._name(id, self._policy.profiles, at)
        if pinned and id in self._policy.profiles:
            allowed = f"{id}@{digest(self._policy.profiles[id])}"
            if entry != allowed:
                yield self._found("profile-not-activated", entry, at, allowed=(allowed,))

    def _name(self, name: str, known: Iterable[str], at: Pointer, *, key: bool = False) -> Iterator[Finding]:
        if name not in known:
            blocker = _blocker(DANGLING, "policy", at, name, tuple(sorted(known)))
            yield Finding(at=at, key=key, blocker=blocker)

    def _found(
        self, id: str, found: str, at: Pointer, *, allowed: tuple[object, ...] | None = None, key: bool = False
    ) -> Finding:
        rule = self._by_id[id]
        words = tuple(text.fill(None) for text in rule.allowed) if allowed is None else allowed
        return Finding(at=at, key=key, blocker=_blocker(id, rule.boundary, at, found, words))

    # -- what there could be

    def _generous(self, declaration: Declaration) -> Site:
        """Return a site that offers all that a site could offer to this declaration, but lists no vector."""
        site, profile, adapter = self._policy.site, declaration.profile, declaration.adapter
        (workspace,) = site.workspaces.values()
        name = "main" if isinstance(declaration.workspace, Absent) else declaration.workspace
        return site.replace(
            workspaces={name: workspace} if isinstance(name, str) else site.workspaces,
            activated=(str(profile),),
            pairs=(Pair(adapter=str(adapter), profile=str(profile)),),
        )

    def _unseen(self, declaration: Declaration) -> Facts:
        """Return facts that nobody has looked at, on a host that can give every evidence."""
        profile = profile_of(declaration, self._policy)
        if isinstance(profile, Absent):
            return unseen(declaration)
        runtime = nobody_looked(RuntimeFact, attests=True)
        return unseen(declaration).replace(runtime=runtime, evidence=("canary", *profile.activation.requires))


def _may_be_right(blocker: Blocker, declaration: Declaration) -> bool:
    """Say whether some site could make this right: it has profiles of its own, and reviewed vectors."""
    if blocker.id == "profile-unknown":
        return isinstance(declaration.profile, str) and is_run_id(declaration.profile)
    return blocker.id in _SITE_DECIDES


def pointer(field: str) -> Iterator[str | int]:
    """Yield the parts of a dotted place such as ``execution.argv[1]``."""
    for part in filter(None, field.split(".")):
        name, *indexes = part.replace("]", "").split("[")
        yield name
        yield from (int(index) if index.isdecimal() else index for index in indexes)


def parts_of(path: str) -> tuple[str, ...]:
    """Return the components of an absolute path, or one below ``~``, from its anchor on; nothing for any other.

    Nothing is looked for: ``..`` takes away what stands before it, and what would climb out of a home is that home.
    """
    anchor = "/" if path.startswith("/") else "~" if path == "~" or path.startswith("~/") else ""
    parts: list[str] = []
    for part in path.removeprefix(anchor).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return (anchor, *parts) if anchor else ()


def _holds(tree: Sequence[str], other: Sequence[str]) -> bool:
    return bool(other) and tuple(other[: len(tree)]) == tuple(tree)


def _blocker(id: str, boundary: str, at: Pointer, found: object, allowed: tuple[object, ...]) -> Blocker:
    return Blocker(
        id=id, boundary=boundary, field=place(at).strip("`"), found=found, allowed=allowed, because="fail", reason="",
        operator="never",
    )  # fmt: skip
