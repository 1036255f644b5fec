"""The worker's own root under bubblewrap: which trees, files and file systems it is made of, in which order.

The host's system tree read-only, synthetic accounts instead of the host's, kernel file systems, sized scratch space,
and what the plan grants. Nothing else is hidden, because nothing else is there: ``/root``, ``/run``, ``/var``, other
homes and ``/etc/shadow`` are simply absent. The root itself is closed by the last option.
"""

from __future__ import annotations

from prespawn.policy.known import Absent

from .invocation import File, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.checker.plan import Bind, Identity, Plan

    from .invocation import Option

ACCOUNT = "worker"
HOME = f"/home/{ACCOUNT}"


def sources(plan: Plan, numbers: Iterator[int]) -> Iterator[Source]:
    """Yield what is mounted by descriptor: toolchains, the workspace, and what lies read-only over it."""
    for bind in plan.toolchains:
        yield _source(bind, next(numbers))
    if plan.workspace is not None:
        root = _source(plan.workspace, next(numbers))
        yield root
        for path in plan.read_only:
            target = f"{root.target}/{path}"
            yield root.replace(
                descriptor=next(numbers), path=path, target=target, below=root.descriptor, identity=None, writable=False
            )


def files(plan: Plan, numbers: Iterator[int]) -> Iterator[File]:
    """Yield what is written: the accounts of the worker's own world, and copies of single files of the system tree."""
    for target, text in _accounts(plan.identity):
        yield File(descriptor=next(numbers), target=target, content=text.encode("ascii"), copied=None)
    for entry in plan.system:
        if entry.kind == "file":
            yield File(descriptor=next(numbers), target=entry.path, content=b"", copied=entry.path)


def root(plan: Plan, mounted: tuple[Source, ...], written: tuple[File, ...]) -> Iterator[Option]:
    """Yield the options that build the root, each with its arguments; later ones lie over earlier ones."""
    yield from _system(plan)
    for file in written:
        yield "--perms", "0444"
        yield "--file", str(file.descriptor), str(file.target)
    yield "--proc", "/proc"
    yield "--dev", "/dev"
    yield from _scratch("/dev/shm", "1777", plan.limits.shm)
    yield "--remount-ro", "/dev"  # otherwise an unsized writable tmpfs
    yield from _scratch("/tmp", "1777", plan.limits.tmp)
    yield "--dir", "/home"  # first: bubblewrap gives missing parents the closed mode of what is made below them
    yield from _scratch(HOME, "0700", plan.limits.home)
    for source in mounted:
        yield "--bind-fd" if source.writable else "--ro-bind-fd", str(source.descriptor), source.target
    alias = plan.alias
    if plan.workspace is not None and alias is not None and alias != plan.workspace.target:
        yield "--symlink", plan.workspace.target, alias
    yield "--remount-ro", "/"


def _system(plan: Plan) -> Iterator[Option]:
    for entry in plan.system:
        if entry.kind == "directory":
            yield "--ro-bind", entry.path, entry.path
        elif entry.kind == "link":
            yield "--symlink", str(entry.link), entry.path
    if not isinstance(plan.zoneinfo, Absent):
        yield "--symlink", plan.zoneinfo, "/etc/localtime"


def _scratch(target: str, mode: str, size: int | None) -> Iterator[Option]:
    if size is not None:
        yield "--size", str(size)
    yield "--perms", mode
    yield "--tmpfs", target


def _source(bind: Bind, number: int) -> Source:
    return Source(
        descriptor=number,
        path=bind.source,
        target=bind.target,
        below=None,
        identity=(bind.device, bind.inode),
        writable=bind.writable,
        mapped=bind.mapped,
    )


def _accounts(identity: Identity) -> Iterator[tuple[str, str]]:
    uid, gid = identity.inner_uid, identity.inner_gid
    yield "/etc/passwd", f"{ACCOUNT}:x:{uid}:{gid}:{ACCOUNT}:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    yield "/etc/group", f"{ACCOUNT}:x:{gid}:\nnogroup:x:65534:\n"
    yield "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"
    yield "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"
