"""A parent that is killed, or refused by the system, at any step: one true end for its run, and nothing else is left.

Each trial is a process of its own that adopts every orphan, launches in a child, and looks at what is there afterwards.
``PRESPAWN_TRIALS=250`` makes the trials more; ``PRESPAWN_TRIALS=all`` takes every call of a launch.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from support import as_user
from support.faults import Faults, failing, killed
from support.site_home import Home, live_home, site_home

from prespawn import kernel
from prespawn.cli import main
from prespawn.policy.canonical import digest_bytes
from prespawn.policy.errors import HostError, InputError
from prespawn.process import boot_id
from prespawn.receipts import DIRECTORY, Receipts, verify
from prespawn.registry import ENDED, LOST, NEVER_STARTED, UNSETTLED, Registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prespawn.registry import Run

__all__ = ["live_home", "site_home"]  # the fixtures

ASKED = os.environ.get("PRESPAWN_TRIALS", "30")
TRIALS = 1_000_000 if ASKED == "all" else int(ASKED)
CODES = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EINTR, errno.EAGAIN)
FILES = {"approvals", "receipts", "registry.db", "reports"}


def launched(home: Home, number: int, within: Faults | None = None) -> str:
    """Check, approve and launch a run that leaves a mark, and say what came of it."""
    gate = home.gate()
    checked = gate.check(home.declare("touch", f"mark-{number}", run_id=f"run-{number}"))
    approval = gate.approve(checked, operator="driver", reason="a trial")
    try:
        if within is None:
            run = gate.launch(checked, approval=approval)
        else:
            with within:
                run = gate.launch(checked, approval=approval)
    except (HostError, InputError) as error:
        return error.id
    return "blocked" if run.outcome is None else run.outcome.how if run.unrecorded is None else run.unrecorded


def in_child(act: Callable[[], Any]) -> int:
    """Run something in a child of this process and return its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid


def row(home: Home, number: int) -> Run | None:
    if not (home.state / "registry.db").exists():
        return None
    with Registry.open(str(home.state)) as registry:
        return registry.run(f"run-{number}")


def truth(home: Home, number: int) -> str:
    """Return how a run stands, which must be true and whole; nothing else may be left of it."""
    found = row(home, number)
    marked = (home.workspace / f"mark-{number}").exists()
    if found is None:
        assert not marked
        return "not entered"
    assert found.state not in UNSETTLED
    assert found.end is not None
    assert found.state != NEVER_STARTED or not marked, "the registry says that what ran did not"
    assert found.state != ENDED or found.end["how"] != "exited" or marked == (found.end["status"] == 0)
    return f"{found.state}: {found.end['how']}"


def clean(home: Home) -> None:
    """Nothing unfinished lies below the state directory, and every receipt is one that a run names."""
    assert {path.name for path in home.state.iterdir()} <= FILES
    assert not [path for path in home.state.rglob("*") if ".new" in path.name]
    assert main(["receipts", "verify", "--site", str(home.site)]) in (0, 3)


def killed_after(home: Home, number: int, seconds: float) -> str:
    pid = in_child(lambda: launched(home, number))
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    home.gate().recover()
    return truth(home, number)


def killed_at(home: Home, number: int, at: int) -> str:
    pid = in_child(lambda: launched(home, number, Faults(at, killed)))
    os.waitpid(pid, 0)
    home.gate().recover()
    return truth(home, number)


def calls(home: Home) -> list[str]:
    """Return every call of one launch that nothing befalls."""

    def counted() -> list[str]:
        within = Faults(0, killed)
        assert launched(home, 0, within) == "exited"
        return within.calls

    found = as_user.call(None, counted)
    assert len(found) > 100
    return list(found)


