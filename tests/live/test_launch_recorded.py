"""Whole launches through the gate: what the verdict on the held run says, what is written down, and what never runs."""

from __future__ import annotations

import itertools
import os
import stat
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from support import runtimes
from support.sandboxes import Sandbox, sandbox

from prespawn import hold
from prespawn.gate import Gate
from prespawn.launchers.bwrap import invocation
from prespawn.policy.errors import HostError, ShortfallError
from prespawn.policy.levels import STRENGTHS
from prespawn.pumps import Streams
from prespawn.receipts import DIRECTORY, Receipts, verify
from prespawn.registry import Registry
from prespawn.spawn import spawn as really_spawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from prespawn.checker.plan import Plan
    from prespawn.launchers.invocation import Invocation

__all__ = ["sandbox"]  # the fixture

RUN = "run-1"
CANARY = "canary-4711"
HELD = {
    "artifact-policy", "binds", "capabilities", "filter-bytes", "held-to-workspace", "mounts", "namespaces", "network",
    "no-new-privs", "root", "root-identity", "runtime-digest", "seccomp", "workspace-root",
}  # fmt: skip


@pytest.fixture
def bwrap() -> str:
    """The one bubblewrap that a gate finds here."""
    return runtimes.needed(next(iter(runtimes.bubblewraps()), None))


def launched(home: str, words: tuple[str, ...], launcher: Callable[[Plan], Invocation]) -> dict[str, Any]:
    """Launch a typed line in the built-in site and return what came of it, in memory and on disk."""
    os.chdir(f"{home}/workspace")
    os.environ.update({"XDG_STATE_HOME": f"{home}/state", "SECRET": CANARY, "TZ": f"{CANARY}/value"})
    gate = Gate.load().reviewing("sandbox-v1", words)
    declaration = {
        "prespawn": "declaration/v1", "run_id": RUN, "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".",
        "declared_files": [], "env_keys": ["TZ"], "execution": {"argv": list(words)}, "execute": True,
        "file_contract": {"mode": "mutation", "allowed_paths": ["**"]},
    }  # fmt: skip
    found: dict[str, Any] = {"uid": os.geteuid()}
    try:
        with mock.patch("prespawn.supervise.invocation", launcher):
            run = gate.launch_typed(declaration, operator="ada", streams=Streams(), caller_env={"TZ": os.environ["TZ"]})
        found["verdict"] = run.verdict.document()
        found["outcome"] = None if run.outcome is None else (run.outcome.how, run.outcome.status)
    except HostError as error:
        found["error"], found["message"] = error.id, str(error)
        if isinstance(error, ShortfallError):
            found["verdict"] = error.verdict.document()  # type: ignore[attr-defined]  # a verdict, as its text says
    return {**found, **written(f"{home}/state/prespawn")}


def written(state: str) -> dict[str, Any]:
    """Return the registry's row, the receipts that it names, proved, and every file of them as text."""
    directory = os.open(state, os.O_RDONLY)
    with Registry.open(directory) as registry, Receipts.open(directory) as receipts:
        row = registry.run(RUN)
        assert row is not None
        parts = [part for part in (row.entry, row.start, row.end) if part is not None and "receipt" in part]
        chain = verify(RUN, [str(part["receipt"]) for part in parts], receipts.read)
    os.close(directory)
    files = [f"{state}/{DIRECTORY}/{name}" for name in os.listdir(f"{state}/{DIRECTORY}")]
    modes = {stat.S_IMODE(os.stat(path).st_mode) for path in files}
    texts = []
    for path in files:
        with open(path, encoding="ascii") as file:
            texts.append(file.read())
    return {"state": row.state, "end": row.end, "chain": chain, "modes": modes, "texts": texts}


