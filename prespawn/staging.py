"""What a root parent mounts for one run, in a mount namespace that only the run's thread has.

An unprivileged worker's bubblewrap cannot walk to a workspace below a home of mode 0700, nor to a bubblewrap in a venv
there; and what it resolves by name could be exchanged. So each source is copied as a mount from its descriptor, loses
setuid and devices, and is attached below one neutral directory. The host never sees these mounts; they are gone with
the thread and bubblewrap, and nothing is left to clean up after any crash.

What root itself owns is mapped: on its mount, and nowhere else, root's files are shown as the worker's. So the worker
reads and writes them without being root, and what it makes there is root's on the host.

After ``stage`` the calling thread must open nothing by a name below ``PLACE``: there it sees the staging.
"""

from __future__ import annotations

import os
from stat import S_ISDIR

from prespawn.policy.errors import HostError
from prespawn.policy.spelling import shown

from . import kernel
from .idmap import NEEDED, Mapping, namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.checker.plan import Identity
    from prespawn.launchers.invocation import Source

    from .descriptors import Descriptors

PLACE = "/mnt"
_ROOM = "mode=0755,size=64k,nr_inodes=1k"  # it holds mount points and nothing else
_INERT = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV


def stage(
    sources: tuple[Source, ...], pins: dict[int, int], worker: Identity, program: str, opened: int, own: Descriptors
) -> tuple[dict[int, int], str]:
    """Attach sources and program, and return the staged sources' descriptors by number and the program's new path.

    ``opened`` is a descriptor of the program, or -1: then it is looked up. ``HostError`` ``staging-refused`` if this
    root may not mount, ``idmap-refused`` and ``identity-switch-missing`` if it cannot map what is to be mapped.
    """
    try:
        trees = {source.descriptor: _source(source, pins[source.descriptor], worker, own) for source in sources}
        parts = {path: _tree(fd, False, own) for path, fd in _program_parts(program, opened, own).items()}
        kernel.private_mounts()
        kernel.mount_tmpfs(PLACE, _ROOM)
        for number, tree in trees.items():
            _attach(tree, f"{PLACE}/{number}")
        for path, tree in parts.items():
            _attach(tree, f"{PLACE}/{path}")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        found = f"root cannot mount the run's sources for another user: {reason}"
        raise HostError("staging-refused", f"{found}; {_NEEDED}") from error
    return trees, f"{PLACE}/{_kept(program)}"


_NEEDED = "allowed here: CAP_SYS_ADMIN and Linux 5.12 or later, or a parent that is the workspace's owner"


def _source(source: Source, fd: int, worker: Identity, own: Descriptors) -> int:
    """Return a source as a detached mount, with its owner's files as the worker's where the plan says so."""
    if source.mapped is None:
        return _tree(fd, source.writable, own)
    mapping = namespace(Mapping(owner=source.mapped, shown=worker.uid))
    try:
        return _tree(fd, source.writable, own, mapping)
    except OSError as error:
        found = f"`{shown(source.path)}` cannot be mounted with root's files as the worker's"
        raise HostError("idmap-refused", f"{found}: {(error.strerror or str(error)).lower()}; {NEEDED}") from error


def _tree(fd: int, writable: bool, own: Descriptors, mapping: int | None = None) -> int:
    tree = own.own(kernel.clone_mount(fd))
    kernel.set_mount_attributes(tree, _INERT if writable else _INERT | kernel.MOUNT_ATTR_RDONLY, mapping)
    return tree


def _program_parts(program: str, opened: int, own: Descriptors) -> dict[str, int]:
    """Return what the program consists of, by its place below ``PLACE``: itself, and the libraries of a wheel.

    A wheel's program looks for them beside its package (``$ORIGIN/../../<package>.libs``), so its last three components
    are kept.
    """
    fd = opened if opened >= 0 else own.own(os.open(program, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
    parts = {_kept(program): fd}
    package = os.path.dirname(os.path.dirname(program))
    if os.path.isdir(f"{package}.libs"):
        libraries = os.open(f"{package}.libs", os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
        parts[f"runtime/{os.path.basename(package)}.libs"] = own.own(libraries)
    return parts


def _kept(program: str) -> str:
    parts = [part for part in program.split("/") if part]
    if len(parts) < 3 or ".." in parts:
        message = f"`{shown(program)}` cannot be staged; allowed here: a program at least two directories deep"
        raise HostError("staging-refused", message)
    return "/".join(("runtime", *parts[-3:]))


def _attach(tree: int, target: str) -> None:
    """Make the mount point, which every user can walk to whatever the umask says, and attach the mount there."""
    _directory(target[: target.rindex("/")])
    if S_ISDIR(os.fstat(tree).st_mode):
        _directory(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
    kernel.attach_mount(tree, target)


def _directory(path: str) -> None:
    """Make a directory below ``PLACE``, and those that are missing above it."""
    if path == PLACE:
        return
    _directory(path[: path.rindex("/")])
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    os.chmod(path, 0o755)
