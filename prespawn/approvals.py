"""Approvals on disk: written once by whoever approves, believed only from where the site says and of whom it says.

One file an approval, ``<id>.json``, canonical ``approval/v1``, in the site's approvals directory. The directory and
every file in it belong to the ``owner`` that the site names, or to the caller or root where it names none; nobody else
can write them, none of it lies inside a workspace, and no file is a link. What fails that is not an approval that is
weighed and found wanting: it is refused aloud (``policy-untrusted-source``).

The id begins with the declaration's digest, so that the approvals of one declaration are found by name. Whether one
has been used is the registry's to say, whether it fits the checker's. Taking the file away takes the approval back.
"""

from __future__ import annotations

import errno
import os
import stat

from prespawn.checker.approval import FORMAT, Approval, document
from prespawn.policy.canonical import canonical
from prespawn.policy.codec import decode
from prespawn.policy.errors import HostError
from prespawn.policy.format import FIRST_KEY
from prespawn.policy.reader import DEFAULT_BOUNDS, read, read_error
from prespawn.policy.spelling import is_run_id

from .durable import sweep, write_new
from .site_file import refuse_inside
from .trusted_path import Walk, judged, kind, made, named, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from .trusted import Trusted

_END = ".json"
_SHOWN = 12  # hex digits of the declaration's digest that an id begins with
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def approval_id(declaration_digest: str) -> str:
    """Return a fresh id for an approval of a declaration."""
    return f"{_beginning(declaration_digest)}{os.urandom(8).hex()}"


