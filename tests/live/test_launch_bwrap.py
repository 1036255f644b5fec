"""The launch contract against real bubblewraps, as root and as an ordinary user; the twin of the scripted lane."""

from __future__ import annotations

import ctypes
import os
import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import as_user, plans
from support.sandboxes import Sandbox, bwrap, sandbox
from support.scenarios import FLOOD, SCENARIOS, Scenario, judge, records_exits, shell

from prespawn.attest import Look
from prespawn.cgroup_places import CONTROLLERS, here
from prespawn.checker.attestation import compare
from prespawn.policy.errors import HostError
from prespawn.pumps import Streams
from prespawn.supervise import run

if TYPE_CHECKING:
    from prespawn.checker.plan import ApprovedPlan
    from prespawn.hold import Ready

__all__ = ["bwrap", "sandbox"]  # the fixtures

TRUE = Scenario("true", ("true",), {})
KILLS = int(os.environ.get("PRESPAWN_KILLS", "20"))
CLONE_NEWUSER = 0x10000000


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_scenario_ends_as_it_should(scenario: Scenario, sandbox: Sandbox) -> None:
    judge(scenario, sandbox.play(scenario))


def test_option_that_bubblewrap_refuses_is_a_failed_set_up(sandbox: Sandbox) -> None:
    identity = sandbox.fields(TRUE)["identity"].replace(inner_uid=-1)
    seen = sandbox.play(TRUE, identity=identity)
    assert (seen.outcome["how"], seen.outcome["stage"]) == ("setup-failed", "runtime")
    assert "Invalid uid: -1" in seen.outcome["detail"]


def without_user_namespaces(values: dict[str, Any]) -> tuple[str, str]:
    """Run where the kernel grants no further user namespace: in one of our own that says so."""
    uid, gid = os.geteuid(), os.getegid()
    assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) == 0
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    try:
        run(plans.plan(**values))
    except HostError as error:
        return error.id, str(error)
    return "", ""


@pytest.mark.parametrize("sandbox", ["user"], indirect=True)
def test_host_that_refuses_user_namespaces_is_a_named_error(sandbox: Sandbox) -> None:
    error, message = sandbox.call(without_user_namespaces, sandbox.fields(TRUE))
    assert error == "user-namespaces-refused"
    assert message.startswith(
        "this host refuses user namespaces to `bwrap`: `user.max_user_namespaces=0`; `apt install"
    )


@pytest.mark.parametrize("sandbox", ["user"], indirect=True)
@pytest.mark.parametrize("limits", [{"memory": 1 << 26}, {"cpu": 500}], ids=str)
def test_bound_that_no_control_group_holds_here_starts_nothing(limits: dict[str, int], sandbox: Sandbox) -> None:
    seen = sandbox.play(Scenario("true", ("true",), {}, limits=limits))
    (name,) = limits
    if sandbox.call(held_here, name):
        assert (seen.error, seen.outcome["how"]) == ("", "exited")
    else:
        assert (seen.error, seen.spawns) == ("limit-not-enforceable", 0)
        assert seen.message.startswith(f"limits.{name} has no control group here; allowed here: ")


def held_here(name: str) -> bool:
    return CONTROLLERS[name] in here()


def test_source_that_changed_since_the_check_starts_nothing(sandbox: Sandbox) -> None:
    values = sandbox.fields(TRUE)
    os.rename(sandbox.workspace, f"{sandbox.home}/moved")
    os.mkdir(sandbox.workspace)
    seen = sandbox.call(_play_true, values)
    assert seen == ("workspace-root-identity-changed", 0)


def _play_true(values: dict[str, Any]) -> tuple[str, int]:
    from support.scenarios import played

    seen = played(TRUE, values)
    return seen.error, seen.spawns


def test_workspace_that_is_renamed_while_it_is_held_open_is_still_the_one(sandbox: Sandbox) -> None:
    Path(sandbox.workspace, "mark").write_text("right")
    values = sandbox.fields(Scenario("cat", ("cat", "mark"), {}))
    os.rename(sandbox.workspace, f"{sandbox.home}/moved")
    os.mkdir(sandbox.workspace)
    fd = os.open(f"{sandbox.home}/moved", os.O_PATH)

    def play() -> str:
        out = os.memfd_create("out")
        run(plans.plan(**values), Streams(stdout=out), opened={sandbox.workspace: fd})
        return os.pread(out, 100, 0).decode()

    assert sandbox.call(play) == "right"
    os.close(fd)


def test_reader_that_goes_away_ends_the_worker_as_it_would_without_us(sandbox: Sandbox) -> None:
    def play() -> tuple[str, int | None, int | None]:
        reading, writing = os.pipe()
        threading.Timer(0.2, os.close, (reading,)).start()
        outcome = run(plans.plan(**sandbox.fields(Scenario("yes", ("yes",), {}))), Streams(stdout=writing))
        return outcome.how, outcome.signal, outcome.status

    end = ("signalled", 13, None) if records_exits() else ("exited", None, 141)
    assert sandbox.call(play) == end


def test_worker_that_kills_everything_it_can_only_ends_itself(sandbox: Sandbox) -> None:
    seen = sandbox.play(Scenario("kill -1", shell("sleep 600 & kill -KILL -1; exit 3"), {"how": "exited"}))
    assert (seen.outcome["how"], seen.outcome["status"]) == ("exited", 3)


def looked_at(plan: ApprovedPlan) -> None:
    """Run a plan as every launch does: released once init was seen with its filter, so bound to its parent's life."""
    looks: list[Look] = []

    def on_held(held: Ready) -> None:
        assert compare(looks[0].means, looks[0].see(held)) == ()

    run(plan, meanwhile=lambda told: looks.append(Look(plan, told)), on_held=on_held)


