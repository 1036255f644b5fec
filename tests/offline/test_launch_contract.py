"""The launch contract against a scripted runtime; its live twin is ``tests/live/test_launch_bwrap.py``."""

from __future__ import annotations

import dataclasses
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import plans
from support.ordinary import as_ordinary_user, fields, home
from support.scenarios import SCENARIOS, Played, Scenario, judge, played, shell

from prespawn import kernel
from prespawn.checker.plan import Identity, Plan
from prespawn.policy.errors import HostError
from prespawn.pumps import Streams
from prespawn.supervise import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from prespawn.hold import Held

__all__ = ["home"]  # the fixture


def play(scenario: Scenario, home: str, **changes: Any) -> Played:
    """Play a scenario as an ordinary user."""
    seen = as_ordinary_user(played, scenario, {**fields(scenario, home), **changes})
    assert isinstance(seen, Played)
    return seen


TRUE = Scenario("true", ("true",), {})
STUCK = {"how": "deadline", "status": None, "stdout": 0, "stderr": 0}
ONLY_SCRIPTED = (
    Scenario("reads no options", shell("exit 0"), STUCK, limits={"wall_clock": 400}, mode="never reads its options"),
    Scenario("floods before it starts", shell("exit 0"), STUCK, limits={"wall_clock": 400}, mode="floods stderr"),
    Scenario("ends without a record", shell("exit 0"), {"how": "lost", "status": None}, mode="no record"),
    Scenario("writes records that are none", shell("exit 0"), {"how": "lost", "status": None}, mode="garbage records"),
    Scenario("stays after its init", shell("exit 5"), {"how": "exited", "status": 5}, mode="stays after init"),
)
"""What no real bubblewrap does, or not when told to."""


@pytest.mark.parametrize("scenario", (*SCENARIOS, *ONLY_SCRIPTED), ids=str)
def test_scenario_ends_as_it_should(scenario: Scenario, home: str) -> None:
    judge(scenario, play(scenario, home))


@pytest.mark.parametrize(
    ("mode", "error", "message"),
    [
        ("unknown option", "bwrap-too-old", "this `bwrap` does not know the options that a sandbox needs"),
        ("namespaces refused", "user-namespaces-refused", "this host refuses user namespaces to `bwrap`"),
    ],
)
def test_refusing_runtime_is_a_named_error(mode: str, error: str, message: str, home: str) -> None:
    seen = play(dataclasses.replace(TRUE, mode=mode), home)
    assert (seen.error, seen.outcome, seen.spawns) == (error, {}, 1)
    assert seen.message.startswith(message)
    assert "`apt install bubblewrap`" in seen.message


def test_missing_runtime_is_a_named_error(home: str) -> None:
    seen = play(TRUE, home, runtime=plans.runtime(f"{home}/no/such/bwrap"))
    message = f"`{home}/no/such/bwrap` is not there; `apt install bubblewrap`"
    assert (seen.error, seen.message) == ("bwrap-missing", message)


def test_runtime_that_may_not_be_executed_is_a_named_error(home: str) -> None:
    path = Path(home, "not-executable")
    path.write_text("#!/bin/sh\n")
    seen = play(TRUE, home, runtime=plans.runtime(str(path)))
    message = f"`{path}` may not be executed; `apt install bubblewrap`"
    assert (seen.error, seen.message) == ("bwrap-unreachable", message)


def test_ordinary_parent_cannot_run_a_worker_as_somebody_else(home: str) -> None:
    seen = play(TRUE, home, identity=Identity(uid=4242, gid=4242, inner_uid=1000, inner_gid=1000))
    assert (seen.error, seen.spawns) == ("identity-switch-missing", 0)


def replaced(home: str) -> None:
    os.rename(f"{home}/workspace", f"{home}/moved")
    os.mkdir(f"{home}/workspace")


def linked(home: str) -> None:
    os.rename(f"{home}/workspace", f"{home}/moved")
    os.symlink(f"{home}/moved", f"{home}/workspace")


