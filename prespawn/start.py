"""Starts bubblewrap for one invocation, up to the point where it waits for its options.

It opens what the invocation names, decides between starting directly and starting as another user (which needs staging
first), and turns the system's refusals into named errors. Nothing of the sandbox exists when it returns.
"""

from __future__ import annotations

import os

from prespawn.launchers.invocation import ARGUMENTS, STATUS
from prespawn.policy.errors import HostError
from prespawn.policy.record import Record
from prespawn.policy.spelling import shown

from .pins import pinned
from .spawn import SETPRIV, as_user, spawn
from .staging import stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from prespawn.launchers.invocation import Invocation

    from .cgroups import Groups
    from .descriptors import Descriptors


class Started(Record):
    """bubblewrap, waiting: its pid, and our ends of its pipes (all but ``options`` non-blocking)."""

    pid: int
    pidfd: int
    options: int
    status: int
    stdin: int
    stdout: int
    stderr: int


def start(told: Invocation, opened: Mapping[str, int], groups: Groups, own: Descriptors) -> Started:
    """Pin, stage where needed, enter the run's control groups, and spawn; for errors see ``supervise.run``."""
    switches = _switches(told)
    pins = pinned(told.sources, opened, own)
    given = {file.descriptor: _file(file.content, file.copied, own) for file in told.files}
    program, vector = told.program, (told.argv0, *told.vector)
    if switches:
        pins, staged = stage(told.sources, pins, told.identity, program, opened.get(program, -1), own)
        program, vector = SETPRIV, as_user(told.identity.uid, told.identity.gid, staged, told.vector)
    theirs, ours = _pipes(own)
    groups.enter()
    pid = _spawned(program, vector, {**theirs, **pins, **given})
    for fd in theirs.values():
        own.close(fd)
    return Started(pid=pid, pidfd=own.own(os.pidfd_open(pid)), **ours)


def _switches(told: Invocation) -> bool:
    """Whether the worker is another user than we are; only root can make that so."""
    us, them = (os.geteuid(), os.getegid()), (told.identity.uid, told.identity.gid)
    if us[0] == 0:
        return True
    if us != them:
        found = f"the worker is uid {them[0]}, gid {them[1]} and the parent uid {us[0]}, gid {us[1]}"
        raise HostError("identity-switch-missing", f"{found}; allowed here: the parent's own, or a parent that is root")
    return False


def _file(content: bytes, copied: str | None, own: Descriptors) -> int:
    if copied is None:
        return own.filled(content)
    try:
        return own.own(os.open(copied, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise _failed(f"`{shown(copied)}` could not be opened", error) from error


def _pipes(own: Descriptors) -> tuple[dict[int, int], dict[str, int]]:
    """Return the worker's ends by number and ours by name."""
    stdin, stdout, stderr = own.pipe(), own.pipe(), own.pipe()
    options, status = own.pipe(), own.pipe()
    theirs = {0: stdin[0], 1: stdout[1], 2: stderr[1], ARGUMENTS: options[0], STATUS: status[1]}
    ours = {"stdin": stdin[1], "stdout": stdout[0], "stderr": stderr[0], "status": status[0]}
    for fd in ours.values():
        os.set_blocking(fd, False)
    return theirs, {**ours, "options": options[1]}


def _spawned(program: str, vector: tuple[str, ...], descriptors: Mapping[int, int]) -> int:
    try:
        return spawn(program, vector, descriptors)
    except FileNotFoundError as error:
        if program == SETPRIV:
            found = f"root starts the worker as another user through `{SETPRIV}`, which is not there"
            raise HostError("identity-switch-missing", f"{found}; install util-linux") from error
        raise HostError("bwrap-missing", f"`{shown(program)}` is not there; `apt install bubblewrap`") from error
    except PermissionError as error:
        message = f"`{shown(program)}` may not be executed; `apt install bubblewrap`"
        raise HostError("bwrap-unreachable", message) from error
    except OSError as error:
        raise _failed(f"`{shown(program)}` could not be started", error) from error


def _failed(what: str, error: OSError) -> HostError:
    return HostError("launch-failed", f"{what}: {(error.strerror or 'no reason given').lower()}")
