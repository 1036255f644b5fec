"""What a plan means in the kernel's records, if bubblewrap did what the launcher is there to tell it. Pure.

The launcher says it in options; here it is said a second time, from the plan alone and in the kernel's terms, so that
whatever the launcher leaves out, adds or gets wrong is a difference. What stands here beside the plan is how
bubblewrap builds a root: its six device nodes, the links in ``/dev``, the flags of its file systems.

A plan says nothing of a place by leaving it out: what is seen and not expected is a difference as well
(``attestation``).
"""

from __future__ import annotations

from prespawn.policy.canonical import digest_bytes
from prespawn.policy.known import Absent
from prespawn.policy.record import Record

from .expectation import ANYTHING, AtMost, Below, OneOf, SameAs, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .plan import Bind, Plan

    Tree = dict[str, object]

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
CAPABILITY_SETS = ("inheritable", "permitted", "effective", "bounding", "ambient")
READ_ONLY, READ_WRITE, DIRECTORY = "read-only", "read-write", "directory"
HOME = "/home/worker"
WRITTEN = ("/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/passwd")
DEVICES = {"null": "1:3", "zero": "1:5", "full": "1:7", "random": "1:8", "urandom": "1:9", "tty": "5:0"}
DEVICE_LINKS = {
    "core": "/proc/kcore", "fd": "/proc/self/fd", "ptmx": "pts/ptmx", "stderr": "/proc/self/fd/2",
    "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
}  # fmt: skip
FALLBACK = ("erspan0", "gre0", "gretap0", "ip6_vti0", "ip6gre0", "ip6tnl0", "ip_vti0", "sit0", "tunl0")
"""Interfaces that some kernels put into every network namespace; they are down, or a route would lead to one."""

_INERT = Words(needed=("nodev", "nosuid"), tolerated=None)
_MAPPED = Words(needed=("idmapped", "nodev", "nosuid"), tolerated=None)
_PAGES = (1 << 12, 1 << 14, 1 << 16)  # a size is rounded up to the host's pages
_TOLD = (
    "bind-fd", "chdir", "dev", "file", "perms", "proc", "remount-ro", "ro-bind", "ro-bind-fd", "setenv", "size",
    "symlink", "tmpfs",
)  # fmt: skip


class Expected(Record):
    """``tree`` is compared place by place; below ``system`` directories the host's own mounts come along."""

    tree: Mapping[str, object]
    system: tuple[str, ...]


def expected(plan: Plan) -> Expected:
    """Return what is to be seen of a held run of this plan."""
    mounts = dict(_mounts(plan))
    tree: Tree = {
        "payload": {**_process(plan), **_payload(plan, mounts)},
        "init": {**_process(plan), **_init()},
        "mounts": mounts,
        "tree": _tree(plan, mounts),
        "network": {
            "interfaces": Words(needed=("lo",), tolerated=FALLBACK), "routes": Words(needed=(), tolerated=("lo",)),
        },
        "runtime": {"digest": ANYTHING if isinstance(plan.runtime.digest, Absent) else plan.runtime.digest},
        "sources": ANYTHING,
        "told": _told(plan),
    }  # fmt: skip
    if plan.filter is not None:
        tree["filter"] = {"program": digest_bytes(plan.filter.program)}
    return Expected(tree=tree, system=tuple(entry.path for entry in plan.system if entry.kind == "directory"))


def _process(plan: Plan) -> Tree:
    """Return what payload and init have in common."""
    who, process, limits = plan.identity, plan.profile.process, plan.limits
    return {
        "namespaces": dict.fromkeys(NAMESPACES, "own"),
        "uid_map": (f"{who.inner_uid} {who.uid} 1",),
        "gid_map": (f"{who.inner_gid} {who.gid} 1",),
        "setgroups": "deny",
        "uids": (who.uid,) * 4,
        "gids": (who.gid,) * 4,
        "groups": OneOf(values=("none", "the caller's")),
        "capabilities": dict.fromkeys(CAPABILITY_SETS, tuple(process.capabilities)),
        "no_new_privs": process.no_new_privs,
        "seccomp": {"mode": ANYTHING, "filters": 0} if plan.filter is None else {"mode": 2, "filters": 1},
        "process_group": "init's",
        "session": "init's",
        "terminal": 0,
        "cgroup": _cgroup(plan),
        "limits": {
            "processes": _at_most(limits.processes), "open_files": _at_most(limits.open_files),
            "file_size": _at_most(limits.file_size), "core": 0,
        },
    }  # fmt: skip


def _cgroup(plan: Plan) -> OneOf:
    """A bound on memory or processor time needs a group of the run's own."""
    bounded = plan.limits.memory is not None or plan.limits.cpu is not None
    return OneOf(values=("the run's own",) if bounded else ("the caller's", "below the caller's"))


def _at_most(limit: int | None) -> object:
    return ANYTHING if limit is None else AtMost(limit=limit)


def _payload(plan: Plan, mounts: Mapping[str, object]) -> Tree:
    granted = [entry.path for entry in plan.system if entry.kind == "directory"]
    granted += [bind.target for bind in _binds(plan)]
    checked = "planned" if isinstance(plan.program, Absent) else "checked"
    return {
        "pid": 2,
        "descriptors": ("0 stdin", "1 stdout", "2 stderr"),
        "environment": tuple(sorted({"HOME", "PATH", "PWD", *(key for key, _ in plan.environment)})),
        "executable": {"mount": Below(paths=tuple(granted)), "identity": ANYTHING},
        "program": OneOf(values=(checked, "interpreted")),
        "cwd": plan.cwd,
        "root": "/",
        "other_values": (),
        "hostname": ANYTHING,
        "max_user_namespaces": ANYTHING,
        "parent_death_signal": ANYTHING,
    }