def gone(home: str) -> None:
    os.rename(f"{home}/workspace", f"{home}/moved")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced, "is another file or directory; allowed here: the directory that was checked"),
        (linked, "is another file or directory; allowed here: the directory that was checked"),
        (gone, "cannot be opened: no such file or directory; allowed here: what was checked"),
    ],
)
@pytest.mark.parametrize("which", ["workspace", "toolchain"])
def test_source_that_changed_since_the_check_starts_nothing(
    change: Callable[[str], None], message: str, which: str, home: str
) -> None:
    values = fields(TRUE, home)
    if which == "toolchain":
        os.mkdir(f"{home}/other")
        values["toolchains"] = (plans.bind(f"{home}/workspace", "/opt/tool", writable=False),)
        values["workspace"] = plans.bind(f"{home}/other", "/workspace", writable=True)
    change(home)
    seen = as_ordinary_user(played, TRUE, values)
    assert (seen.error, seen.spawns) == ("workspace-root-identity-changed", 0)
    assert seen.message == f"`{home}/workspace` {message}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: os.symlink("/", path), "`.git` is another file or directory; allowed here: a directory or file"),
        (os.mkfifo, "`.git` is another file or directory; allowed here: a directory or file"),
        (lambda path: None, "`.git` cannot be opened: no such file or directory; allowed here: what was checked"),
    ],
)
def test_read_only_part_that_is_no_plain_part_of_the_workspace_starts_nothing(
    make: Callable[[str], None], message: str, home: str
) -> None:
    make(f"{home}/workspace/.git")
    seen = play(TRUE, home, read_only=(".git",))
    assert (seen.error, seen.spawns) == ("workspace-root-identity-changed", 0)
    assert seen.message.startswith(message)


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../x", ".", ""])
def test_read_only_part_outside_the_workspace_starts_nothing(path: str, home: str) -> None:
    seen = play(TRUE, home, read_only=(path,))
    assert (seen.error, seen.spawns) == ("workspace-root-identity-changed", 0)


def held_open(values: dict[str, Any], path: str, where_it_is_now: str) -> str:
    fd = os.open(where_it_is_now, os.O_PATH)
    outcome = run(plans.plan(**values), opened={path: fd})
    os.close(fd)
    return outcome.how


def test_descriptor_of_the_check_is_used_and_no_name_looked_up(home: str) -> None:
    values = fields(TRUE, home)
    gone(home)
    assert as_ordinary_user(held_open, values, f"{home}/workspace", f"{home}/moved") == "exited"


def untraceable(values: dict[str, Any]) -> tuple[str, str]:
    def refuse(request: int, pid: int, data: int = 0) -> None:
        raise PermissionError(1, "Operation not permitted")

    kernel.ptrace = refuse  # in this process alone: as Yama, a seccomp filter or an unreadable program make it
    try:
        run(plans.plan(**values))
    except HostError as error:
        return error.id, str(error)
    return "", ""


def test_host_that_refuses_ptrace_is_a_named_error(home: str) -> None:
    error, message = as_ordinary_user(untraceable, fields(marked(home), home))
    assert error == "ptrace-refused"
    assert message.startswith(
        "this host does not let the parent trace the process that it started; allowed here: ptrace"
    )
    assert os.listdir(f"{home}/workspace") == []


class Refused(Exception):
    """What a caller raises at the hold."""


def marked(home: str) -> Scenario:
    return Scenario("marks", shell(f"touch {home}/workspace/mark"), {})


def refuse_at_the_hold(values: dict[str, Any], error: type[BaseException]) -> tuple[str, int]:
    seen: list[int] = []

    def refuse(held: Held) -> None:
        seen.append(held.payload)
        assert os.readlink(f"/proc/{held.payload}/exe") == os.path.realpath("/bin/sh")
        raise error("no")

    try:
        run(plans.plan(**values), on_held=refuse)
    except error as raised:
        return str(raised), len(seen)
    return "it ran", len(seen)


@pytest.mark.parametrize("error", [Refused, KeyboardInterrupt, SystemExit])
def test_caller_that_raises_at_the_hold_lets_nothing_run(error: type[BaseException], home: str) -> None:
    values = fields(marked(home), home)
    assert as_ordinary_user(refuse_at_the_hold, values, error) == ("no", 1)
    assert os.listdir(f"{home}/workspace") == []


def agree_at_the_hold(values: dict[str, Any], mark: str) -> tuple[bool, bool, str]:
    before: list[bool] = []
    outcome = run(plans.plan(**values), on_held=lambda held: before.append(os.path.exists(mark)))
    return before[0], os.path.exists(mark), outcome.how


def test_caller_at_the_hold_comes_before_the_first_instruction(home: str) -> None:
    values = fields(marked(home), home)
    assert as_ordinary_user(agree_at_the_hold, values, f"{home}/workspace/mark") == (False, True, "exited")