def play(
    sandbox: Sandbox, launcher: Callable[[Plan], Invocation] = invocation, how: Callable[..., Any] = launched
) -> Any:
    """Launch a worker that leaves a mark, in a process of the parent's kind with a state directory of its own."""
    os.mkdir(f"{sandbox.home}/state")
    os.chown(f"{sandbox.home}/state", os.stat(sandbox.workspace).st_uid if sandbox.parent == "user" else -1, -1)
    return sandbox.call(how, sandbox.home, MARK, launcher)


MARK = ("/bin/sh", "-c", f"touch /workspace/ran; : {CANARY}")


def test_run_that_is_what_its_plan_means_is_attested_and_recorded(sandbox: Sandbox) -> None:
    seen = play(sandbox)
    assert seen["outcome"] == ("exited", 0)
    assert os.listdir(sandbox.workspace) == ["ran"]
    claims = {claim["claim"]: (claim["result"], claim["strength"]) for claim in seen["verdict"]["claims"]}
    by_count = {"filter-bytes"} if sandbox.parent == "user" else set()  # only root is shown the filter itself
    assert {name: claims[name] for name in HELD} == {
        name: ("pass", "observed" if name in {"runtime-digest", *by_count} else "attested") for name in HELD
    }
    assert seen["verdict"]["blockers"] == []
    assert seen["verdict"]["level"] == {"requested": "logical", "earned": "logical", "attainable": "logical"}
    launch, attestation, terminal = seen["chain"]
    decided = launch["launch"]["approval"]
    assert (decided["id"], decided["origin"], decided["operator"]) == (None, "command-line", "ada")
    assert (decided["uid"], decided["approver"], decided["accepted"]) == (seen["uid"], "same-user", [])
    assert launch["launch"]["runtime"]["path"] in runtimes.bubblewraps()
    held = attestation["attestation"]
    assert (held["allowed"], held["differences"], held["level"]) == (True, [], seen["verdict"]["level"])
    assert held["facts"] == seen["verdict"]["digests"]["facts"] != launch["launch"]["digests"]["facts"]
    recorded = {claim["claim"]: (claim["result"], claim["strength"]) for claim in held["claims"]}
    assert recorded == claims
    assert held["attested"]["payload"]["parent_death_signal"] == {"unknown": "not readable from outside"}
    assert held["declared"]["told"]["die-with-parent"] == 1
    assert (seen["state"], seen["end"]["level"]) == ("ended", "logical")
    ended = terminal["terminal"]
    assert (ended["state"], ended["level"], ended["contract"]["result"]) == ("ended", "logical", "kept")
    assert (ended["exit"]["how"], ended["exit"]["status"], ended["unwritten"]) == ("exited", 0, [])


def test_receipts_hold_no_value_and_no_argument_and_are_their_owners_alone(sandbox: Sandbox) -> None:
    seen = play(sandbox)
    assert seen["outcome"] == ("exited", 0)
    assert (seen["modes"], len(seen["texts"])) == ({0o600}, 3)
    assert not [text for text in seen["texts"] if CANARY in text or "/workspace/ran" in text]
    assert seen["chain"][1]["attestation"]["attested"]["payload"]["environment"] == [
        "HOME", "LANG", "PATH", "PWD", "TZ",
    ]  # fmt: skip


def freer(plan: Plan) -> Invocation:
    """Return an invocation with one mount more and one session less than the plan means."""
    told = invocation(plan)
    options = [option for option in told.options if option != ("--new-session",)]
    options.insert(options.index(("--remount-ro", "/")), ("--ro-bind", "/var", "/var"))
    return told.replace(options=tuple(options))