def spread(count: int) -> list[int]:
    """Return call numbers spread over a launch, as many as trials are asked for."""
    return sorted({1 + number * count // min(count, TRIALS) for number in range(min(count, TRIALS))})


def test_parent_killed_at_random_moments_leaves_one_true_end_a_run_and_nothing_else(live_home: Home) -> None:
    moments, seen = random.Random(20261201), set()
    for number in range(min(TRIALS, 250)):
        seen.add(as_user.call(None, killed_after, live_home, number, moments.uniform(0.0, 0.3)))
    clean(live_home)
    assert seen <= {
        "not entered", f"{NEVER_STARTED}: parent-gone", f"{LOST}: parent-gone", f"{ENDED}: exited"
    }  # fmt: skip
    assert len(seen) > 1


def test_parent_killed_between_two_steps_leaves_one_true_end_a_run_and_nothing_else(live_home: Home) -> None:
    count, seen = len(calls(live_home)), set()
    steps = spread(count)
    last = [at for at in range(count, 0, -1) if at not in steps]  # a trial after the release, however many steps it has
    for number, at in enumerate((*steps, *last[:TRIALS]), 1):
        seen.add(as_user.call(None, killed_at, live_home, number, at))
    clean(live_home)
    assert seen >= {"not entered", f"{NEVER_STARTED}: parent-gone", f"{LOST}: parent-gone"}
    assert seen <= {"not entered", f"{NEVER_STARTED}: parent-gone", f"{LOST}: parent-gone", f"{ENDED}: exited"}


def refused_at(home: Home, number: int, at: int, code: int) -> tuple[str, str]:
    descriptors = set(os.listdir("/proc/self/fd"))
    said = launched(home, number, Faults(at, failing(code)))
    assert set(os.listdir("/proc/self/fd")) == descriptors, "a descriptor is left open"
    return said, truth(home, number)


def test_system_that_refuses_a_step_leaves_nothing_open_and_a_true_registry(live_home: Home) -> None:
    made = calls(live_home)
    wrong: list[str] = []
    for number, at in enumerate(spread(len(made)), 1):
        for code in CODES if ASKED == "all" else (CODES[number % len(CODES)],):
            trial = number * 10 + CODES.index(code)
            try:
                said, stands = as_user.call(None, refused_at, live_home, trial, at, code)
            except AssertionError as failed:
                wrong.append(f"call {at} ({made[at - 1]}) {errno.errorcode[code]}: {str(failed)[-900:]}")
                continue
            if stands.startswith(ENDED) and said not in ("exited", "output-ceiling"):
                wrong.append(f"call {at} ({made[at - 1]}) {errno.errorcode[code]}: said {said}, stands {stands}")
    assert wrong == [], "\n".join(wrong)
    live_home.gate().recover()  # a file that could not be unlinked, of a writer that is gone
    clean(live_home)


# -- what recover settles, step by step


def left_open(home: Home, number: int, step: str) -> None:
    """Leave a run open as a parent does that is killed as it begins a step."""
    with mock.patch(step, lambda *_, **__: killed(step)):
        launched(home, number)


@pytest.mark.parametrize(
    ("step", "ends", "kinds"),
    [
        ("prespawn.receipts.Receipts.write", f"{NEVER_STARTED}: parent-gone", ["terminal"]),
        ("prespawn.supervise.run", f"{NEVER_STARTED}: parent-gone", ["launch", "terminal"]),
        ("prespawn.registry.Registry.started", f"{NEVER_STARTED}: parent-gone", ["launch", "attestation", "terminal"]),
        ("prespawn.hold.Hold.release", f"{LOST}: parent-gone", ["launch", "attestation", "terminal"]),
        ("prespawn.contract.Watch.end", f"{LOST}: parent-gone", ["launch", "attestation", "terminal"]),
        ("prespawn.registry.Registry.ended", f"{ENDED}: exited", ["launch", "attestation", "terminal"]),
    ],
)
def test_run_left_open_at_a_step_is_settled_truthfully(live_home: Home, step: str, ends: str, kinds: list[str]) -> None:
    def trial() -> tuple[str, list[str]]:
        with mock.patch.dict("prespawn.registry.MOVES", clear=False) as moves:
            if step.endswith(".ended"):
                moves[ENDED] = lambda *_: killed(step)
            pid = in_child(lambda: left_open(live_home, 1, step))
            os.waitpid(pid, 0)
        found = row(live_home, 1)
        assert found is not None
        assert found.state in UNSETTLED
        (settled,) = live_home.gate().recover().runs
        assert settled.run_id == "run-1"
        assert live_home.gate().recover().runs == ()
        found = row(live_home, 1)
        assert found is not None
        parts = [part for part in (found.entry, found.start, found.end) if part is not None and "receipt" in part]
        chain = verify("run-1", [str(part["receipt"]) for part in parts], reader(live_home))
        return truth(live_home, 1), [receipt["kind"] for receipt in chain]

    assert as_user.call(None, trial) == (ends, kinds)
    clean(live_home)


def reader(home: Home) -> Callable[[str], bytes]:
    return lambda digest: (home.state / DIRECTORY / f"{digest.replace(':', '-')}.json").read_bytes()


def test_run_of_a_living_parent_stays_its_parents(live_home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    with Registry.open(make(live_home)) as registry:
        registry.reserve("going-on", entry())
        assert main(["recover", "--site", str(live_home.site)]) == 0
        assert capfd.readouterr().out == f"going-on: goes on under process {os.getpid()}\n"
        assert [run.run_id for run in registry.unsettled()] == ["going-on"]


def test_run_of_another_boot_is_lost_whatever_was_written(live_home: Home) -> None:
    with Registry.open(make(live_home)) as registry:
        registry.reserve("before", {**entry(), "parent_boot_id": "another"})
    (settled,) = live_home.gate().recover().runs
    assert (settled.run_id, settled.state) == ("before", LOST)


def make(home: Home) -> str:
    home.state.mkdir(mode=0o700)
    return str(home.state)


def entry() -> dict[str, str | int]:
    from prespawn.process import start_time

    digests = dict.fromkeys(("declaration", "policy", "facts", "blockers", "receipt"), f"sha256:{'0' * 64}")
    return {
        **digests, "profile": "sandbox-v1", "adapter": "exec@1", "level": "logical", "parent_pid": os.getpid(),
        "parent_start_time": start_time(os.getpid()), "parent_boot_id": boot_id(), "reserved_at": int(time.time()),
    }  # fmt: skip


# -- a registry that cannot be used: nothing runs


@pytest.mark.parametrize("content", [b"", b"\x00" * 8192, b"SQLite format 3\x00" + b"x" * 4080, b"not a registry"])
def test_registry_that_is_none_starts_nothing(
    live_home: Home, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    gate = live_home.gate()
    checked = gate.check(live_home.declare("touch", "mark"))
    approval = gate.approve(checked, operator="driver", reason="a trial")
    path = live_home.state / "registry.db"
    path.write_bytes(content)
    path.chmod(0o600)
    with mock.patch("prespawn.start.spawn") as spawned:
        run = gate.launch(checked, approval=approval)
        assert run.outcome is None
        assert "registry-corrupt" in {blocker.id for blocker in run.verdict.blockers}
        file = live_home.write_declaration("touch", "mark")
        assert main(["run", "--execute", file, "--site", str(live_home.site), "--format", "json"]) == 1
        found = {blocker["id"] for blocker in json.loads(capfd.readouterr().out)["verdict"]["blockers"]}
        assert "registry-corrupt" in found
        assert main(["recover", "--site", str(live_home.site)]) == 5
    assert spawned.call_count == 0
    assert path.read_bytes() == content


def test_registry_that_breaks_between_check_and_entry_starts_nothing(live_home: Home) -> None:
    gate = live_home.gate()
    checked = gate.check(live_home.declare("touch", "mark"))
    approval = gate.approve(checked, operator="driver", reason="a trial")
    full = HostError("registry-not-written", "no space left")
    with (
        mock.patch("prespawn.start.spawn") as spawned, mock.patch.object(Registry, "reserve", side_effect=full),
        pytest.raises(HostError) as raised,
    ):  # fmt: skip
        gate.launch(checked, approval=approval)
    assert (raised.value.id, spawned.call_count) == ("registry-not-written", 0)


def test_end_that_cannot_be_written_is_said_and_the_clean_up_is_done(live_home: Home) -> None:
    write = Receipts.write

    def full(self: Receipts, text: str) -> None:
        if '"kind":"terminal"' in text:
            raise HostError("receipt-not-written", "no space left")
        write(self, text)

    def trial() -> tuple[str | None, str, str]:
        gate = live_home.gate()
        checked = gate.check(live_home.declare("touch", "mark-1", run_id="run-1"))
        approval = gate.approve(checked, operator="driver", reason="a trial")
        with mock.patch.object(Receipts, "write", full):
            run = gate.launch(checked, approval=approval)
        assert run.outcome is not None
        return run.unrecorded, run.outcome.how, truth(live_home, 1)

    said = as_user.call(None, trial)
    assert said == ("receipt-not-written", "exited", f"{LOST}: receipt-not-written")
    assert (live_home.workspace / "mark-1").exists()


# -- receipts, from the command line


def receipts(home: Home, *words: str) -> int:
    return main(["receipts", *words, "--site", str(home.site)])


def test_receipts_are_listed_shown_and_proved(live_home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    assert receipts(live_home, "list") == receipts(live_home, "verify") == 3
    assert receipts(live_home, "show", "run-1") == 2
    assert "run-unknown" in capfd.readouterr().err
    assert launched(live_home, 1) == "exited"
    assert receipts(live_home, "list") == 0
    assert capfd.readouterr().out == "run-1: ended: exited 0, contract kept, level logical\n"
    assert receipts(live_home, "show", "run-1") == 0
    kinds = [json.loads(line)["kind"] for line in capfd.readouterr().out.splitlines()]
    assert kinds == ["launch", "attestation", "terminal"]
    assert receipts(live_home, "verify") == 0
    assert capfd.readouterr().out == "run-1: proved\n"


def changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def gone(path: Path) -> None:
    path.unlink()


def foreign(path: Path) -> None:
    """Put another run's receipt in its place."""
    other = max((one for one in path.parent.iterdir() if b"run-2" in one.read_bytes()), key=lambda one: one.name)
    path.write_bytes(other.read_bytes())


@pytest.mark.parametrize("kind", ["launch", "attestation", "terminal"])
@pytest.mark.parametrize("tamper", [changed, gone, foreign])
def test_receipt_that_was_tampered_with_is_named(
    live_home: Home, kind: str, tamper: Callable[[Path], None], capfd: pytest.CaptureFixture[str]
) -> None:
    assert launched(live_home, 1) == launched(live_home, 2) == "exited"
    mine = [one for one in (live_home.state / DIRECTORY).iterdir() if b'"run_id":"run-1"' in one.read_bytes()]
    (path,) = [one for one in mine if f'"kind":"{kind}"'.encode() in one.read_bytes()]
    tamper(path)
    capfd.readouterr()
    assert receipts(live_home, "verify") == 1
    out = capfd.readouterr().out.splitlines()
    digest = path.stem.replace("-", ":", 1)
    assert out[0].startswith(f"run-1: receipt `{digest}`: ")
    assert out[0].endswith("(receipt-tampered)")
    assert out[1] == "run-2: proved"
    assert receipts(live_home, "verify", "run-2") == 0
    assert receipts(live_home, "show", "run-1") == 1


def test_receipt_that_no_run_names_is_named(live_home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    assert launched(live_home, 1) == "exited"
    text = (live_home.state / DIRECTORY).iterdir().__next__().read_bytes() + b" "
    digest = digest_bytes(text)
    (live_home.state / DIRECTORY / f"{digest.replace(':', '-')}.json").write_bytes(text)
    assert receipts(live_home, "verify") == 1
    assert capfd.readouterr().out.splitlines()[-1].startswith(f"{digest}: no run names it")


# -- a worker that goes on when its parent is killed


def processes(mark: str) -> list[str]:
    """Return the command lines of this host's processes that hold a word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if mark.encode() in words.split(b"\0"):
            found.append(f"{pid} {words!r}")
    return found


@pytest.mark.parametrize("profile", ["sandbox-v1", "logical-v1"])
def test_worker_whose_parent_was_killed_is_ended_and_lost(live_home: Home, profile: str) -> None:
    seconds = f"{random.SystemRandom().randrange(10**5, 10**6)}"
    words = ["sleep", seconds]
    live_home.write(
        activated=[profile], pairs=[{"adapter": "exec@1", "profile": profile}], argv={"logical-v1": [words]}
    )

    def parent() -> None:
        gate = live_home.gate()
        checked = gate.check(live_home.declare(*words, profile=profile, run_id="run-1"))
        gate.launch(checked, approval=gate.approve(checked, operator="driver", reason="a trial"))

    def trial() -> str:
        pid = in_child(parent)
        for _ in range(500):
            found = row(live_home, 1)
            if found is not None and found.start is not None and processes(seconds):
                break
            time.sleep(0.02)
        assert processes(seconds)
        (going_on,) = live_home.gate().recover().runs
        assert (going_on.state, going_on.parent) == (None, pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        live_home.gate().recover()
        for _ in range(100):
            if not processes(seconds):
                break
            time.sleep(0.02)
        assert processes(seconds) == []
        return truth(live_home, 1)

    assert as_user.call(None, trial) == f"{LOST}: parent-gone"
    clean(live_home)


# -- a state directory that takes nothing


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system that is full")
@pytest.mark.parametrize("options", ["size=64k", "size=64k,nr_inodes=3", "ro"])
def test_state_directory_that_takes_nothing_starts_nothing(live_home: Home, options: str) -> None:
    def trial() -> tuple[str, int]:
        kernel.private_mounts()
        gate = live_home.gate()
        checked = gate.check(live_home.declare("touch", "mark"))
        approval = gate.approve(checked, operator="driver", reason="a trial")
        (text,) = [path.read_bytes() for path in (live_home.state / "approvals").iterdir()]
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(live_home.state)], check=True)
        (live_home.state / "approvals").mkdir(mode=0o700)
        given = live_home.state / "approvals" / f"{approval.id}.json"
        given.write_bytes(text)
        given.chmod(0o600)
        if options == "ro":
            subprocess.run(["mount", "-o", "remount,ro", str(live_home.state)], check=True)
        else:
            subprocess.run(["mount", "-o", f"remount,{options}", str(live_home.state)], check=True)
            fill(live_home.state / "rest")
        with mock.patch("prespawn.start.spawn") as spawned:
            try:
                run = gate.launch(checked, approval=approval)
                said = ",".join(sorted({blocker.id for blocker in run.verdict.blockers}))
            except HostError as error:
                said = error.id
        return said, spawned.call_count

    said, spawned = as_user.call(None, trial)
    assert spawned == 0
    assert said == ("approval-mismatch,registry-not-written" if options == "ro" else "registry-not-written")
    assert not (live_home.workspace / "mark").exists()


def fill(path: Path) -> None:
    """Write until there is no space left, or there are no names left."""
    try:
        with path.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
    except OSError:
        return