def _init() -> Tree:
    return {
        "pid": 1,
        "descriptors": ("0 stdin", "1 stdout", "2 stderr", "anon_inode:[eventfd]"),
        "environment": (),
        "program": "the runtime",
    }


def _told(plan: Plan) -> Tree:
    """Return what the runtime is told: each of these, and beside them only what builds the root."""
    told: Tree = dict.fromkeys(_TOLD, ANYTHING)
    told |= dict.fromkeys([f"unshare-{name}" for name in ("user", "pid", "net", "ipc", "uts", "cgroup")], 1)
    told |= {
        "disable-userns": 1,
        "new-session": 1,
        "die-with-parent": 1,
        "json-status-fd": 1,
        "cap-drop": ("ALL",),
        "dir": 1,
    }
    told |= {"uid": (str(plan.identity.inner_uid),), "gid": (str(plan.identity.inner_gid),), "hostname": (plan.run_id,)}
    return told if plan.filter is None else {**told, "seccomp": 1, "filter": ANYTHING}


# -- the file system


def _binds(plan: Plan) -> Iterator[Bind]:
    yield from plan.toolchains
    if plan.workspace is not None:
        yield plan.workspace


def _mounts(plan: Plan) -> Iterator[tuple[str, object]]:
    yield "/", _tmpfs(READ_ONLY, None, "0755")
    for entry in plan.system:
        if entry.kind == "directory":
            yield entry.path, bound(READ_ONLY, SameAs(branch="sources", leaf=entry.path))
    yield "/proc", _kernels("proc", ("nodev", "noexec", "nosuid"))
    yield "/dev", _tmpfs(READ_ONLY, None, "0755")
    for name, number in DEVICES.items():
        flags = Words(needed=("nosuid",), tolerated=None)
        yield f"/dev/{name}", {"access": ANYTHING, "flags": flags, "kind": ANYTHING, "identity": f"character {number}"}
    yield "/dev/pts", _kernels("devpts", ("noexec", "nosuid"))
    yield "/dev/shm", _tmpfs(READ_WRITE, plan.limits.shm, "1777")
    yield "/tmp", _tmpfs(READ_WRITE, plan.limits.tmp, "1777")
    yield HOME, _tmpfs(READ_WRITE, plan.limits.home, "0700")
    for bind in _binds(plan):
        access, identity = READ_WRITE if bind.writable else READ_ONLY, f"{bind.device}:{bind.inode}"
        yield bind.target, bound(access, identity, mapped=bind.mapped is not None)
    if plan.workspace is not None:
        for path in plan.read_only:
            target = f"{plan.workspace.target}/{path}"
            same = SameAs(branch="sources", leaf=target)
            yield target, bound(READ_ONLY, same, mapped=plan.workspace.mapped is not None)


def bound(access: str, identity: object, *, mapped: bool = False) -> Tree:
    """Return what is expected of a directory or file of the host that is mounted: without setuid and devices."""
    return {"access": access, "flags": _MAPPED if mapped else _INERT, "kind": ANYTHING, "identity": identity}


def _tmpfs(access: str, size: int | None, mode: str) -> Tree:
    sizes = None if size is None else OneOf(values=tuple(sorted({-(-size // page) * page for page in _PAGES})))
    return {
        "access": access, "flags": _INERT, "kind": "tmpfs", "identity": ANYTHING, "mode": mode, "size": sizes,
    }  # fmt: skip


def _kernels(kind: str, flags: tuple[str, ...]) -> Tree:
    return {
        "access": READ_WRITE, "flags": Words(needed=flags, tolerated=None), "kind": kind, "identity": ANYTHING,
    }  # fmt: skip


def _tree(plan: Plan, mounts: Mapping[str, object]) -> Tree:
    """Return every entry of every tmpfs that is no mount itself."""
    tree: Tree = dict.fromkeys(WRITTEN, "file 0444")
    tree |= {f"/dev/{name}": f"link {text}" for name, text in DEVICE_LINKS.items()}
    for entry in plan.system:
        if entry.kind != "directory":
            tree[entry.path] = f"link {entry.link}" if entry.kind == "link" else "file 0444"
    if not isinstance(plan.zoneinfo, Absent):
        tree["/etc/localtime"] = f"link {plan.zoneinfo}"
    if plan.workspace is not None and plan.alias is not None and plan.alias != plan.workspace.target:
        tree[plan.alias] = f"link {plan.workspace.target}"
    for path in (*tree, *mounts):
        for parent in _parents(path):
            if parent not in mounts and _is_scratch(parent, mounts):
                tree.setdefault(parent, DIRECTORY)
    return tree


def _parents(path: str) -> Iterator[str]:
    while (path := path.rpartition("/")[0]) != "":
        yield path


def _is_scratch(path: str, mounts: Mapping[str, object]) -> bool:
    """Say whether a path lies on a tmpfs of the sandbox, not in what the host mounts there."""
    above = next(parent for parent in (*_parents(path), "/") if parent in mounts)
    of = mounts[above]
    return isinstance(of, dict) and of["kind"] == "tmpfs"