def test_run_that_falls_short_is_ended_before_its_first_instruction_and_says_where(sandbox: Sandbox) -> None:
    seen = play(sandbox, freer)
    assert os.listdir(sandbox.workspace) == []
    fields = [
        "init.process_group", "init.session", "mounts./var", "payload.process_group", "payload.session",
        "told.new-session",
    ]  # fmt: skip
    assert seen["error"] == "attestation-mismatch"
    blockers = seen["verdict"]["blockers"]
    assert [(blocker["id"], blocker["field"]) for blocker in blockers] == [
        ("attestation-mismatch", of) for of in fields
    ]
    assert "`payload.session` is `another process's`; allowed here: `init's`; " in seen["message"]
    assert all(f"`{field}` is " in seen["message"] for field in fields)
    assert (seen["state"], seen["end"]["how"]) == ("never-started", "attestation-mismatch")
    held = seen["chain"][1]["attestation"]
    assert held["allowed"] is False
    assert held["differences"] == [{"field": field, "because": "fail"} for field in fields]
    failed = {claim["claim"] for claim in held["claims"] if claim["result"] == "fail" and claim["claim"] in HELD}
    assert failed == {"binds", "held-to-workspace", "mounts", "namespaces", "root-identity"}
    assert {claim["strength"] for claim in held["claims"]} <= set(STRENGTHS)


def test_host_that_refuses_to_trace_runs_nothing_and_is_named(sandbox: Sandbox) -> None:
    def refused(pid: int) -> bool:
        raise HostError("ptrace-refused", "refused")

    def launch(*arguments: Any) -> Any:
        with mock.patch("prespawn.hold._seized", refused):
            return launched(*arguments)

    seen = play(sandbox, how=launch)
    assert (seen["error"], seen["state"], seen["end"]["how"]) == ("ptrace-refused", "never-started", "ptrace-refused")
    assert [receipt["kind"] for receipt in seen["chain"]] == ["launch", "terminal"]
    assert os.listdir(sandbox.workspace) == []


def test_receipt_that_cannot_be_written_lets_nothing_start(sandbox: Sandbox) -> None:
    def launch(*arguments: Any) -> Any:
        failing = mock.Mock(side_effect=HostError("receipt-not-written", "no space left"))
        with (
            mock.patch.object(Receipts, "write", failing), mock.patch("prespawn.start.spawn") as spawned,
            mock.patch(f"{__name__}.written", row_of),
        ):  # fmt: skip
            found = launched(*arguments)
        return {"error": found["error"], "state": found["state"], "spawned": spawned.call_count}

    seen = play(sandbox, how=launch)
    assert seen == {"error": "receipt-not-written", "state": "never-started", "spawned": 0}


def test_second_that_begins_during_a_launch_does_not_make_its_approval_one_of_the_future(sandbox: Sandbox) -> None:
    def launch(*arguments: Any) -> Any:
        ticking = mock.Mock(side_effect=itertools.count(1_796_000_000))  # each look at the clock is a second later
        with mock.patch("time.time", ticking):
            return launched(*arguments)

    assert play(sandbox, how=launch)["outcome"] == ("exited", 0)


def row_of(state: str) -> dict[str, Any]:
    with Registry.open(state) as registry:
        row = registry.run(RUN)
    return {"state": None if row is None else row.state}


def test_each_receipt_is_durable_before_what_it_is_about(sandbox: Sandbox) -> None:
    assert play_watched(sandbox) == [("spawn", 1), ("release", 2)]


def play_watched(sandbox: Sandbox) -> Any:
    """Return how many receipts were on disk, with their directory, at the spawn and at the release."""

    def launch(*arguments: Any) -> Any:
        events: list[tuple[str, int]] = []
        count, synced = [0], os.fsync

        def fsync(fd: int) -> None:
            synced(fd)
            count[0] += os.readlink(f"/proc/self/fd/{fd}").endswith(f"/{DIRECTORY}")

        released = hold.Hold.release

        def spawn(*words: Any) -> int:
            events.append(("spawn", count[0]))
            return really_spawn(*words)

        def release(self: Any, held: Any) -> None:
            events.append(("release", count[0]))
            released(self, held)

        with (
            mock.patch("os.fsync", fsync), mock.patch("prespawn.start.spawn", spawn),
            mock.patch.object(hold.Hold, "release", release),
        ):  # fmt: skip
            launched(*arguments)
        return events

    return play(sandbox, how=launch)
