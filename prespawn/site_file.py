"""Where the site comes from, and how files are read at all.

Owns the search for the site file and the test that nobody else could have written it (``trusted_path`` walks the way),
and the reading of every other input file: a regular file, its size looked at before a byte is read, nothing that can
block or that notices being opened. It leaves to others what the bytes mean.

The site file is looked for in this order, the first found wins, and nothing is merged:

1. the file that the caller names (``--site FILE``); then it must exist;
2. ``prespawn/site.yaml`` in the user's configuration directory: ``XDG_CONFIG_HOME`` if it is absolute and passes the
   trust test, else ``~/.config`` below the home that the password database names (``HOME`` is not asked);
3. ``/etc/prespawn/site.yaml``.

Neither the current directory nor a workspace is ever searched. A site file that is *found* and is not trusted is an
error, not a reason to go on: so is one below an ``XDG_CONFIG_HOME`` that does not pass. The file itself is never a
link, for a link's target is not what a reviewer of this directory sees.

Example::

    found = find(None, environ=os.environ)
    if found is not None:
        site = read_site(found.data, found.path)
        refuse_inside(found.path, found.above, (workspace.root for workspace in site.workspaces.values()))
"""

from __future__ import annotations

import os
import stat

from prespawn.policy.reader import DEFAULT_BOUNDS, read_error
from prespawn.policy.record import Record

from .trusted_path import Walk, kind, named, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from prespawn.policy.errors import ReadError
    from prespawn.policy.reader import Family

SYSTEM_DIRECTORY = "/etc"
NAME = "prespawn/site.yaml"
OUTSIDE = "a file outside every workspace; move it, or name another with `--site`"


class SiteFile(Record):
    """A trusted site file: its ``path`` free of links, its bytes, and device and inode of every directory above it."""

    path: str
    data: bytes
    above: frozenset[tuple[int, int]]

    def __repr__(self) -> str:  # a site holds environment values; a traceback must not
        return f"SiteFile(path={self.path!r})"


def find(
    given: str | None,
    *,
    environ: Mapping[str, str],
    inside_of: Iterable[str] = (),
    limit: int = DEFAULT_BOUNDS.bytes,
) -> SiteFile | None:
    """Return the site file, or nothing where there is none: the caller then uses the built-in site.

    ``given`` is the file that the caller names, ``environ`` the environment, ``inside_of`` roots that must not hold
    the file, ``limit`` its largest size in bytes. ``ReadError``: ``policy-untrusted-source`` if somebody else could
    have written it, ``policy-unreadable`` if it cannot be read.
    """
    for path in (given,) if given is not None else _places(environ):
        found = _trusted(path, limit)
        if found is not None:
            refuse_inside(found.path, found.above, inside_of)
            return found
    if given is not None:
        raise _unreadable(given, "no such file or directory; allowed: a site file; `prespawn init DIR` writes one")
    return None


def refuse_inside(path: str, above: Collection[tuple[int, int]], roots: Iterable[str], allowed: str = OUTSIDE) -> None:
    """Raise ``ReadError`` (``policy-untrusted-source``) if the way to a path leads through one of ``roots``.

    ``above`` are the directories on the way, as in ``Walk``; ``allowed`` says what may be done instead. Roots are
    compared by what they are, device and inode, so no spelling and no link hides one. One that does not exist holds
    nothing; one that cannot be looked at is refused.
    """
    for root in roots:
        try:
            status = os.stat(root)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            raise _untrusted(path, f"workspace root {named(root)} cannot be looked at: {reason(error)}") from None
        if (status.st_dev, status.st_ino) in above:
            raise _untrusted(path, f"lies inside the workspace root {named(root)}; allowed: {allowed}")


def config_home(environ: Mapping[str, str]) -> str | None:
    """Return the user's configuration directory, which need not exist; nothing for a user without a home."""
    return _own_directory(environ.get("XDG_CONFIG_HOME", ""), ".config", sticky=False)


