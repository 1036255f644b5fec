"""Paths that nobody but the caller and root can change, walked by descriptor from ``/``.

Owns the trust test that the site file, the user's own directories and the state directory share: every directory on
the way belongs to the caller or root and is not writable by group or others, and so does every link that leads on.
Each name is opened relative to the directory before it and judged as what was opened, so what has passed is what is
used. It says what it saw; what a fault means, and its id, is the caller's.

Three decisions:

- *Links to directories are followed* if caller or root own them: on some systems ``/home`` or ``/var`` is one. The
  directory that holds the link and every one that it leads through are judged. Whether the last name may be a link,
  the caller says.
- *Sticky directories* (``/tmp``: writable by all, but nobody can rename what another owns) pass only where the caller
  asks for it and root owns them; what lies inside is judged by its own owner. On the way to a site file they never
  pass: whoever comes first puts the file there.
- *Writable by its group is writable by others*: who is in a group, tomorrow, is not seen from here. An access control
  list that lets others write shows in the same bits.
"""

from __future__ import annotations

import errno
import os
import stat

from prespawn.policy.errors import HostError
from prespawn.policy.record import Record
from prespawn.policy.spelling import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC  # O_PATH: no FIFO blocks, no device notices, no file lock is lost
_MOST_LINKS = 40  # the kernel's own number
_KINDS = {
    stat.S_IFREG: "a regular file",
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Fault(Record):
    """Something that a stranger could change: where, how it was found, what is allowed, what to do about it."""

    path: str
    found: str
    allowed: str
    remedy: str

    def __str__(self) -> str:
        return f"{named(self.path)} {self.found}; allowed: {self.allowed}; {self.remedy}"


class Walk:
    """A way as far as it exists; a context manager, which closes ``descriptor``.

    ``descriptor`` (``O_PATH``), ``status`` and ``path`` (free of links) are of the last thing that exists; ``missing``
    are the names after it; ``above`` has device and inode of every directory on the way; ``fault`` is the first thing
    on it that is not trusted, or nothing.
    """

    __slots__ = ("_sticky", "above", "descriptor", "fault", "missing", "path", "status")

    def __init__(self, path: str, *, follow_last: bool, sticky: bool = False) -> None:
        """Walk; a relative ``path`` is seen from the current directory.

        A name that does not exist ends the way. ``OSError`` is whatever else forbids to look, ``ValueError`` a name
        that no file can have.
        """
        if not path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        whole = path if path.startswith("/") else _from_here(path)
        self._sticky = sticky
        self.missing: tuple[str, ...] = ()
        self.above: list[tuple[int, int]] = []
        self.fault: Fault | None = None
        self.descriptor = -1
        try:
            self._enter(os.open("/", _LOOK), "/")
            self._go(_reversed_names(whole), follow_last)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor, once."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _go(self, names: list[str], follow_last: bool) -> None:
        links = 0
        while names:
            following = names.pop()
            try:
                descriptor = os.open(following, _LOOK, dir_fd=self.descriptor)
            except FileNotFoundError:
                self.missing = (following, *reversed(names))
                return
            path = os.path.dirname(self.path) if following == ".." else os.path.join(self.path, following)
            if _is_link(descriptor) and (names or follow_last):
                links += 1
                if links > _MOST_LINKS:
                    os.close(descriptor)
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                names += self._turn(descriptor, path)
            else:
                self._enter(descriptor, path)

    def _turn(self, link: int, path: str) -> list[str]:
        """Return the names that a link stands for, standing where they start; closes ``link``."""
        try:
            self.fault = self.fault or judged(os.fstat(link), path)
            target = os.readlink("", dir_fd=link)  # of the link that was judged, not of one put in its place
        finally:
            os.close(link)
        if target.startswith("/"):
            self._enter(os.open("/", _LOOK), "/")
        return _reversed_names(target)

    def _enter(self, descriptor: int, path: str) -> None:
        self.close()
        self.descriptor, self.path = descriptor, path
        self.status = os.fstat(descriptor)
        if stat.S_ISDIR(self.status.st_mode):
            self.above.append((self.status.st_dev, self.status.st_ino))
        self.fault = self.fault or judged(self.status, path, sticky=self._sticky)


def judged(status: os.stat_result, path: str, *, sticky: bool = False) -> Fault | None:
    """Return why a stranger could change what ``status`` was taken from; ``sticky`` as in the module's text."""
    caller, mode = os.geteuid(), stat.S_IMODE(status.st_mode)
    allowed = f"owner uid {caller} or 0" if caller else "owner uid 0"
    if status.st_uid not in (caller, 0):
        remedy = "use a path below directories of your own" if caller else "use a path that root alone owns"
        return Fault(path=path, found=f"belongs to uid {status.st_uid}", allowed=allowed, remedy=remedy)
    shared = mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not shared or stat.S_ISLNK(status.st_mode):
        return None
    if mode & stat.S_ISVTX and stat.S_ISDIR(status.st_mode) and status.st_uid == 0:
        if sticky:
            return None
        remedy = "use a directory of your own"
    else:
        remedy = f"run `chmod go-w {shown(path)}`, or use a directory of your own"
    who = "others" if shared & stat.S_IWOTH else "its group"
    return Fault(
        path=path,
        found=f"is writable by {who} (mode {mode:04o})",
        allowed=f"{allowed}, no write permission for group or others",
        remedy=remedy,
    )


def state_directory(path: str, *, create: bool) -> int:
    """Return an open descriptor of the state directory at ``path``; the caller closes it.

    With ``create`` what is missing of it is made, mode 0700, below directories that are trusted. ``HostError``:
    ``registry-not-parent-controlled`` where a stranger could change the directory or its way (sticky directories of
    root are fine above it, not for itself), ``registry-not-written`` where it cannot be opened or made.
    """
    try:
        with Walk(path, follow_last=True, sticky=True) as way:
            fault = way.fault or (None if way.missing else judged(way.status, way.path))
            if fault:
                raise HostError("registry-not-parent-controlled", f"state directory {named(path)}: {fault}")
            if way.missing and not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=way.descriptor)
            return made(directory, way.path, way.missing)
    except (OSError, ValueError) as error:
        allowed = f"a directory that uid {os.geteuid()} can write; make it, or name another `state_dir` in the site"
        message = f"state directory {named(path)}: {reason(error)}; allowed: {allowed}"
        raise HostError("registry-not-written", message) from None


