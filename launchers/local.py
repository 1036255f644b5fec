"""One plan as a process of the host: which program, which words, which variables, which limits. Pure.

A host process is checked before it starts and held by nothing afterwards: it shares files, network, processes and
devices with its user, and what it may do to them is what that user may. What is claimed is ``logical`` and no more. The
kernel is asked for what it gives to any process: a session and a process group of its own, no descriptors but three, no
new privileges, no core files, and every descendant in reach of the keeper that ends the run.

The environment is what stands in the plan and ``PATH``; no shell is anywhere on the way.
"""

from __future__ import annotations

from prespawn.policy.errors import HostError
from prespawn.policy.filters import NO_FILTER
from prespawn.policy.known import Absent
from prespawn.policy.record import Record
from prespawn.policy.spelling import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.checker.plan import Identity, Plan

NOT_COVERED = (
    "files outside the workspace", "the network", "other processes of the same user", "memory and processor time",
    "credentials that the user's files hold",
)  # fmt: skip


class LocalInvocation(Record):
    """What is to be started: ``argv`` with ``argv[0]`` as it was declared, ``program`` what that led to.

    ``identity`` is device and inode of the program as it was checked, ``workspace`` those of the directory that it
    starts in. ``rlimits`` are names as in ``setrlimit(2)``, soft and hard alike.
    """

    program: str
    identity: tuple[int, int]
    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    cwd: str
    workspace: tuple[int, int]
    user: Identity
    rlimits: tuple[tuple[str, int], ...]

    def __repr__(self) -> str:
        return f"LocalInvocation(program={self.program!r}, argv={len(self.argv)} words)"


def invocation(plan: Plan) -> LocalInvocation:
    """Return the invocation that a plan means.

    ``HostError``: ``privilege-host-uid-zero`` if the worker would be root, ``plan-not-expressible`` for a part of the
    plan that a host process could only leave out.
    """
    _refuse(plan)
    program, workspace = plan.program, plan.workspace
    assert workspace is not None and not isinstance(program, Absent)
    assert isinstance(program.path, str) and isinstance(program.device, int) and isinstance(program.inode, int)
    environment = (("PATH", ":".join(plan.search_path)), *plan.environment)
    if any("\0" in word for word in (*plan.argv, *(f"{key}={value}" for key, value in environment))):
        raise HostError("plan-not-expressible", "a value of the plan holds NUL, which no process can be given")
    return LocalInvocation(
        program=program.path,
        identity=(program.device, program.inode),
        argv=plan.argv,
        environment=environment,
        cwd=workspace.source,
        workspace=(workspace.device, workspace.inode),
        user=plan.identity,
        rlimits=tuple(_rlimits(plan)),
    )


def described(of: LocalInvocation) -> tuple[str, ...]:
    """Return the command line that an invocation amounts to, with each environment value replaced by ``…``."""
    return ("env", "-i", *(f"{key}=…" for key, _ in of.environment), of.program, *of.argv[1:])


def _rlimits(plan: Plan) -> Iterator[tuple[str, int]]:
    bounded = (("RLIMIT_NOFILE", plan.limits.open_files), ("RLIMIT_FSIZE", plan.limits.file_size))
    yield from ((name, value) for name, value in bounded if value is not None)
    yield "RLIMIT_CORE", 0  # hardening and not a bound: no image of a worker's memory is ever written


def _refuse(plan: Plan) -> None:
    if plan.identity.uid == 0:
        message = "the worker's uid on the host is `0`; allowed here: the uid of an ordinary user"
        raise HostError("privilege-host-uid-zero", message)
    for field, value, expressible in _expressed(plan):
        if value not in expressible:
            words = ", ".join(f"`{word}`" for word in expressible)
            message = f"{field} is `{shown(str(value))}`; the launcher `local` can express: {words}"
            raise HostError("plan-not-expressible", message)


def _expressed(plan: Plan) -> Iterator[tuple[str, object, tuple[object, ...]]]:
    profile, process, limits = plan.profile, plan.profile.process, plan.limits
    yield "launcher", plan.launcher, ("local",)
    yield "root.system", profile.root.system, ("host",)
    yield "network.mode", profile.network.mode, ("host",)
    yield "process.capabilities", process.capabilities, ((),)
    yield "process.no_new_privs", process.no_new_privs, (True,)
    yield "process.seccomp", process.seccomp, (NO_FILTER,)
    yield "process.user_namespaces", process.user_namespaces, ("allowed",)
    yield "workspace", plan.workspace is None, (False,)
    yield "program", isinstance(plan.program, Absent), (False,)
    for name in ("processes", "memory", "cpu", "tmp", "home", "shm"):
        yield f"limits.{name}", getattr(limits, name), (None,)
