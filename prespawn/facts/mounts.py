"""The trees that trusted configuration grants beside the workspace: toolchains and leases.

Toolchains are followed to where they are, for what a name leads to is what a worker would see. Leases are not: they
lie below the lease root without a link, or they are no leases. Trees are compared by resolved components and by
identity, so neither a sibling with the same beginning nor a second mount of the same directory passes for another.
"""

from __future__ import annotations

import os

from prespawn.checker.facts import MountFact, Place
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.record import Record

from .look import is_within, unknown, why
from .places import SYSTEM, covers, expand, held_place, mounted_below, nothing_at, trusted_place
from .scan import scan
from .walk import descend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from prespawn.policy.site import Site, Workspace

    from .look import Look

TOOLCHAINS, LEASES = "toolchains", "leases"  # as the site's fields are called
_RUNTIME_SOCKET = "a container runtime's socket"


class Grant(Record):
    """One tree as it was opened: ``fd`` is -1 where nothing is, ``inside`` as in ``MountFact``."""

    name: str
    purpose: str
    place: Place
    inside: bool
    fd: int

    @property
    def words(self) -> str:
        """The tree in words, as messages name it."""
        return f"{self.purpose[:-1]} `{self.name}`"


def open_toolchains(look: Look, site: Site, names: Iterable[str]) -> tuple[Grant, ...]:
    """Open every toolchain that a workspace lists, in its order, and each tree once."""
    grants: list[Grant] = []
    for name in names:
        place: Any = unknown(f"the site has no toolchain `{name}`")
        fd = -1
        if name in site.toolchains:
            place, fd = trusted_place(look, site.toolchains[name])
        if fd >= 0 and any(_is_same(place, other.place) for other in grants):
            os.close(fd)
            continue
        grants.append(Grant(name=name, purpose=TOOLCHAINS, place=place, inside=ABSENT, fd=fd))  # type: ignore[arg-type]  # does not apply
    return tuple(grants)


def _is_same(place: Place, other: Any) -> bool:
    """Say whether two places are one at one path: a second mount of it elsewhere is another."""
    known = not isinstance(other, Unknown) and not isinstance(place.path, Unknown)
    return known and (place.path, place.device, place.inode) == (other.path, other.device, other.inode)


def open_leases(look: Look, site: Site, workspace: Workspace) -> tuple[Grant, ...]:
    """Open what a leased workspace consists of: ``workspace``, its root, and where it has one ``state``."""
    places = [("workspace", workspace.root)]
    if workspace.state is not None:
        places.append(("state", workspace.state))
    return tuple(_lease(look, site.lease_root, name, given) for name, given in places)


def _lease(look: Look, lease_root: str | None, name: str, given: str) -> Grant:
    place: Any
    inside: Any
    fd = -1
    path, root = expand(given), ABSENT if lease_root is None else expand(lease_root)
    if isinstance(path, Unknown) or isinstance(root, Unknown):
        place = inside = path if isinstance(path, Unknown) else root
    elif not isinstance(root, str) or not is_within(path.rstrip("/"), root.rstrip("/")) or ".." in path.split("/"):
        (place, fd), inside = trusted_place(look, given), False
    else:
        place, inside, fd = _below(look, root, path, given)
    return Grant(name=name, purpose=LEASES, place=place, inside=inside, fd=fd)


def _below(look: Look, root: str, path: str, given: str) -> tuple[Any, Any, int]:
    """Walk from the lease root to a lease; a link on the way ends it."""
    try:
        top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return why(error, root), why(error, root), -1
    try:
        found = descend(top, path[len(root.rstrip("/")) :].strip("/"))
    except OSError as error:
        return why(error, given), why(error, given), -1
    finally:
        os.close(top)
    if found.status is not None and not found.linked:
        inside = (found.status.st_dev, found.status.st_ino) != look.identity(root)  # the root itself is no lease
        place, fd = held_place(look, given, found.fd)
        return place, inside, fd
    if found.fd >= 0:
        os.close(found.fd)
    return nothing_at(given, path, "link" if found.linked else "missing"), not found.linked, -1


def mounts(
    look: Look, grants: tuple[Grant, ...], others: Mapping[str, Any], own: Mapping[str, str], system: tuple[str, ...]
) -> tuple[MountFact, ...]:
    """Return the facts of what was opened.

    ``others`` maps words to the places of trees that a worker may write and that must not be shared (the workspace,
    other runs' leases); ``own`` maps words to what belongs to the parent, and ``system`` are the
    pieces of the host that the worker's root repeats.
    """
    return tuple(_mount(look, grant, _beside(grant, grants, others), own, system) for grant in grants)