def tell(directory: int) -> None:
    """Let whoever waits for a change below the state directory see that a row can be read now."""
    try:
        os.utime(directory)
    except OSError:  # nothing is lost: a follower looks once more by itself
        return


def made(directory: int, path: str, missing: tuple[str, ...]) -> int:
    """Return the descriptor of the last of ``missing``, each made where it is not there; closes ``directory``."""
    for following in missing:
        path = os.path.join(path, following)
        try:
            _make(directory, following)
            inner = os.open(following, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        finally:
            os.close(directory)
        directory = inner
        try:
            fault = judged(os.fstat(directory), path)  # in a sticky directory a stranger may have been faster
        except OSError:
            os.close(directory)
            raise
        if fault:
            os.close(directory)
            raise HostError("registry-not-parent-controlled", f"state directory {fault}")
    return directory


def _make(directory: int, following: str) -> None:
    try:
        os.mkdir(following, 0o700, dir_fd=directory)
    except FileExistsError:
        return
    os.fsync(directory)  # or a power failure takes the directory away, and every used run id with it


def kind(status: os.stat_result) -> str:
    """Return what ``status`` was taken from, in words."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "an unknown kind of file")


def named(path: str) -> str:
    """Return a path for a message: whole, on one line, in backticks."""
    return f"`{shown(path)}`"


def reason(error: OSError | ValueError) -> str:
    """Return in the system's words, lower case, why something could not be done."""
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return "no file can have this name"


def _from_here(path: str) -> str:
    """Return a relative path as an absolute one, its leading ``..`` taken off the current directory.

    The kernel names that directory without links, so its parents are the ones that its name says, and the way does not
    lead through it. A ``..`` further on is walked: what stands before it may be anybody's link.
    """
    here, names = os.getcwd(), [part for part in path.split("/") if part not in ("", ".")]
    while names[:1] == [".."]:
        here, names = os.path.dirname(here), names[1:]
    return "/".join((here, *names))


def _is_link(descriptor: int) -> bool:
    """Say whether a descriptor is of a link; closes it if that cannot be seen."""
    try:
        return stat.S_ISLNK(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise


def _reversed_names(path: str) -> list[str]:
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]
