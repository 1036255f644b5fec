"""Bounds on a whole run, held by the control groups of this very host, and ends that are told apart by what it counted.

Collected where a parent here may make groups, by whichever version of the interface; elsewhere there is nothing to
play, and ``test_launch_bwrap`` has the refusal.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support import as_user, plans, runtimes
from support.sandboxes import OWNER, Sandbox, bwrap, sandbox
from support.scenarios import Played, Scenario, records_exits, shell

from prespawn import supervise
from prespawn.attest import Look
from prespawn.cgroup_places import here
from prespawn.checker.attestation import compare
from prespawn.facts.controls import controls

__all__ = ["bwrap", "sandbox"]  # the fixtures

CAN = here()
ABLE = ["root", OWNER] if runtimes.ROOT and {"memory", "cpu", "pids"} <= CAN.keys() else []
__test__ = bool(ABLE)
pytestmark = pytest.mark.parametrize("sandbox", ABLE, indirect=True)

MIB = 1 << 20
BOUNDED = {"memory": 64 * MIB, "tmp": 1 << 30}
HEAP = "python3 -c 'x = b\"x\" * (300 << 20)'"
MEMORY = ("limits.memory",)
KILLED: dict[str, Any] = {"how": "out-of-memory", "status": None, "signal": None, "reached": MEMORY}
if not records_exits():  # then nobody saw a signal: the count stands beside what bubblewrap says
    KILLED = {"how": "exited", "status": 137, "signal": None, "reached": MEMORY}


@pytest.fixture(autouse=True)
def no_group_is_left(sandbox: Sandbox) -> Any:
    yield
    assert groups() == []


def groups() -> list[str]:
    """Return the groups that runs of this program's children have left."""
    return [str(path) for place in CAN.values() for path in Path(place.above).glob("prespawn-*")]


def end(sandbox: Sandbox, script: str, **limits: int) -> Played:
    scenario = Scenario("bounded", shell(script), {}, limits=limits)
    seen = sandbox.play(scenario)
    assert (seen.error, seen.message) == ("", "")
    return seen


def ended(sandbox: Sandbox, script: str, **limits: int) -> dict[str, Any]:
    outcome = end(sandbox, script, **limits).outcome
    return {name: outcome[name] for name in KILLED}


def test_worker_that_takes_too_much_memory_is_ended_for_it(sandbox: Sandbox) -> None:
    assert ended(sandbox, f"exec {HEAP}", **BOUNDED) == KILLED


def test_memory_of_all_processes_is_counted_together(sandbox: Sandbox) -> None:
    each = "python3 -c 'x = b\"x\" * (24 << 20); import time; time.sleep(1)' &"
    assert ended(sandbox, f"{each} {each} {each} {each} wait; exit 0", **BOUNDED)["reached"] == MEMORY
    assert ended(sandbox, f"{each} wait; exit 0", **BOUNDED)["reached"] == ()


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/home/worker"])
def test_files_in_memory_count_as_memory(place: str, sandbox: Sandbox) -> None:
    fill = f"head -c 300M /dev/zero >{place}/x"
    limits = {**BOUNDED, "shm": 1 << 30, "home": 1 << 30, "file_size": 1 << 30}
    assert ended(sandbox, f"{fill}; exit 0", **limits)["reached"] == MEMORY


def test_worker_that_goes_on_when_a_child_was_killed_has_its_own_end(sandbox: Sandbox) -> None:
    seen = ended(sandbox, f"{HEAP}; echo $?; exit 3", **BOUNDED)
    assert seen == {"how": "exited", "status": 3, "signal": None, "reached": MEMORY}


def test_worker_that_says_137_was_not_killed_for_memory(sandbox: Sandbox) -> None:
    assert ended(sandbox, "exit 137", **BOUNDED) == {"how": "exited", "status": 137, "signal": None, "reached": ()}


def test_worker_that_kills_itself_was_not_killed_for_memory(sandbox: Sandbox) -> None:
    own = {"how": "signalled", "status": None, "signal": 9} if records_exits() else {
        "how": "exited", "status": 137, "signal": None,
    }  # fmt: skip
    assert ended(sandbox, "kill -9 $$", **BOUNDED) == {**own, "reached": ()}


def test_process_that_was_refused_is_counted(sandbox: Sandbox) -> None:
    script = "python3 -c 'import os\nfor n in range(60):\n if not os.fork(): import time; time.sleep(600)'; exit 4"
    seen = end(sandbox, script, **BOUNDED, processes=20)
    assert (seen.outcome["how"], seen.outcome["status"], seen.outcome["reached"]) == (
        "exited",
        4,
        ("limits.processes",),
    )
    assert b"BlockingIOError" in seen.stderr


def test_deadline_and_ceiling_are_not_limits_of_the_group(sandbox: Sandbox) -> None:
    assert ended(sandbox, "sleep 600", **BOUNDED, wall_clock=500)["how"] == "deadline"
    assert ended(sandbox, "yes", **BOUNDED, output=1000) == {
        "how": "output-ceiling", "status": None, "signal": None, "reached": (),
    }  # fmt: skip


