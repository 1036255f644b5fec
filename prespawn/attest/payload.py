"""What only the payload has: where it stands, what it executes with, and whether that is what was asked for."""

from __future__ import annotations

import os

from prespawn import kernel
from prespawn.checker.expected import HOME
from prespawn.policy.known import Absent, Unknown

from .mounts import Table, identity
from .reading import known
from .script import is_run_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.checker.plan import Plan

    from .reading import Process

_UNREADABLE = Unknown(reason="not readable from outside")


def payload(process: Process, plan: Plan, table: Table | Unknown, environ: bytes | Unknown) -> dict[str, object]:
    """Return working directory, root, executable, and the three things that no record of the kernel shows."""
    running = known("exe", lambda: kernel.statx(process.fd, "exe", follow=True))
    return {
        "cwd": known("cwd", lambda: process.link("cwd")),
        "root": known("root", lambda: process.link("root")),
        "executable": running if isinstance(running, Unknown) else _executable(running, table),
        "program": known("cmdline", lambda: _program(process, plan, running)),
        "other_values": environ if isinstance(environ, Unknown) else _other_values(environ, plan),
        "hostname": _UNREADABLE,
        "max_user_namespaces": _UNREADABLE,
        "parent_death_signal": _UNREADABLE,
    }


def _other_values(environ: bytes, plan: Plan) -> tuple[str, ...]:
    """Return the planned keys of the environment that have another value than the plan's; no value leaves this."""
    planned = {"HOME": HOME, "PATH": ":".join(plan.search_path), "PWD": plan.cwd, **dict(plan.environment)}
    entries = environ.split(b"\0")
    return tuple(sorted(key for key, value in planned.items() if os.fsencode(f"{key}={value}") not in entries))


def _executable(running: kernel.Statx, table: Table | Unknown) -> dict[str, object]:
    """Return identity, and the place of the mount that it is on; that mount is the run's own or it has no place."""
    place: object = table
    if isinstance(table, Table):
        place = table.places.get(running.mount, "none of the run's mounts")
    return {"identity": identity(running), "mount": place}


def _program(process: Process, plan: Plan, running: kernel.Statx | Unknown) -> object:
    """Say in a word whether the plan's program runs with the plan's arguments; none of them leaves this function.

    ``checked``: it is the very file that was checked. ``planned``: the same where the plan knows no file.
    ``interpreted``: it is a script, which the kernel turned into its interpreter with the script's words behind it.
    """
    if isinstance(running, Unknown):
        return running
    found = process.content("cmdline").split(b"\0")[:-1]
    words = [os.fsencode(word) for word in plan.argv]
    planned = None if isinstance(plan.program, Absent) else f"{plan.program.device}:{plan.program.inode}"
    of = identity(running)
    if found == words and planned in (None, of):
        return "planned" if planned is None else "checked"
    script = is_run_by(found, words, process.folder("root"), os.fsencode(plan.cwd), of)
    return "interpreted" if script is not None and planned in (None, script) else "another"
