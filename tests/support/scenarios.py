"""What a launch has to get right, as a table that is played against the scripted runtime and against real ones.

``played`` starts one scenario in the calling process and returns what the caller saw. It can be pickled, so that it
can run as another user.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prespawn.checker.plan import Identity
from prespawn.idmap import UNSHARE
from prespawn.kernel import exit_record
from prespawn.policy.errors import HostError
from prespawn.pumps import Streams
from prespawn.supervise import run
from support import plans

if TYPE_CHECKING:
    from prespawn.hold import Held

SH = "/bin/sh"
CEILING = 100_000
FLOOD = "while :; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; done"


@dataclass(frozen=True)
class Scenario:
    """``argv`` under a plan with ``changes``; ``expected`` are the outcome's fields that must be so.

    ``mode`` is the scripted runtime's misbehaviour, ``live`` are changes of the plan that make a real one do the same.
    ``cancel`` seconds after the start the run is cancelled; ``kill`` seconds after the hold bubblewrap is killed.
    """

    name: str
    argv: tuple[str, ...]
    expected: dict[str, Any]
    changes: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    stdin: bytes | None = None
    stdout: bytes | None = None
    stderr: bytes | None = None
    mode: str = ""
    live: dict[str, Any] = field(default_factory=dict)
    cancel: float | None = None
    kill: float | None = None
    detail: str = ""
    within: float = 5.0

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


@dataclass(frozen=True)
class Played:
    """What the caller of a run saw: an outcome (as a mapping) or an error, and what came out."""

    outcome: dict[str, Any]
    error: str
    message: str
    stdout: bytes
    stderr: bytes
    seconds: float
    spawns: int


def records_exits() -> bool:
    """Say whether this kernel keeps a record of how a process ended."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    pidfd = os.pidfd_open(pid)
    os.waitpid(pid, 0)
    found = exit_record(pidfd)
    os.close(pidfd)
    return found is not None


KILLED: dict[str, Any] = {"how": "signalled", "signal": 9, "status": None}
KILLED_UNSEEN: dict[str, Any] = {"how": "exited", "signal": None, "status": 137}


def shell(text: str) -> tuple[str, ...]:
    return (SH, "-c", text)


HANGS = shell("echo on; sleep 600")
SCENARIOS: tuple[Scenario, ...] = (
    Scenario("exit 0", shell("exit 0"), {"how": "exited", "status": 0}),
    Scenario("exit 1", shell("exit 1"), {"how": "exited", "status": 1}),
    Scenario("exit 137 is an exit", shell("exit 137"), {"how": "exited", "status": 137, "signal": None}),
    Scenario("killed by a signal", shell("kill -9 $$"), KILLED if records_exits() else KILLED_UNSEEN),
    Scenario(
        "stdin reaches the worker", shell("cat; cat >&2 <&0; exit 3"), {"how": "exited", "status": 3, "stdout": 6},
        stdin=b"hello\n", stdout=b"hello\n", stderr=b"",
    ),
    Scenario("stdin is empty without one", shell("cat; exit 0"), {"how": "exited", "status": 0}, stdout=b""),
    Scenario(
        "stdout and stderr stay apart", shell("echo out; echo err >&2"), {"how": "exited", "stdout": 4, "stderr": 4},
        stdout=b"out\n", stderr=b"err\n",
    ),
    Scenario("stdin that nobody reads", shell("exit 0"), {"how": "exited", "status": 0}, stdin=b"x" * (1 << 20)),
    Scenario("stdout closed early", shell("exec >&- 2>&-; sleep 0.1; exit 4"), {"how": "exited", "status": 4}),
    Scenario(
        "flood on stdout", shell(FLOOD), {"how": "output-ceiling", "ceiling": "output", "stdout": CEILING, "stderr": 0},
        limits={"output": CEILING},
    ),
    Scenario(
        "flood on stderr", shell(f"({FLOOD}) >&2"), {"how": "output-ceiling", "ceiling": "output", "stderr": CEILING},
        limits={"output": CEILING},
    ),
    Scenario(
        "stderr has a ceiling of its own", shell(f"echo out; ({FLOOD}) >&2"),
        {"how": "output-ceiling", "ceiling": "diagnostics", "stderr": 1000}, limits={"diagnostics": 1000},
    ),
    Scenario(
        "exactly the ceiling", shell("printf 0123456789"), {"how": "exited", "status": 0, "stdout": 10},
        limits={"output": 10}, stdout=b"0123456789",
    ),
    Scenario(
        "one byte above the ceiling, then exit", shell("printf 01234567890; exit 0"),
        {"how": "output-ceiling", "ceiling": "output", "stdout": 10}, limits={"output": 10}, stdout=b"0123456789",
    ),
    Scenario("hangs", HANGS, {"how": "deadline", "status": None}, limits={"wall_clock": 500}, stdout=b"on\n"),
    Scenario(
        "ignores signals and stops itself", shell("trap '' TERM INT HUP; kill -STOP $$; sleep 600"),
        {"how": "deadline"}, limits={"wall_clock": 500},
    ),
    Scenario("cancelled", HANGS, {"how": "cancelled", "status": None}, cancel=0.3, stdout=b"on\n"),
    Scenario("cancelled before it starts", HANGS, {"how": "cancelled", "status": None, "stdout": 0}, cancel=0.0),
    Scenario(
        "detached child keeps stdout open", shell("setsid sh -c 'sleep 600' & echo done"),
        {"how": "exited", "status": 0}, stdout=b"done\n", within=2.0,
    ),
    Scenario(
        "detached grandchild of a killed parent", shell("setsid sh -c 'sleep 600 & sleep 600' & sleep 600"),
        {"how": "deadline"}, limits={"wall_clock": 500},
    ),
    Scenario(
        "program missing", ("no-such-program",), {"how": "setup-failed", "stage": "program", "status": None},
        detail="execvp no-such-program: No such file or directory",
    ),
    Scenario(
        "program not executable", ("/etc/passwd",), {"how": "setup-failed", "stage": "program"},
        detail="execvp /etc/passwd: Permission denied",
    ),
    Scenario(
        "root cannot be built", shell("exit 0"), {"how": "setup-failed", "stage": "root", "status": None},
        mode="root fails", live={"alias": "/proc/alias"}, detail="Can't make symlink at /proc/alias",
    ),
    Scenario(
        "bubblewrap is killed", shell("echo on; exec sleep 600"), {"how": "lost", "status": None}, kill=0.3,
        stdout=b"on\n",
    ),
)  # fmt: skip


