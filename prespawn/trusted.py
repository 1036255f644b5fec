"""Trusted data from where it lies: the shipped modules of literals, and a site's own files.

With the built-in site nothing is opened but the site's usual places; with a file, the file and the profiles beside it
are read through the strict loaders, and only from places that nobody else could have written.
"""

from __future__ import annotations

import os

from prespawn.blockers import shipped as blockers
from prespawn.blockers.rule import shipped_rules
from prespawn.policy import catalogue, shipped
from prespawn.policy.bundle import Policy
from prespawn.policy.canonical import digest
from prespawn.policy.errors import InputError
from prespawn.policy.reader import read, read_error
from prespawn.policy.record import Record
from prespawn.policy.wording import not_allowed

from . import site_file
from .trusted_path import reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from prespawn.blockers.rule import Rule
    from prespawn.policy.adapter import Adapter
    from prespawn.policy.loader import Loader
    from prespawn.policy.profile import Profile
    from prespawn.policy.shape import Node
    from prespawn.policy.site import Site
    from prespawn.policy.wording import Pointer

FORBIDDEN = "forbidden-fields"
PROFILES = "profiles"  # the folder of a site's own profiles, beside its file
SITE_BYTES = 1 << 18  # a site file larger than this is a mistake, and is not read


class Trusted(Record):
    """All that a gate is made from; ``site_file`` is None for the built-in site, ``state_dir`` has no ``~``."""

    policy: Policy
    rules: tuple[Rule, ...]
    remedies: Mapping[str, str]
    declaration_keys: Node
    forbidden: frozenset[str]
    state_dir: str
    site_file: str | None

    def reviewing(self, profile: str, vector: tuple[str, ...], toolchains: tuple[str, ...]) -> Trusted:
        """Return the same with one more reviewed vector for a profile, and absolute toolchains for every workspace."""
        site = self.policy.site
        typed = {f"typed-{number}": path for number, path in enumerate(toolchains, 1)}
        changed = site.replace(
            argv={**site.argv, profile: (*site.argv.get(profile, ()), vector)},
            toolchains={**site.toolchains, **typed},
            workspaces={
                name: workspace.replace(toolchains=tuple(dict.fromkeys((*workspace.toolchains, *typed))))
                for name, workspace in site.workspaces.items()
            },
        )
        digest = _digest(changed, self.policy.profiles)
        return self.replace(policy=self.policy.replace(site=changed, digest=digest))


def load(path: str | None, workspaces: Mapping[str, str]) -> Trusted:
    """Return what a gate is made from: the named site file, the one in the usual places, or the built-in site.

    ``workspaces`` are roots that the driver sets by name. ``ReadError`` for a file that is wrong or not trusted.
    """
    found = site_file.find(path, environ=os.environ, limit=SITE_BYTES)
    profiles = catalogue.profiles()
    if found is None:
        site = _built_in()
    else:
        site = read_site(found.data, found.path)
        profiles |= own_profiles(os.path.join(os.path.dirname(found.path), PROFILES))
        _refuse_unknown(site, found, profiles)
    site = _rooted(site, workspaces)
    if found is not None:
        site_file.refuse_inside(found.path, found.above, (expanded(one.root) for one in site.workspaces.values()))
    policy = _policy(site, profiles)
    return Trusted(
        policy=policy,
        rules=shipped_rules(policy.lists),
        remedies={id: rule["remedy"] for id, rule in blockers.RULES.items()},
        declaration_keys=catalogue.table("declaration/v1"),
        forbidden=frozenset(policy.lists[FORBIDDEN].names),
        state_dir=expanded(site.state_dir),
        site_file=None if found is None else found.path,
    )


def read_site(data: bytes, path: str) -> Site:
    """Return the site of a file's bytes; ``ReadError`` with its place."""
    return loader().site(read(data, source=path, family="policy", syntax="yaml"))


