"""User namespaces that say how the ids of a file system are shown on an idmapped mount.

Such a namespace has no process in it: it is a pair of numbers in a form that ``mount_setattr(2)`` takes. It has to be
made by a process that has one thread, so a small one is started for it, held by its pipes until its maps are written,
and gone when this returns. What stays is one descriptor for each pair, which serves every mount and run of this
process; it ends with it, whatever ends that.
"""

from __future__ import annotations

import _thread
import os
import select

from prespawn.policy.errors import HostError
from prespawn.policy.record import Record

from .descriptors import Descriptors
from .spawn import spawn

UNSHARE, ECHO = "/usr/bin/unshare", "/usr/bin/cat"
_WORD = b"unshared"
_PATIENCE = 10_000  # milliseconds; it takes one


class Mapping(Record):
    """``owner`` is the id that files have on their file system, ``shown`` the one that they have on the mount; each is
    a user's and a group's."""

    owner: int
    shown: int


class _Known(Record):
    """A descriptor, and what it stood for when it was opened."""

    fd: int
    identity: tuple[int, int]


_known: dict[Mapping, _Known] = {}
_making = _thread.allocate_lock()


def namespace(mapping: Mapping) -> int:
    """Return a descriptor of the user namespace for a mapping; it belongs to this module.

    ``HostError``: ``identity-switch-missing`` if the programs are not there, ``idmap-refused`` if the kernel does not
    allow it.
    """
    with _making:
        found = _known.get(mapping)
        if found is None or _identity(found.fd) != found.identity:  # a program that closes what it did not open
            fd = _made(mapping)
            _known[mapping] = found = _Known(fd=fd, identity=_identity(fd))
        return found.fd


def _identity(fd: int) -> tuple[int, int]:
    try:
        status = os.fstat(fd)
    except OSError:
        return -1, -1
    return status.st_dev, status.st_ino


def _made(mapping: Mapping) -> int:
    with Descriptors() as own:
        theirs_in, ours_out = own.pipe()
        ours_in, theirs_out = own.pipe()
        try:
            vector = ("unshare", "--user", "--", ECHO)
            pid = spawn(UNSHARE, vector, {0: theirs_in, 1: theirs_out, 2: theirs_out})
        except OSError as error:
            found = f"root maps the ids of files through `{UNSHARE}`, which cannot be started"
            raise HostError("identity-switch-missing", f"{found}: {_words(error)}; install util-linux") from error
        try:
            own.close(theirs_in)
            own.close(theirs_out)
            _await(ours_in, ours_out)
            return _mapped(pid, mapping)
        except OSError as error:
            message = f"a user namespace for the mapping of ids could not be made: {_words(error)}"
            raise HostError("idmap-refused", f"{message}; {NEEDED}") from error
        finally:
            own.close(ours_out)
            own.close(ours_in)  # either of them ends it
            _reap(pid)


NEEDED = (
    "allowed here: Linux 5.12 or later, CAP_SYS_ADMIN of the host, a file system that idmapped mounts are made from"
    " (ext4, xfs, btrfs, tmpfs; not overlayfs), or a workspace that an ordinary user owns"
)


def _await(reading: int, writing: int) -> None:
    """Wait until the program answers, which it does in its new namespace; what else it says is why it has none."""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    try:
        os.write(writing, _WORD)
        answer = os.read(reading, 1 << 10) if poll.poll(_PATIENCE) else b""
    except BrokenPipeError:  # it has ended
        answer = os.read(reading, 1 << 10)
    if answer != _WORD:
        raise OSError(0, answer.decode("utf-8", "backslashreplace").strip() or "no answer")


def _mapped(pid: int, mapping: Mapping) -> int:
    line = f"{mapping.owner} {mapping.shown} 1".encode("ascii")
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{pid}/{name}", "wb", buffering=0) as file:
            file.write(line)
    return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:  # another thread of this program waits for any child, and has reaped ours
        return


def _words(error: OSError) -> str:
    return (error.strerror or "no reason given").lower()