def killed_parents(values: dict[str, Any], moments: list[float]) -> list[list[str]]:
    """Start a launch in a process, kill that process at some moment, and return what was left of each launch."""
    left = []
    for moment in moments:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writing, b"x")
            looked_at(plans.plan(**values))
            os._exit(0)
        os.read(reading, 1)
        time.sleep(moment)
        os.kill(pid, 9)
        left.append(as_user.remaining(3.0))
        os.close(reading)
        os.close(writing)
    return left


def test_parent_killed_at_any_moment_leaves_no_process_and_no_mount(sandbox: Sandbox) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    chance = random.Random(f"{sandbox.parent} {sandbox.bwrap}")
    moments = [chance.uniform(0, 0.03) for _ in range(KILLS)]
    scenario = Scenario("detached", shell("setsid sleep 600 & sleep 600"), {})
    left = sandbox.call(killed_parents, sandbox.fields(scenario), moments)
    assert left == [[]] * KILLS
    assert Path("/proc/self/mountinfo").read_text() == mounts


def slow_to_agree(values: dict[str, Any], seconds: float) -> tuple[str, int, float]:
    begun = time.monotonic()
    outcome = run(plans.plan(**values), on_held=lambda held: time.sleep(seconds))
    return outcome.how, outcome.stdout, time.monotonic() - begun


def test_deadline_that_passes_at_the_hold_lets_nothing_run(sandbox: Sandbox) -> None:
    values = sandbox.fields(Scenario("late", shell("touch /workspace/ran"), {}, limits={"wall_clock": 200}))
    how, _, seconds = sandbox.call(slow_to_agree, values, 0.5)
    assert how == "deadline"
    assert seconds < 0.9
    assert os.listdir(sandbox.workspace) == []


def cancelled_at_the_hold(values: dict[str, Any]) -> tuple[str, float]:
    cancel = os.eventfd(0)
    begun = time.monotonic()
    outcome = run(plans.plan(**values), cancel=cancel, on_held=lambda held: os.eventfd_write(cancel, 1))
    return outcome.how, time.monotonic() - begun


def test_cancel_at_the_hold_ends_the_run(sandbox: Sandbox) -> None:
    how, seconds = sandbox.call(cancelled_at_the_hold, sandbox.fields(Scenario("hangs", shell("sleep 600"), {})))
    assert how == "cancelled"
    assert seconds < 0.5


def cancelled_at(values: dict[str, Any], moments: list[float]) -> list[tuple[str, float]]:
    ends = []
    for moment in moments:
        cancel = os.eventfd(0)
        timer = threading.Timer(moment, os.eventfd_write, (cancel, 1))
        timer.start()
        begun = time.monotonic()
        how = run(plans.plan(**values), cancel=cancel).how
        ends.append((how, round(time.monotonic() - begun - moment, 1)))
        timer.join()
        os.close(cancel)
    return ends


def test_cancel_at_any_moment_ends_the_run_at_once(sandbox: Sandbox) -> None:
    chance = random.Random(f"cancel {sandbox.parent} {sandbox.bwrap}")
    moments = [chance.uniform(0, 0.015) for _ in range(5 * KILLS)]
    values = sandbox.fields(Scenario("detached", shell("setsid sleep 600 & sleep 600"), {}))
    ends = sandbox.call(cancelled_at, values, moments)
    assert {how for how, _ in ends} == {"cancelled"}
    assert max(late for _, late in ends) < 0.5


def parallel(values: dict[str, Any], threads: int, each: int) -> tuple[set[tuple[str, int | None]], int]:
    ends: set[tuple[str, int | None]] = set()
    run(plans.plan(**values), Streams(stdin=b"7"))  # the mapping of root's files is made once and kept
    before = len(os.listdir("/proc/self/fd"))

    def several() -> None:
        for _ in range(each):
            outcome = run(plans.plan(**values), Streams(stdin=b"7"))
            ends.add((outcome.how, outcome.status))

    running = [threading.Thread(target=several) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return ends, len(os.listdir("/proc/self/fd")) - before


def test_runs_from_many_threads_do_not_disturb_each_other(sandbox: Sandbox) -> None:
    values = sandbox.fields(Scenario("stdin", shell("read code; exit $code"), {}))
    mounts = Path("/proc/self/mountinfo").read_text()
    assert sandbox.call(parallel, values, 8, 5) == ({("exited", 7)}, 0)
    assert Path("/proc/self/mountinfo").read_text() == mounts


def test_children_of_the_host_program_are_its_own(sandbox: Sandbox) -> None:
    def play() -> tuple[str, int]:
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 9"], {})
        how = run(plans.plan(**sandbox.fields(TRUE))).how
        return how, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert sandbox.call(play) == ("exited", 9)


def test_flood_of_a_detached_child_ends_with_the_run(sandbox: Sandbox) -> None:
    seen = sandbox.play(
        Scenario("flood", shell(f"setsid sh -c '{FLOOD}' & sleep 0.2; exit 2"), {}, limits={"output": 1 << 30})
    )
    assert (seen.outcome["how"], seen.outcome["status"]) == ("exited", 2)
    assert seen.seconds < 3


def test_workspace_of_the_worker_is_written_as_the_worker(sandbox: Sandbox) -> None:
    sandbox.inside("touch file; mkdir dir; ln -s file link; mkfifo fifo; chmod 0640 file")
    for name in ("file", "dir", "link", "fifo"):
        status = os.lstat(f"{sandbox.workspace}/{name}")
        assert (status.st_uid, status.st_gid) == sandbox.ids, name