def test_processor_time_is_shared_by_all(sandbox: Sandbox) -> None:
    busy = "python3 -c 'import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass'"
    seen = end(sandbox, f"{busy} & {busy} & wait; times", cpu=200)
    minutes, _, seconds = seen.stdout.decode().split()[2].removesuffix("s").partition("m")
    assert 0.1 < 60 * int(minutes) + float(seconds) < 0.5  # of two processors for a second


def test_bubblewrap_that_somebody_killed_was_not_killed_for_memory(sandbox: Sandbox) -> None:
    scenario = Scenario("bounded", shell("sleep 600"), {}, limits=BOUNDED, kill=0.2)
    assert sandbox.play(scenario).outcome["how"] == "lost"


def test_sibling_runs_do_not_share_a_bound(sandbox: Sandbox) -> None:
    def play() -> list[tuple[str, tuple[str, ...]]]:
        ends: list[tuple[str, tuple[str, ...]]] = []

        def one(script: str) -> None:
            fields = sandbox.fields(Scenario("bounded", shell(script), {}, limits=BOUNDED))
            outcome = supervise.run(plans.plan(**fields))
            ends.append((outcome.how, outcome.reached))

        modest = "python3 -c 'x = b\"x\" * (30 << 20); import time; time.sleep(0.5)'"
        threads = [threading.Thread(target=one, args=(script,)) for script in (modest, modest, f"exec {HEAP}")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(ends)

    assert sandbox.call(play) == sorted([("exited", ()), ("exited", ()), (KILLED["how"], MEMORY)])


def looked(values: dict[str, Any], escape: bool) -> list[tuple[str, object]]:
    """Look at a held run, where asked after its processes were put back into the parent's groups."""
    plan = plans.plan(**values)
    found: list[tuple[str, object]] = []

    def on_held(held: Any) -> None:
        if escape:
            for place in CAN.values():
                for pid in (held.payload, held.init):
                    Path(place.own, "cgroup.procs").write_text(str(pid))
        look = Look(plan, held.told)
        found.extend((one.field, one.seen) for one in compare(look.means, look.see(held)))

    supervise.run(plan, on_held=on_held)
    return found


def test_groups_are_attested_as_the_runs_own(sandbox: Sandbox) -> None:
    fields = sandbox.fields(Scenario("bounded", ("true",), {}, limits=BOUNDED))
    assert sandbox.call(looked, fields, False) == []


def test_run_outside_its_groups_is_caught(sandbox: Sandbox) -> None:
    fields = sandbox.fields(Scenario("bounded", ("true",), {}, limits=BOUNDED))
    assert sorted(sandbox.call(looked, fields, True)) == [
        ("init.cgroup", "the caller's"), ("payload.cgroup", "the caller's"),
    ]  # fmt: skip


def test_threads_of_the_parent_stay_where_they_were(sandbox: Sandbox) -> None:
    def play() -> bool:
        before = Path("/proc/self/cgroup").read_text()
        seen: list[str] = []

        def on_held(held: Any) -> None:
            seen.extend(Path(f"/proc/self/task/{task}/cgroup").read_text() for task in os.listdir("/proc/self/task"))

        supervise.run(plans.plan(**sandbox.fields(Scenario("bounded", ("true",), {}, limits=BOUNDED))), on_held=on_held)
        return set(seen) == {before}

    assert sandbox.call(play)


def test_bound_that_the_kernel_does_not_take_starts_nothing(sandbox: Sandbox) -> None:
    seen = sandbox.play(Scenario("bounded", ("true",), {}, limits={"cpu": 1, "memory": 64 * MIB}))
    assert (seen.error, seen.spawns) == ("limit-not-enforceable", 0)
    assert seen.message.startswith("limits.cpu could not be set: invalid argument; allowed here: a parent whose own")


def test_facts_name_what_the_groups_of_this_host_hold(sandbox: Sandbox) -> None:
    assert controls(plans.LIMITS.replace(memory=1, cpu=1)) == ("limits.memory", "limits.cpu")
    assert controls(plans.LIMITS.replace(cpu=1)) == ("limits.cpu",)
    assert controls(plans.LIMITS) == ()


def test_parent_that_was_killed_leaves_empty_groups_to_the_next(sandbox: Sandbox) -> None:
    fields = sandbox.fields(Scenario("bounded", shell("setsid sleep 600 & sleep 600"), {}, limits=BOUNDED))

    def play() -> tuple[list[str], int]:
        reading, writing = os.pipe()

        def held(_: object) -> None:
            os.write(writing, b"x")

        pid = os.fork()
        if pid == 0:
            supervise.run(plans.plan(**fields), on_held=held)
        os.read(reading, 1)
        os.kill(pid, 9)
        left = as_user.remaining(3.0)
        return left, len(groups())

    assert sandbox.call(play) == ([], 2)  # of memory and of processes
    assert ended(sandbox, "exit 0", **BOUNDED)["how"] == "exited"