def state_home(environ: Mapping[str, str]) -> str | None:
    """Return the directory for the user's state, as ``config_home``; it may lie below a sticky directory of root."""
    return _own_directory(environ.get("XDG_STATE_HOME", ""), ".local/state", sticky=True)


def home() -> str | None:
    """Return the caller's home as the password database has it, or nothing."""
    import pwd

    try:
        path = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return None
    return path if path.startswith("/") else None


def read_file(path: str, *, family: Family, limit: int = DEFAULT_BOUNDS.bytes) -> bytes:
    """Return the bytes of a regular file of at most ``limit`` bytes.

    For input that nobody trusts: links are followed, as the bytes are judged and not where they come from. Whatever
    else stands there (directory, FIFO, socket, device) is not opened. ``ReadError``: ``<family>-unreadable``.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            return _content(descriptor, path, family, limit)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"{reason(error)}; allowed: a regular file that can be read", family) from None


def _places(environ: Mapping[str, str]) -> Iterator[str]:
    named_by_environment = environ.get("XDG_CONFIG_HOME", "")
    own = config_home(environ)
    # An XDG directory that does not pass is looked into all the same: a site file there is refused aloud, not skipped.
    directories = [named_by_environment] if named_by_environment.startswith("/") else []
    directories += [own] if own is not None and own not in directories else []
    return (f"{directory}/{NAME}" for directory in (*directories, SYSTEM_DIRECTORY))


def _own_directory(named_by_environment: str, below_home: str, *, sticky: bool) -> str | None:
    if named_by_environment.startswith("/") and _passes(named_by_environment, sticky):
        return named_by_environment
    own = home()
    return None if own is None else os.path.join(own, below_home)


def _passes(path: str, sticky: bool) -> bool:
    try:
        with Walk(path, follow_last=True, sticky=sticky) as way:
            return way.fault is None and stat.S_ISDIR(way.status.st_mode)
    except (OSError, ValueError):
        return False


def _trusted(path: str, limit: int) -> SiteFile | None:
    try:
        with Walk(path, follow_last=False) as way:
            if way.missing:
                return None
            if way.fault and (way.fault.path != way.path or stat.S_ISREG(way.status.st_mode)):
                raise _untrusted(path, str(way.fault))
            if stat.S_ISLNK(way.status.st_mode):
                message = "is a symbolic link; allowed: the file itself"
                raise _untrusted(path, f"{message}; put the file here, or name the link's target with `--site`")
            data = _content(way.descriptor, path, "policy", limit)
            return SiteFile(path=way.path, data=data, above=frozenset(way.above))
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"{reason(error)}; allowed: a regular file that can be read") from None


def _content(looked_at: int, path: str, family: Family, limit: int) -> bytes:
    """Return the bytes of what an ``O_PATH`` descriptor points at, opened only after it proved to be a small file."""
    status = os.fstat(looked_at)
    if not stat.S_ISREG(status.st_mode):
        raise _unreadable(path, f"is {kind(status)}; allowed: a regular file", family)
    if status.st_size > limit:
        raise _too_large(path, f"{status.st_size} bytes", limit, family)
    descriptor = os.open(f"/proc/self/fd/{looked_at}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        data = _bytes(descriptor, limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:  # it grew, or it is one of the kernel's files, whose size says nothing
        raise _too_large(path, f"more than {limit} bytes", limit, family)
    return data


def _bytes(descriptor: int, most: int) -> bytes:
    parts = []
    while most > 0 and (part := os.read(descriptor, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _too_large(path: str, found: str, limit: int, family: Family) -> ReadError:
    return _unreadable(path, f"{found}; allowed: up to {limit}", family)


def _unreadable(path: str, message: str, family: Family = "policy") -> ReadError:
    return read_error("unreadable", message, source=path, family=family)


def _untrusted(path: str, message: str) -> ReadError:
    return read_error("untrusted-source", message, source=path, family="policy")