class Approvals:
    """The open directory of a site's approvals; a context manager. ``path`` is for messages."""

    __slots__ = ("_directory", "_owner", "path")

    def __init__(self, directory: int, path: str, owner: int | None) -> None:
        self._directory, self.path, self._owner = directory, path, owner

    @classmethod
    def open(cls, trusted: Trusted, *, create: bool = False) -> Self | None:
        """Open the directory, None where there is none; with ``create`` it is made, unless it is another owner's.

        ``ReadError`` ``policy-untrusted-source`` if somebody else could have put a file there.
        """
        from .trusted import expanded

        rule = trusted.policy.site.approvals
        path = os.path.join(trusted.state_dir, rule.directory)
        try:
            with Walk(path, follow_last=False, sticky=True) as way:
                if way.missing and not (create and rule.owner in (None, os.geteuid())):
                    return None
                _refuse(way, path, rule.owner)
                roots = (expanded(workspace.root) for workspace in trusted.policy.site.workspaces.values())
                refuse_inside(path, way.above, roots, "outside every workspace")
                directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=way.descriptor)
                directory = made(directory, way.path, way.missing)
        except (OSError, ValueError) as error:
            raise _unreadable(path, f"{reason(error)}; allowed: a directory of approvals, or none") from None
        return cls(directory, path, rule.owner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._directory)

    def write(self, approval: Approval) -> str:
        """Write an approval, durable when this returns, and return its path; ``HostError`` ``approval-not-written``.

        It is its owner's alone, but where the site names an owner: then others may read it, the driver among them.
        """
        path = os.path.join(self.path, f"{approval.id}{_END}")
        mode = 0o600 if self._owner is None else 0o644
        try:
            write_new(self._directory, f"{approval.id}{_END}", canonical(document(approval)).encode("ascii"), mode)
        except OSError as error:
            allowed = f"a directory that uid {os.geteuid()} can write, with space left"
            raise HostError("approval-not-written", f"{named(path)}: {reason(error)}; allowed: {allowed}") from None
        return path

    def read(self, wanted: str) -> Approval | None:
        """Return the approval of an id, or of a path that leads here; None if it was never given or taken back.

        ``ReadError`` (``policy-…``) for what is no approval, or not to be believed.
        """
        id = self._id(wanted)
        if not is_run_id(id):
            allowed = "`ID` as `prespawn approve` printed it, or its file"
            raise read_error("value", f"is no approval's id; allowed: {allowed}", source=wanted, family="policy")
        path = os.path.join(self.path, f"{id}{_END}")
        try:
            data, owner = self._content(f"{id}{_END}", path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, f"{reason(error)}; allowed: a regular file that can be read") from None
        return _approval(data, path, id, owner)

    def of(self, declaration_digest: str) -> Iterator[Approval]:
        """Yield every approval whose id says that it is of this declaration, the latest first."""
        beginning = _beginning(declaration_digest)
        try:
            names = [name for name in os.listdir(self._directory) if name.startswith(beginning) and _is_file(name)]
        except OSError as error:
            raise _unreadable(self.path, f"{reason(error)}; allowed: a directory that can be read") from None
        found = (self.read(name.removesuffix(_END)) for name in names)
        yield from sorted(
            (one for one in found if one is not None), key=lambda one: (one.approved_at, str(one.id)), reverse=True
        )

    def sweep(self) -> tuple[str, ...]:
        """Take away what a killed writer has left unfinished, where it is the caller's to take."""
        if self._owner not in (None, os.geteuid()):
            return ()
        try:
            return sweep(self._directory)
        except OSError as error:
            raise HostError("approval-not-written", f"{named(self.path)}: {reason(error)}") from None

    def _id(self, wanted: str) -> str:
        """Return the id that is meant; a path must lead into this very directory."""
        directory, slash, name = wanted.rpartition("/")
        if not slash:
            return name.removesuffix(_END)
        try:
            here = os.path.samestat(os.stat(directory or "/"), os.fstat(self._directory))
        except (OSError, ValueError):
            here = False
        if not here:
            message = f"lies outside {named(self.path)}; allowed: an approval in the directory that the site names"
            raise read_error("untrusted-source", message, source=wanted, family="policy")
        return name.removesuffix(_END)

    def _content(self, name: str, path: str) -> tuple[bytes, int]:
        """Return the bytes of a file and whose it is, opened only after it proved to be one that may be believed."""
        looked_at = os.open(name, _LOOK, dir_fd=self._directory)
        try:
            status = os.fstat(looked_at)
            if not stat.S_ISREG(status.st_mode):
                raise _untrusted(path, f"is {kind(status)}; allowed: a regular file")
            _refuse_status(status, path, self._owner)
            if status.st_size > DEFAULT_BOUNDS.bytes:
                raise _unreadable(path, f"{status.st_size} bytes; allowed: up to {DEFAULT_BOUNDS.bytes}")
            file = os.open(f"/proc/self/fd/{looked_at}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(looked_at)
        with open(file, "rb") as reading:
            return reading.read(DEFAULT_BOUNDS.bytes + 1), status.st_uid


def _approval(data: bytes, path: str, id: str, owner: int) -> Approval:
    """Return the approval of a file's bytes, which says of itself what the file shows."""
    from prespawn.policy.catalogue import table
    from prespawn.policy.loader import approval_faults
    from prespawn.policy.shape import check, normalise

    read_in = read(data, source=path, family="policy", syntax="json")
    for wrong in check(read_in, table(FORMAT)):
        raise wrong
    plain = normalise(read_in.value, table(FORMAT))
    for fault in approval_faults(read_in, plain):
        raise fault
    for key, shown in (("id", id), ("uid", owner)):
        if plain[key] != shown:
            raise read_in.error("value", f"`{key}` is `{plain[key]}`, and the file shows `{shown}`", key)
    return decode(Approval, {name: value for name, value in plain.items() if name != FIRST_KEY}, unknowns=False)


def _is_file(name: str) -> bool:
    return name.endswith(_END)


def _beginning(declaration_digest: str) -> str:
    return f"{declaration_digest.partition(':')[2][:_SHOWN]}-"


def _refuse(way: Walk, path: str, owner: int | None) -> None:
    """Refuse a way on which somebody else could change something; the last directory is the owner's."""
    last = not way.missing and way.fault is not None and way.fault.path == way.path
    if way.fault and not last:
        raise _untrusted(path, str(way.fault))
    if not way.missing:
        if not stat.S_ISDIR(way.status.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        _refuse_status(way.status, path, owner)


def _refuse_status(status: os.stat_result, path: str, owner: int | None) -> None:
    if owner is not None and status.st_uid == owner and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return
    if owner is not None and status.st_uid != owner:
        raise _untrusted(path, f"belongs to uid {status.st_uid}; allowed: uid {owner}, `approvals.owner` of the site")
    if fault := judged(status, path):
        raise _untrusted(path, str(fault))


def _unreadable(path: str, message: str) -> Exception:
    return read_error("unreadable", message, source=path, family="policy")


def _untrusted(path: str, message: str) -> Exception:
    return read_error("untrusted-source", message, source=path, family="policy")
