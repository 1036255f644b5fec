"""What a declaration selects from trusted configuration: by name, and nothing that is not there."""

from __future__ import annotations

from prespawn.policy.known import ABSENT, Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.policy.adapter import Adapter
    from prespawn.policy.bundle import Policy
    from prespawn.policy.profile import Profile
    from prespawn.policy.site import Site, Workspace

    from .declaration import Declaration


def profile_of(declaration: Declaration, policy: Policy) -> Profile | Absent:
    """Return the profile that the declaration names, or ``ABSENT``."""
    name = declaration.profile
    return policy.profiles.get(name, ABSENT) if isinstance(name, str) else ABSENT


def adapter_of(declaration: Declaration, policy: Policy) -> Adapter | Absent:
    """Return the adapter that the declaration names as ``name@revision``, or ``ABSENT``."""
    name = declaration.adapter
    return policy.adapters.get(name, ABSENT) if isinstance(name, str) else ABSENT


def workspace_name(declaration: Declaration, site: Site) -> str | None:
    """Return the name of the workspace: the declared one, or the only one that the site knows."""
    name = declaration.workspace
    if isinstance(name, Absent):
        return next(iter(site.workspaces)) if len(site.workspaces) == 1 else None
    return name if isinstance(name, str) and name in site.workspaces else None


def workspace_of(declaration: Declaration, site: Site) -> Workspace | None:
    """Return the workspace itself, or None where the site knows none of that name."""
    name = workspace_name(declaration, site)
    return None if name is None else site.workspaces[name]