def prepared(scenario: Scenario, runtime: str, workspace: str, identity: Identity, *, live: bool) -> dict[str, Any]:
    """Return the plan's fields for a scenario on this host."""
    return {
        "runtime": plans.runtime(runtime),
        "argv": scenario.argv,
        "identity": identity,
        "workspace": plans.bind(workspace, "/workspace", writable=True),
        "alias": workspace,
        "system": plans.system(),
        "limits": scenario.limits,
        **scenario.changes,
        **(scenario.live if live else {}),
    }


def played(scenario: Scenario, fields: dict[str, Any]) -> Played:
    """Run a scenario in this process."""
    spawns: list[str] = []
    sys.addaudithook(lambda event, what: spawns.append(what[0]) if event == "prespawn.spawn" else None)
    out, err, cancel = os.memfd_create("out"), os.memfd_create("err"), os.eventfd(0)
    timers = [threading.Timer(scenario.cancel, os.eventfd_write, (cancel, 1))] if scenario.cancel else []
    if scenario.cancel == 0.0:
        os.eventfd_write(cancel, 1)

    def on_held(held: Held) -> None:
        if scenario.kill is not None:
            timers.append(threading.Timer(scenario.kill, os.kill, (held.runtime, 9)))
            timers[-1].start()

    for timer in timers:
        timer.start()
    error, message, begun = "", "", time.monotonic()
    outcome: dict[str, Any] = {}
    try:
        streams = Streams(stdin=scenario.stdin, stdout=out, stderr=err)
        outcome = dict(run(plans.plan(**fields), streams, cancel=cancel, on_held=on_held))
    except HostError as raised:
        error, message = raised.id, str(raised)
    seconds = time.monotonic() - begun
    for timer in timers:
        timer.cancel()
        timer.join()
    started = [program for program in spawns if program != UNSHARE]  # that one only makes a mapping
    return Played(outcome, error, message, _content(out), _content(err), seconds, len(started))


def judge(scenario: Scenario, seen: Played) -> None:
    """Assert that what was seen is what the scenario expects."""
    assert (seen.error, seen.message) == ("", "")
    found = {name: seen.outcome[name] for name in scenario.expected}
    assert found == scenario.expected, seen
    assert scenario.detail in seen.outcome["detail"]
    assert seen.seconds < scenario.within
    assert seen.spawns == 1
    for name, content in (("stdout", seen.stdout), ("stderr", seen.stderr)):
        wanted = getattr(scenario, name)
        assert wanted is None or content == wanted
        assert len(content) == seen.outcome[name]
    assert seen.outcome["undelivered"] == 0


def _content(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        file.seek(0)
        return file.read()
