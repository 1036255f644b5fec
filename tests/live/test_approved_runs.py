"""Approvals on whole runs: who is believed, what is accepted, and that one approval starts one run, whoever races."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from support.cli import WORKER
from support.site_home import Home, live_home, site_home

from prespawn.approvals import Approvals
from prespawn.checker.check import LEVEL_UNKNOWN
from prespawn.cli import main
from prespawn.gate import Run
from prespawn.policy.errors import InputError, NotApprovableError, ReadError
from prespawn.policy.known import Unknown
from prespawn.receipts import DIRECTORY
from prespawn.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

    from prespawn.checker.verdict import Verdict
    from prespawn.gate import Checked, Gate

__all__ = ["live_home", "site_home"]  # the fixtures


def ids(verdict: Verdict) -> list[str]:
    return [blocker.id for blocker in verdict.blockers]


def ran(home: Home) -> set[str]:
    return {path.name for path in home.workspace.iterdir()}


def launches(home: Home) -> list[dict[str, Any]]:
    """Return every launch receipt."""
    texts = [path.read_text("ascii") for path in (home.state / DIRECTORY).glob("*.json")]
    return [receipt["launch"] for receipt in map(json.loads, texts) if receipt["kind"] == "launch"]


def approved(home: Home, *words: str, **changes: Any) -> tuple[Gate, Checked, str]:
    gate = home.gate()
    checked = gate.check(home.declare(*words, **changes))
    return gate, checked, str(gate.approve(checked, reason="reviewed").id)


# -- the way


def test_approved_run_starts_and_its_receipt_names_approval_and_approver(live_home: Home) -> None:
    gate, checked, id = approved(live_home, "touch", "ran")
    run = gate.launch(checked, approval=id)
    assert run.outcome is not None
    assert (run.outcome.how, run.outcome.status, ran(live_home)) == ("exited", 0, {"ran"})
    (launch,) = launches(live_home)
    found = launch["approval"]
    assert (found["id"], found["uid"], found["origin"], found["approver"]) == (
        id,
        os.geteuid(),
        "operator",
        "same-user",
    )


def test_driver_may_approve_what_has_no_blockers_where_the_site_says_so(live_home: Home) -> None:
    gate = live_home.gate()
    checked = gate.check(live_home.declare("touch", "ran"))
    run = gate.launch(checked, approval=gate.approve(checked, operator="driver", reason="unattended"))
    assert run.outcome is not None
    assert [launch["approval"]["origin"] for launch in launches(live_home)] == ["driver"]


def test_driver_approves_nothing_where_the_site_does_not_say_so(site_home: Home) -> None:
    site_home.write(approvals={})
    gate = site_home.gate()
    with pytest.raises(NotApprovableError) as refused:
        gate.approve(gate.check(site_home.declare()), operator="driver", reason="unattended")
    assert refused.value.id == "approver-not-allowed"
    assert not (site_home.state / "approvals").exists()


def test_separate_approver_is_no_user_of_the_run(site_home: Home) -> None:
    site_home.write(approvals={"require_separate_approver": True, "driver_may_approve": "blocker-free"})
    gate = site_home.gate()
    checked = gate.check(site_home.declare())
    for operator in (None, "driver"):
        with pytest.raises(NotApprovableError) as refused:
            gate.approve(checked, operator=operator, reason="reviewed")
        assert refused.value.id == "approver-not-allowed"


def test_typed_command_is_no_approval_where_another_user_must_approve(live_home: Home) -> None:
    live_home.write(approvals={"require_separate_approver": True})
    gate = live_home.gate().reviewing("sandbox-v1", ("touch", "ran"))
    run = gate.launch_typed(live_home.declare("touch", "ran"), operator="ada")
    assert (run.outcome, ids(run.verdict), ran(live_home)) == (None, ["approver-not-allowed"], set())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_approval_of_the_owner_that_the_site_names_is_believed_and_separate(live_home: Home) -> None:
    other = WORKER + 7
    live_home.write(approvals={"owner": other, "require_separate_approver": True, "directory": "approvals"})
    gate = live_home.gate()
    checked = gate.check(live_home.declare("touch", "ran"))
    (live_home.state / "approvals").mkdir(parents=True, mode=0o755)
    live_home.state.chmod(0o755)
    os.chown(live_home.state / "approvals", other, other)
    with mock.patch("os.geteuid", return_value=other):
        id = str(gate.approve(checked, reason="reviewed").id)
    path = live_home.state / "approvals" / f"{id}.json"
    with pytest.raises(ReadError, match="belongs to uid 0"):
        gate.launch(checked, approval=id)
    os.chown(path, other, other)
    assert gate.launch(checked, approval=id).outcome is not None
    assert [launch["approval"]["approver"] for launch in launches(live_home)] == ["separate"]


# -- once


def outcome_of(run: Run) -> str:
    return "ran" if run.outcome is not None else ",".join(ids(run.verdict))


def test_approval_starts_exactly_one_run_when_processes_race_for_it(live_home: Home) -> None:
    _, _, id = approved(live_home, "mktemp", "ran-XXXXXX")
    line = [
        sys.executable,
        "-P",
        "-m",
        "prespawn",
        "run",
        "--execute",
        live_home.write_declaration("mktemp", "ran-XXXXXX"),
    ]
    options = ["--approval", id, "--site", str(live_home.site), "--format", "json"]
    drivers = [subprocess.Popen([*line, *options], stdout=subprocess.PIPE) for _ in range(4)]
    answers = sorted((one.communicate(timeout=60)[0], one.returncode) for one in drivers)
    found = [[blocker["id"] for blocker in json.loads(text)["verdict"]["blockers"]] for text, _ in answers]
    assert sorted(found) == [[], ["approval-used"], ["approval-used"], ["approval-used"]]
    assert sorted(code for _, code in answers) == [0, 1, 1, 1]
    assert len(ran(live_home)) == 1
    assert len(launches(live_home)) == 1


def test_approval_starts_exactly_one_run_when_threads_race_for_it(live_home: Home) -> None:
    gate, checked, id = approved(live_home, "mktemp", "ran-XXXXXX")
    together, answers = threading.Barrier(6), []

    def launch() -> None:
        together.wait()
        answers.append(outcome_of(gate.launch(checked, approval=id)))

    threads = [threading.Thread(target=launch) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["approval-used"] * 5 + ["ran"]
    assert len(ran(live_home)) == 1
    assert len(launches(live_home)) == 1


def test_run_id_is_taken_once_when_threads_race_for_it(live_home: Home) -> None:
    gate, checked, first = approved(live_home, "mktemp", "ran-XXXXXX", run_id="the-run")
    approvals = [first, *(str(gate.approve(checked, reason="reviewed").id) for _ in range(3))]
    together, answers = threading.Barrier(4), []

    def launch(id: str) -> None:
        together.wait()
        answers.append(gate.launch(checked, approval=id))

    threads = [threading.Thread(target=launch, args=(id,)) for id in approvals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    started = [run for run in answers if run.outcome is not None]
    assert len(started) == 1
    assert all("run-id-reused" in ids(run.verdict) for run in answers if run not in started)
    assert len(ran(live_home)) == 1


# -- what is not believed


def test_approval_that_was_taken_back_is_none(live_home: Home) -> None:
    gate, checked, id = approved(live_home)
    (live_home.state / "approvals" / f"{id}.json").unlink()
    assert ids(gate.launch(checked, approval=id).verdict) == ["approval-missing"]


def forge(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}), "ascii")


def test_approval_outside_the_directory_is_not_believed(site_home: Home) -> None:
    gate, checked, id = approved(site_home)
    given = site_home.state / "approvals" / f"{id}.json"
    (site_home.top / "elsewhere").mkdir()
    copy = site_home.top / "elsewhere" / given.name
    copy.write_bytes(given.read_bytes())
    with pytest.raises(ReadError) as refused:
        gate.launch(checked, approval=str(copy))
    assert refused.value.id == "policy-untrusted-source"
    assert gate.launch(checked, approval="nothing-like-it").outcome is None


def test_approval_under_another_name_is_not_believed(site_home: Home) -> None:
    gate, checked, id = approved(site_home)
    given = site_home.state / "approvals" / f"{id}.json"
    given.rename(given.with_name(f"{id}0.json"))
    with pytest.raises(ReadError, match=f"`id` is `{id}`, and the file shows `{id}0`"):
        gate.launch(checked, approval=f"{id}0")


def test_approval_as_a_link_is_not_believed(site_home: Home) -> None:
    gate, checked, id = approved(site_home)
    given = site_home.state / "approvals" / f"{id}.json"
    given.rename(site_home.top / "a.json")
    given.symlink_to(site_home.top / "a.json")
    with pytest.raises(ReadError, match="is a symbolic link") as refused:
        gate.launch(checked, approval=id)
    assert refused.value.id == "policy-untrusted-source"


def test_approval_that_others_can_write_is_not_believed(site_home: Home) -> None:
    gate, checked, id = approved(site_home)
    for path in (site_home.state / "approvals" / f"{id}.json", site_home.state / "approvals"):
        mode = path.stat().st_mode
        path.chmod(0o777)
        with pytest.raises(ReadError, match="is writable by others") as refused:
            gate.launch(checked, approval=id)
        assert refused.value.id == "policy-untrusted-source"
        path.chmod(mode & 0o777)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_approval_of_another_user_is_not_believed(site_home: Home) -> None:
    gate, checked, id = approved(site_home)
    os.chown(site_home.state / "approvals" / f"{id}.json", WORKER, WORKER)
    with pytest.raises(ReadError, match=f"belongs to uid {WORKER}"):
        gate.launch(checked, approval=id)


def test_approvals_inside_a_workspace_are_not_believed(site_home: Home) -> None:
    if os.geteuid() == 0:
        os.chown(site_home.workspace, 0, 0)  # else the owner of the way is what is wrong first
    site_home.write(approvals={"directory": f"{site_home.workspace}/approvals"})
    gate = site_home.gate()
    with pytest.raises((ReadError, NotApprovableError)):
        gate.approve(gate.check(site_home.declare()), reason="reviewed")
    (site_home.workspace / "approvals").mkdir(mode=0o700)
    with pytest.raises(ReadError, match="lies inside the workspace root"):
        Approvals.open(gate.trusted)


@pytest.mark.parametrize(
    ("change", "blocks"),
    [
        ({"expires_at": 101, "approved_at": 100}, "approval-expired"),
        (
            {"digests": dict.fromkeys(("declaration", "policy", "blockers"), f"sha256:{'0' * 64}")},
            "approval-mismatch",
        ),
        ({"run_id": "another"}, None),
    ],
    ids=str,
)
def test_approval_of_something_else_starts_nothing(live_home: Home, change: dict[str, Any], blocks: str | None) -> None:
    gate, checked, id = approved(live_home, "touch", "ran", run_id="the-run")
    forge(live_home.state / "approvals" / f"{id}.json", **change)
    run = gate.launch(checked, approval=id)
    assert (run.outcome, set(ids(run.verdict))) == (None, {blocks or "approval-mismatch"})
    assert ran(live_home) == set()


def test_declaration_that_was_changed_after_its_approval_is_refused(live_home: Home) -> None:
    gate, _, id = approved(live_home, "touch", "ran")
    other = gate.check(live_home.declare("touch", "other"))
    run = gate.launch(other, approval=id)
    assert (run.outcome, ids(run.verdict), ran(live_home)) == (None, ["approval-mismatch"], set())


def test_policy_that_was_changed_after_an_approval_is_refused(live_home: Home) -> None:
    _, _, id = approved(live_home, "touch", "ran")
    live_home.write(env={"TZ": "UTC"})
    gate = live_home.gate()
    run = gate.launch(gate.check(live_home.declare("touch", "ran")), approval=id)
    assert (run.outcome, ids(run.verdict)) == (None, ["approval-mismatch"])


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"prespawn":"approval/v1"}', b"\x00" * 500])
def test_file_that_is_no_approval_is_refused_aloud(site_home: Home, text: bytes) -> None:
    gate, checked, id = approved(site_home)
    (site_home.state / "approvals" / f"{id}.json").write_bytes(text)
    with pytest.raises(ReadError) as refused:
        gate.launch(checked, approval=id)
    assert refused.value.id.startswith("policy-")


# -- what was accepted as unknown

UNSEEN = "workspace-holds-credentials"


def unseen() -> Any:
    """Make one thing about the workspace unknown in every later look."""
    from prespawn.facts import gather as look

    def blind(*words: Any, **named: Any) -> Any:
        held = look(*words, **named)
        workspace = held.facts.workspace.replace(credentials=Unknown(reason="the test looks away"))
        held.facts = held.facts.replace(workspace=workspace)
        return held

    return mock.patch("prespawn.gate.gather", blind)


def test_accepted_unknown_runs_once_at_level_unknown_and_is_recorded(live_home: Home) -> None:
    gate = live_home.gate()
    with unseen():
        checked = gate.check(live_home.declare("touch", "ran"))
        assert (ids(checked), checked.undecided) == ([LEVEL_UNKNOWN, UNSEEN], True)
        with pytest.raises(NotApprovableError):
            gate.approve(checked, reason="reviewed")
        for accepts in ((UNSEEN,), (LEVEL_UNKNOWN,), (UNSEEN, LEVEL_UNKNOWN)):
            approval = gate.approve(checked, reason="reviewed", accepts=accepts)
            assert approval.accepts == (LEVEL_UNKNOWN, UNSEEN)
            run = gate.launch(checked, approval=approval)
            assert run.outcome is not None
            assert (run.verdict.level.earned, run.verdict.accepted) == ("unknown", (LEVEL_UNKNOWN, UNSEEN))
        with pytest.raises(InputError):
            gate.approve(checked, operator="driver", reason="unattended", accepts=(UNSEEN,))
    assert [launch["approval"]["accepted"] for launch in launches(live_home)] == [[LEVEL_UNKNOWN, UNSEEN]] * 3
    with Registry.open(str(live_home.state)) as registry:
        row = registry.run(str(run.run_id))
    assert row is not None and row.end is not None
    assert row.end["level"] == "unknown"


def test_approval_accepts_only_what_is_unknown_and_open_to_it(site_home: Home) -> None:
    gate = site_home.gate()
    with unseen():
        checked = gate.check(site_home.declare(env_keys=["LD_PRELOAD"]))
        for word, why in (("env-key-not-allowed", "failed"), ("no-such-id", "is no blocker of this verdict")):
            with pytest.raises(InputError, match=f"`{word}` {why}; allowed here: `{LEVEL_UNKNOWN}`, `{UNSEEN}`"):
                gate.approve(checked, reason="reviewed", accepts=(word,))
        with pytest.raises(NotApprovableError):
            gate.approve(checked, reason="reviewed", accepts=(UNSEEN,))


# -- the command line


def cli(home: Home, *words: str) -> int:
    return main([*words, "--site", str(home.site)])


def test_command_line_approves_and_runs_once(live_home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    file = live_home.write_declaration("ls", "/workspace/nothing-here", "--")
    assert cli(live_home, "run", "--execute", file) == 1
    assert "approval-missing" in capfd.readouterr().out
    assert cli(live_home, "approve", file, "--reason", "reviewed", "--lifetime", "5m") == 0
    assert "for 300 s, to be started once" in capfd.readouterr().out
    assert cli(live_home, "run", "--execute", file) == 6
    out, err = capfd.readouterr()
    assert out == ""
    assert "nothing-here" in err
    assert "the worker exited with status 2; level logical" in err
    assert cli(live_home, "run", "--execute", file) == 1
    assert "approval-used" in capfd.readouterr().out


def test_command_line_gives_drivers_one_document_whatever_happens(
    live_home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    def document(code: int, *words: str) -> Any:
        assert cli(live_home, *words, "--format", "json") == code
        out, err = capfd.readouterr()
        assert (out.count("\n"), err) == (1, "")
        return json.loads(out)

    file = live_home.write_declaration("echo", "canary-4711")
    found = document(1, "run", "--execute", file)
    assert (found["prespawn"], found["outcome"]) == ("run/v1", None)
    approval = document(0, "approve", file, "--reason", "reviewed")["approval"]
    found = document(0, "run", "--execute", file, "--approval", approval["id"])
    assert (found["outcome"]["how"], found["outcome"]["status"], found["contract"]["result"]) == ("exited", 0, "kept")
    assert found["verdict"]["level"]["earned"] == "logical"
    assert (live_home.state / "reports" / f"{found['run_id']}.log").read_text() == "canary-4711\n"
    assert "canary-4711" not in json.dumps(found)
    found = document(2, "run", "--execute", file, "--approval", "/etc/passwd")
    assert found["error"]["id"] == "policy-untrusted-source"
    document(0, "approve", file, "--reason", "reviewed")
    with mock.patch("prespawn.hold._seized", side_effect=OSError(5, "Input/output error")):
        found = document(5, "run", "--execute", file)
    assert found["error"]["id"] == "launch-failed"


def test_command_line_refuses_to_approve_what_would_not_run(site_home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    file = site_home.write_declaration("sh", "-c", "true")
    assert cli(site_home, "approve", file, "--reason", "reviewed") == 1
    assert "execution-preview-interpreter" in capfd.readouterr().out
    file = site_home.write_declaration("true", execute=False)
    assert cli(site_home, "approve", file, "--reason", "reviewed") == 1
    assert "execute-not-declared" in capfd.readouterr().out
    file = site_home.write_declaration("true")
    assert cli(site_home, "approve", file, "--reason", " ") == 2
    assert cli(site_home, "approve", file, "--reason", "reviewed", "--lifetime", "soon") == 2
    assert cli(site_home, "approve", file, "--reason", "reviewed", "--accept", "env-key-loader") == 2
    assert not (site_home.state / "approvals").exists()
    assert cli(site_home, "run", file, "--approval", "x") == 2


def test_command_line_approves_on_the_facts_that_a_driver_recorded(
    site_home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    file, facts = site_home.write_declaration("true"), str(site_home.top / "facts.json")
    assert cli(site_home, "check", file, "--record-facts", facts) == 0
    time.sleep(1.1)
    assert cli(site_home, "approve", file, "--reason", "reviewed", "--facts", facts) == 0
    assert cli(site_home, "check", file) == 0
    gate = site_home.gate()
    given = gate.approval_for(gate.check(site_home.declare("true")))
    assert given is not None
    assert given.used is False