def _beside(grant: Grant, grants: tuple[Grant, ...], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a grant must not share a tree with: leases, and of two toolchains the one that comes first."""
    before = grants[: grants.index(grant)]
    trees = {
        other.words: other.place
        for other in grants
        if other is not grant and (other.purpose == LEASES or other in before)
    }
    return {**trees, **others}


def _mount(
    look: Look, grant: Grant, beside: Mapping[str, Any], own: Mapping[str, str], system: tuple[str, ...]
) -> MountFact:
    place: Any = grant.place
    if grant.fd < 0:
        nothing: Any = place if isinstance(place, Unknown) else ABSENT
        return MountFact(
            name=grant.name, purpose=grant.purpose, place=place, exposes=nothing, inside=grant.inside,
            overlaps=nothing, credentials=nothing,
        )  # fmt: skip
    exposes, credentials = _seen(look, grant, own)
    return MountFact(
        name=grant.name, purpose=grant.purpose, place=place, exposes=exposes, inside=grant.inside,
        overlaps=(exposes is ABSENT and _hides(look, place, system)) or _overlaps(look, place, beside),
        credentials=credentials,
    )  # fmt: skip


def _seen(look: Look, grant: Grant, own: Mapping[str, str]) -> tuple[Any, Any]:
    """Return what a tree exposes and which credentials it holds; a tree that is refused at its top is not walked."""
    place = grant.place
    if place.kind != "directory":
        return _socket(look, place) or ABSENT, ()
    found: Any = covers(look, place, own)
    if isinstance(found, Unknown):
        return found, found
    exposes = next(iter(found), None) or _held_socket(look, place)
    if exposes is not None:
        return exposes, ()
    listed = look.lists["credential-files"]
    lease = grant.purpose == LEASES
    # A toolchain ships certificates of authorities deep inside; a credential of its owner stands at the top.
    mounted: Any = mounted_below(look, place, grant.fd)
    if isinstance(mounted, Unknown) or mounted:
        return mounted if isinstance(mounted, Unknown) else f"holds a mount at `{mounted[0]}`", ()
    walked: Any = scan(grant.fd, look.most_entries, top=None if lease else listed, anywhere=listed if lease else None)
    return _found(look, place, walked), walked.named if lease else walked.top


def _found(look: Look, place: Place, walked: Any) -> Any:
    if isinstance(walked.sockets, Unknown):
        return walked.sockets
    sockets = look.lists["runtime-sockets"]
    for name in walked.sockets:
        runtime = sockets.holds(f"{place.path}/{name}") or sockets.holds(f"/{name}")
        return f"holds {_RUNTIME_SOCKET if runtime else 'a socket'} at `{name}`"
    return next((f"holds a setuid file at `{name}`" for name in walked.setuid), ABSENT)


def _socket(look: Look, place: Place) -> str | None:
    sockets = look.lists["runtime-sockets"]
    identity = (place.device, place.inode)
    if sockets.holds(place.path) or any(look.identity(name) == identity for name in sockets.names):
        return _RUNTIME_SOCKET
    return None


def _held_socket(look: Look, place: Place) -> str | None:
    """Return the words for a runtime's socket in a tree, found by the socket's own path: it may lie deep."""
    for name in look.lists["runtime-sockets"].names:
        if name.startswith("/") and look.identity(name) is not None:
            path = look.resolved(name)
            if look.holds(place.path, path):
                return f"holds {_RUNTIME_SOCKET} at `{os.path.relpath(path, place.path)}`"
    return None


def _hides(look: Look, place: Any, system: tuple[str, ...]) -> str | None:
    """Return the words for a tree that would lie over a piece of the system tree; one inside of it lies over itself."""
    path = place.path
    return SYSTEM if isinstance(path, str) and any(look.holds(path, name) for name in system) else None


def _overlaps(look: Look, place: Place, beside: Mapping[str, Any]) -> Any:
    """Return the words for the first other tree that is this one, holds it or lies in it."""
    lost: Any = ABSENT
    for words, other in beside.items():
        path = other.path
        if isinstance(path, Unknown):
            lost = path
        elif isinstance(path, str) and (look.holds(place.path, path) or look.holds(path, place.path)):
            return words
    return lost
