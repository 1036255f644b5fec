"""The shipped policy as records, made from the generated literals of ``policy.shipped`` when first asked for.

What is here has been through ``policy.loader`` and was written down by ``python -m prespawn.compile``; a test holds
that it says what the YAML files say. Nothing is judged again, and neither YAML nor Cerberus is imported.
"""

from __future__ import annotations

from . import shipped
from .adapter import Adapter
from .codec import decode
from .levels import Levels
from .lists import NamedList
from .profile import Profile
from .site import Site, site_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .loader import Loader
    from .shape import Node


def profiles() -> dict[str, Profile]:
    """Return the shipped profiles by id."""
    return {id: decode(Profile, plain, unknowns=False) for id, plain in shipped.PROFILES.items()}


def adapters() -> dict[str, Adapter]:
    """Return the shipped adapters by id."""
    return {id: decode(Adapter, plain, unknowns=False) for id, plain in shipped.ADAPTERS.items()}


def levels() -> Levels:
    """Return the table of levels."""
    return decode(Levels, shipped.LEVELS, unknowns=False)


def built_in_site() -> Site:
    """Return the site that is used where none is given."""
    return site_of(shipped.SITES["built-in"])


def named_lists() -> dict[str, NamedList]:
    """Return the shipped lists by id."""
    return {id: decode(NamedList, plain, unknowns=False) for id, plain in shipped.LISTS.items()}


def table(name: str) -> Node:
    """Return the fast table of a format such as ``declaration/v1``."""
    node: Node = shipped.TABLES[name]
    return node


def loader(core: frozenset[str]) -> Loader:
    """Return the loader of trusted files; ``core`` are the ids of the core blockers."""
    from . import shipped_schemas
    from .format import Format
    from .loader import Loader

    formats = {
        name: Format(
            name=name,
            title=shipped_schemas.TITLES[name],
            fields=fields,
            table=shipped.TABLES[name],
            authority=shipped.AUTHORITY.get(name),
        )
        for name, fields in shipped_schemas.FIELDS.items()
    }
    return Loader(formats=formats, core=core)