def _refuse_unknown(site: Site, found: site_file.SiteFile, profiles: Mapping[str, Profile]) -> None:
    """Refuse a profile that the site names and that is neither shipped nor its own: it is known only where all are."""
    named: list[tuple[str, Pointer]] = [
        (entry.partition("@")[0], ("activated", index)) for index, entry in enumerate(site.activated)
    ]
    named += [(id, ("argv", id)) for id in site.argv]
    for id, at in named:
        if id not in profiles:
            document = read(found.data, source=found.path, family="policy", syntax="yaml")
            raise document.error("unknown-profile", not_allowed(at, id, profiles), *at, key=at[0] == "argv")


def own_profiles(folder: str) -> dict[str, Profile]:
    """Return the profiles of a site's folder, each of which may extend a shipped one and only narrow it."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".yaml"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        message = f"{reason(error)}; allowed: a directory of profiles that can be read, or none"
        raise read_error("unreadable", message, source=folder, family="policy") from None
    files = (site_file.find(os.path.join(folder, name), environ={}, limit=SITE_BYTES) for name in names)
    documents = [
        read(file.data, source=file.path, family="policy", syntax="yaml") for file in files if file is not None
    ]
    return loader().profiles(documents, catalogue.profiles())


def shipped_policy(profiles: Mapping[str, Profile] | None = None) -> Policy:
    """Return the shipped policy with the built-in site, and with further ``profiles``."""
    return _policy(catalogue.built_in_site(), {**(profiles or {}), **catalogue.profiles()})


def adapters(profiles: Mapping[str, Profile]) -> dict[str, Adapter]:
    """Return the shipped adapters; one that works with a profile works with what extends it, which is only narrower."""
    own = sorted(id for id in profiles if id not in shipped.PROFILES)
    if not own:
        return catalogue.adapters()
    return {
        id: adapter.replace(
            profiles=(
                *adapter.profiles,
                *(name for name in own if not _line(name, profiles).isdisjoint(adapter.profiles)),
            )
        )
        for id, adapter in catalogue.adapters().items()
    }


def _line(id: str | None, profiles: Mapping[str, Profile]) -> set[str]:
    """Return a profile's id and those of all that it extends."""
    line: set[str] = set()
    while id is not None and id in profiles and id not in line:
        line.add(id)
        id = profiles[id].extends
    return line


def loader() -> Loader:
    """Return the loader of trusted files, which knows the ids that nobody overrides."""
    return catalogue.loader(frozenset(blockers.RULES))


def expanded(path: str) -> str:
    """Return a path of the site with a leading ``~`` resolved from the password database, never from ``HOME``."""
    if path != "~" and not path.startswith("~/"):
        return path
    return (site_file.home() or "/nonexistent") + path[1:]


def _built_in() -> Site:
    """Return the built-in site, its state where the user keeps state."""
    site = catalogue.built_in_site()
    named = os.environ.get("XDG_STATE_HOME", "")
    home = site_file.state_home(os.environ) if named else None
    return site if home is None else site.replace(state_dir=os.path.join(home, "prespawn"))


def _rooted(site: Site, roots: Mapping[str, str]) -> Site:
    workspaces = dict(site.workspaces)
    for name, root in roots.items():
        if name not in workspaces:
            allowed = ", ".join(f"`{known}`" for known in sorted(workspaces))
            raise InputError("usage", f"the site has no workspace `{name}`; allowed here: {allowed}")
        workspaces[name] = workspaces[name].replace(root=_absolute(root))
    return site.replace(workspaces=workspaces)


def _absolute(root: str) -> str:
    try:
        return os.path.abspath(root)
    except OSError:
        raise InputError("usage", "the current directory is not there any more; name roots from `/` on") from None


def _digest(site: Site, profiles: Mapping[str, Profile]) -> str:
    own = {id: profile for id, profile in profiles.items() if id not in shipped.PROFILES}
    return digest([shipped.DIGEST, blockers.DIGEST, digest(site), digest(own)])


def _policy(site: Site, profiles: Mapping[str, Profile]) -> Policy:
    return Policy(
        site=site,
        profiles=profiles,
        adapters=adapters(profiles),
        levels=catalogue.levels(),
        lists=catalogue.named_lists(),
        digest=_digest(site, profiles),
    )
