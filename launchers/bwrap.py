"""One plan as a bubblewrap invocation: which options, which descriptors, which limits. Pure, and golden-tested.

Everything that bounds a run comes from the plan. What stands here is how bubblewrap is told: the order of the options
and the numbers of the descriptors (``bwrap_root`` has the root that they build). Opening the sources, comparing them,
spawning, and setting the limits that bubblewrap has no option for are ``prespawn``'s.

Rules kept here:

1. Each option stands with its arguments as one tuple, so that no value can become an option, whatever it begins with.
   A value with NUL would do it on the way (the options travel as NUL-separated bytes): it is refused.
2. Options go through a descriptor and never through the argument vector, which every user of the host can read. Only
   the worker's own command stands there, after ``--``.
3. Hardening comes first and the root is closed last, so a list that is cut short means a smaller world, not a freer
   one.
4. Sources are given by descriptor: bubblewrap resolves the name, mounts it and compares device and inode with the
   descriptor's. No ``-try`` option, nothing that is skipped when it is missing.
"""

from __future__ import annotations

from prespawn.policy.errors import HostError
from prespawn.policy.filters import NO_FILTER
from prespawn.policy.known import Absent
from prespawn.policy.spelling import shown

from .bwrap_root import HOME, files, root, sources
from .invocation import STATUS, File, Invocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.checker.plan import Plan

    from .invocation import Option

FIRST_FREE = STATUS + 1
_MOST_DESCRIPTORS = 1 << 10  # far above any plan; the numbers only have to end


def invocation(plan: Plan) -> Invocation:
    """Return the invocation that a plan means.

    ``HostError``: ``privilege-host-uid-zero`` if the worker would be the host's root, ``bwrap-missing`` if the plan
    knows no program, ``plan-not-expressible`` for a part of the plan that this launcher could only leave out.
    """
    _refuse(plan)
    numbers = iter(range(FIRST_FREE, _MOST_DESCRIPTORS))
    mounted, written = tuple(sources(plan, numbers)), tuple(files(plan, numbers))
    filters = tuple(_filters(plan, numbers))
    options = (*_hardening(plan, filters), *root(plan, mounted, written), *_environment(plan), ("--chdir", plan.cwd))
    _refuse_nul((*plan.argv, *(word for option in options for word in option)))
    return Invocation(
        program=str(plan.runtime.path),
        argv0="bwrap",  # the worker reads it in /proc/1/cmdline: a word, and no path of the host
        identity=plan.identity,
        options=options,
        command=plan.argv,
        sources=mounted,
        files=(*written, *filters),
        rlimits=tuple(_rlimits(plan)),
        bounds=tuple(_bounds(plan)),
    )


def described(of: Invocation) -> tuple[str, ...]:
    """Return the command line that an invocation amounts to, with each environment value replaced by ``…``."""
    options = ((*option[:2], "…") if option[0] == "--setenv" else option for option in of.options)
    return (of.program, *(word for option in options for word in option), "--", *of.command)


def _filters(plan: Plan, numbers: Iterator[int]) -> Iterator[File]:
    """Yield the filter of system calls, as the kernel takes it."""
    if plan.filter is not None:
        yield File(descriptor=next(numbers), target=None, content=plan.filter.program, copied=None)


def _hardening(plan: Plan, filters: tuple[File, ...]) -> Iterator[Option]:
    for namespace in ("user", "pid", "net", "ipc", "uts", "cgroup"):
        yield (f"--unshare-{namespace}",)
    yield "--uid", str(plan.identity.inner_uid)
    yield "--gid", str(plan.identity.inner_gid)
    yield "--hostname", plan.run_id  # a new UTS namespace begins with the host's name
    yield "--cap-drop", "ALL"
    yield ("--disable-userns",)
    yield ("--new-session",)
    yield ("--die-with-parent",)
    for file in filters:  # put on last, whatever stands behind it here: nothing that builds the root needs a hole in it
        yield "--seccomp", str(file.descriptor)
    yield "--json-status-fd", str(STATUS)


def _environment(plan: Plan) -> Iterator[Option]:
    yield "--setenv", "HOME", HOME
    yield "--setenv", "PATH", ":".join(plan.search_path)
    for key, value in plan.environment:
        yield "--setenv", key, value


def _rlimits(plan: Plan) -> Iterator[tuple[str, int]]:
    bounded = (
        ("RLIMIT_NPROC", plan.limits.processes),  # set inside its user namespace: of this sandbox alone, init included
        ("RLIMIT_NOFILE", plan.limits.open_files),
        ("RLIMIT_FSIZE", plan.limits.file_size),
    )
    yield from ((name, value) for name, value in bounded if value is not None)
    yield "RLIMIT_CORE", 0  # hardening and not a bound: no image of a worker's memory is ever written


def _bounds(plan: Plan) -> Iterator[tuple[str, int]]:
    """Yield the bounds on the whole run; where only its processes are counted, an rlimit of its namespace does that."""
    limits = plan.limits
    if limits.memory is None and limits.cpu is None:
        return
    for name, value in (("memory", limits.memory), ("cpu", limits.cpu), ("processes", limits.processes)):
        if value is not None:
            yield name, value


def _refuse(plan: Plan) -> None:
    """Started under the host's root bubblewrap is no sandbox; and what has no option would silently not be there."""
    if plan.identity.uid == 0:
        message = "the worker's uid on the host is `0`; allowed here: the uid of an ordinary user"
        raise HostError("privilege-host-uid-zero", message)
    if isinstance(plan.runtime.path, Absent):
        raise HostError("bwrap-missing", "the plan names no program `bwrap`; `apt install bubblewrap`")
    if plan.workspace is not None and plan.workspace.mapped is not None and plan.filter is None:
        message = "root's files would be the worker's, and no filter keeps it from leaving setuid files and devices"
        raise HostError("plan-not-expressible", f"{message}; allowed here: a profile with a filter of system calls")
    for field, value, expressible in _expressed(plan):
        if value not in expressible:
            words = ", ".join(f"`{word}`" for word in expressible)
            message = f"{field} is `{shown(str(value))}`; the launcher `bwrap` can express: {words}"
            raise HostError("plan-not-expressible", message)


def _expressed(plan: Plan) -> Iterator[tuple[str, object, tuple[object, ...]]]:
    profile, process = plan.profile, plan.profile.process
    yield "launcher", plan.launcher, ("bwrap",)
    yield "root.system", profile.root.system, ("read-only",)
    yield "network.mode", profile.network.mode, ("none",)
    yield "process.capabilities", process.capabilities, ((),)
    yield "process.no_new_privs", process.no_new_privs, (True,)
    yield "process.user_namespaces", process.user_namespaces, ("none",)
    yield "process.seccomp", process.seccomp, (NO_FILTER if plan.filter is None else plan.filter.name,)


def _refuse_nul(words: tuple[str, ...]) -> None:
    if any("\0" in word for word in words):
        raise HostError("plan-not-expressible", "a value of the plan holds NUL, which ends it on the way to `bwrap`")