def leaky(values: dict[str, Any]) -> bytes:
    for number in (7, 40, 300):
        os.dup2(os.open("/", os.O_PATH), number, inheritable=True)
    out = os.memfd_create("out")
    run(plans.plan(**values), Streams(stdout=out))
    return os.pread(out, 1000, 0)


def test_inheritable_descriptors_of_the_parent_stay_outside(home: str) -> None:
    scenario = Scenario("lists", shell("cd /proc/self/fd; for fd in *; do test -e $fd && echo $fd; done"), {})
    assert as_ordinary_user(leaky, fields(scenario, home)).split() == [b"0", b"1", b"2"]


def racing(values: dict[str, Any]) -> set[str]:
    """Open and close inheritable descriptors all the time, and return how runs ended meanwhile."""
    done = threading.Event()

    def open_and_close() -> None:
        while not done.is_set():
            fd = os.open("/", os.O_PATH)
            os.set_inheritable(fd, True)
            os.close(fd)

    thread = threading.Thread(target=open_and_close)
    thread.start()
    ends = set()
    for _ in range(20):
        try:
            ends.add(run(plans.plan(**values)).how)
        except Exception as error:  # noqa: BLE001  # its id is what is asked for
            ends.add(getattr(error, "id", repr(error)))
    done.set()
    thread.join()
    return ends


def test_descriptor_that_another_thread_opens_meanwhile_never_gets_in(home: str) -> None:
    assert as_ordinary_user(racing, fields(TRUE, home)) <= {"exited", "descriptor-leaked"}


def environment(values: dict[str, Any]) -> tuple[bytes, list[bytes]]:
    os.environ["PRESPAWN_CANARY"] = "canary-of-the-parent"
    lines: list[bytes] = []

    def look(held: Held) -> None:
        for pid in (held.runtime, held.init, held.payload):
            for name in ("cmdline", "environ"):
                lines.append(Path(f"/proc/{pid}/{name}").read_bytes())

    out = os.memfd_create("out")
    run(plans.plan(**values), Streams(stdout=out), on_held=look)
    return os.pread(out, 1000, 0), lines


def test_environment_is_the_plans_alone_and_stands_in_no_argument_vector(home: str) -> None:
    values = {**fields(Scenario("env", ("/usr/bin/env",), {}), home), "environment": (("LANG", "--canary-value"),)}
    printed, (runtime, runtime_env, init, init_env, payload, payload_env) = as_ordinary_user(environment, values)
    path = ":".join(plans.SEARCH_PATH).encode()
    assert sorted(printed.split()) == [b"HOME=/home/worker", b"LANG=--canary-value", b"PATH=" + path]
    assert (runtime_env, init_env) == (b"", b"")
    assert b"canary" not in runtime + init + payload
    assert payload_env.count(b"canary") == 1


def limits(values: dict[str, Any]) -> list[bytes]:
    lines: list[bytes] = []

    def look(held: Held) -> None:
        for pid in (held.init, held.payload):
            lines.extend(Path(f"/proc/{pid}/limits").read_bytes().splitlines())

    run(plans.plan(**values), on_held=look)
    wanted = (b"Max processes", b"Max open files", b"Max file size", b"Max core file size")
    return [b" ".join(line.split()) for line in lines if line.startswith(wanted)]


def test_limits_of_the_plan_hold_at_the_hold_for_payload_and_init(home: str) -> None:
    values = {**fields(TRUE, home), "limits": {"processes": 200, "open_files": 99, "file_size": 12345}}
    assert (
        as_ordinary_user(limits, values)
        == [
            b"Max file size 12345 12345 bytes",
            b"Max core file size 0 0 bytes",
            b"Max processes 200 200 processes",
            b"Max open files 99 99 files",
        ]
        * 2
    )


def test_only_an_approved_plan_is_started(home: str) -> None:
    approved = dict(plans.plan(**fields(TRUE, home)))
    with pytest.raises(TypeError, match="only an approved plan is ever started"):
        run(Plan(**approved))  # type: ignore[arg-type]  # that is the point


def parallel(values: dict[str, Any]) -> tuple[list[str], int]:
    ends: list[str] = []
    before = len(os.listdir("/proc/self/fd"))

    def several() -> None:
        ends.extend(run(plans.plan(**values), Streams(stdin=b"x")).how for _ in range(5))

    threads = [threading.Thread(target=several) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends, len(os.listdir("/proc/self/fd")) - before


def test_parallel_runs_do_not_disturb_each_other_and_leak_no_descriptor(home: str) -> None:
    assert as_ordinary_user(parallel, fields(TRUE, home)) == (["exited"] * 20, 0)
