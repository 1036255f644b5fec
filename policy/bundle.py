"""All trusted data of one decision in one value."""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .adapter import Adapter
    from .levels import Levels
    from .lists import NamedList
    from .profile import Profile
    from .site import Site


class Policy(Record):
    """Site, profiles and adapters by id, levels and lists; ``digest`` is taken over all of them."""

    site: Site
    profiles: Mapping[str, Profile]
    adapters: Mapping[str, Adapter]
    levels: Levels
    lists: Mapping[str, NamedList]
    digest: str
