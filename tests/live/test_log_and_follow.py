"""The log of a real run, made where it was checked, and what a follower sees while the run goes on."""

from __future__ import annotations

import os
import resource
import stat
import threading
from typing import Any
from unittest import mock

import pytest
from support import plans, runtimes
from support.sandboxes import Sandbox, sandbox

from prespawn.cli.follow import code_of, line
from prespawn.follow import Progress, follow
from prespawn.gate import Gate
from prespawn.policy.errors import HostError, InputError
from prespawn.pumps import Streams
from prespawn.registry import Registry

__all__ = ["sandbox"]  # the fixture

RUN = "run-1"
LOG = "reports/run-1.log"


@pytest.fixture
def bwrap() -> str:
    """The one bubblewrap that a gate finds here."""
    return runtimes.needed(next(iter(runtimes.bubblewraps()), None))


def gate_of(home: str, words: tuple[str, ...], **output: str) -> Gate:
    """Return the built-in site's gate for reviewed words; ``output`` changes the profile's rule for its log."""
    os.chdir(f"{home}/workspace")
    os.environ.update({"XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/none"})
    gate = Gate.load().reviewing("sandbox-v1", words)
    if not output:
        return gate
    trusted = gate.trusted
    profile = trusted.policy.profiles["sandbox-v1"]
    changed = profile.replace(output=profile.output.replace(**output))
    policy = trusted.policy.replace(profiles={**trusted.policy.profiles, "sandbox-v1": changed})
    return Gate(trusted.replace(policy=policy))


def declaration(words: tuple[str, ...], **changes: Any) -> dict[str, Any]:
    return {
        "prespawn": "declaration/v1", "run_id": RUN, "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".",
        "declared_files": [], "env_keys": [], "execution": {"argv": list(words)}, "execute": True,
        "file_contract": {"mode": "read-only"}, **changes,
    }  # fmt: skip


def approved(gate: Any, checked: Any) -> Any:
    return gate.approve(checked, operator="ada", reason="a test")


def launched(gate: Gate, declared: dict[str, Any]) -> Any:
    checked = gate.check(declared)
    assert checked.allowed, checked.blockers
    return gate.launch(checked, approval=approved(gate, checked))


def play(sandbox: Sandbox, how: Any, *arguments: Any) -> Any:
    os.mkdir(f"{sandbox.home}/state", 0o700)
    if sandbox.parent == "user":
        status = os.stat(sandbox.workspace)
        os.chown(f"{sandbox.home}/state", status.st_uid, status.st_gid)
    return sandbox.call(how, sandbox.home, *arguments)


def logs(home: str) -> dict[str, tuple[int, str]]:
    """Return mode and content of every file below ``reports``."""
    found, top = {}, f"{home}/state/prespawn/reports"
    for directory, _, names in os.walk(top):
        for name in names:
            path = f"{directory}/{name}"
            with open(path, encoding="utf-8") as file:
                found[os.path.relpath(path, top)] = (stat.S_IMODE(os.stat(path).st_mode), file.read())
    return found


def spoken(home: str, **changes: Any) -> Any:
    words = ("/bin/sh", "-c", "echo out; echo err >&2; exit 3")
    run = launched(gate_of(home, words), declaration(words, **changes))
    return run.outcome.status, logs(home)


def test_log_holds_both_streams_and_is_its_owners_alone(sandbox: Sandbox) -> None:
    status, found = play(sandbox, spoken)
    assert status == 3
    ((name, (mode, text)),) = found.items()
    assert name.endswith(f"{RUN}.log")
    assert (mode, sorted(text.split())) == (0o600, ["err", "out"])


def test_log_stands_at_the_declared_path(sandbox: Sandbox) -> None:
    reports = Gate.load().policy.site.workspaces["main"].reports
    _, found = play(sandbox, lambda home: spoken(home, log_path=f"{reports}/mine.txt"))
    assert [name.rpartition("/")[2] for name in found] == ["mine.txt"]


def planted(home: str, plant: str) -> Any:
    """Launch with something in the log's place that was put there after the check."""
    words = ("/bin/sh", "-c", "touch ran; echo out")
    gate = gate_of(home, words)
    reports = gate.policy.site.workspaces["main"].reports
    directory = f"{home}/state/prespawn/{reports}"
    os.makedirs(directory, 0o700)
    os.chmod(f"{home}/state/prespawn", 0o700)
    with open(f"{home}/bashrc", "w") if os.access(home, os.W_OK) else open(f"{home}/state/bashrc", "w") as file:
        file.write("precious")
    target = file.name
    checked = gate.check(declaration(words))
    if plant == "link":
        os.symlink(target, f"{directory}/{RUN}.log")
    else:
        with open(f"{directory}/{RUN}.log", "w") as there:
            there.write("precious")
    try:
        gate.launch(checked, approval=approved(gate, checked))
    except HostError as error:
        with open(target) as file:
            return error.id, file.read(), os.listdir(f"{home}/workspace")
    return "launched"


@pytest.mark.parametrize("plant", ["link", "file"])
def test_what_stands_at_the_path_is_never_touched(sandbox: Sandbox, plant: str) -> None:
    assert play(sandbox, planted, plant) == ("log-path-exists", "precious", [])


def typed(home: str) -> Any:
    words = ("/bin/sh", "-c", "echo out")
    gate_of(home, words).launch_typed(declaration(words), operator="ada")
    return logs(home)


def test_typed_run_has_no_log_unless_it_declares_one(sandbox: Sandbox) -> None:
    assert play(sandbox, typed) == {}


def lifecycle(home: str) -> Any:
    words = ("/bin/sh", "-c", "echo a-secret-answer; exit 0")
    launched(gate_of(home, words, log="lifecycle"), declaration(words))
    seen = list(follow(f"{home}/state/prespawn", RUN))
    return logs(home), [(progress.state, progress.written) for progress in seen]


def test_lifecycle_log_holds_the_parents_lines_alone(sandbox: Sandbox) -> None:
    found, seen = play(sandbox, lifecycle)
    ((mode, text),) = found.values()
    first, *lines = text.splitlines()
    assert (mode, first, len(lines)) == (0o600, f"{len('a-secret-answer') + 1:020}", 2)
    assert "secret" not in text
    assert seen == [("ended", 16)]


def followed(home: str) -> Any:
    """Follow a run from another thread while it writes, and let it go on only when that was seen."""
    words = ("/bin/sh", "-c", "head -c 5000 /dev/zero; read x; echo $x; exit 0")
    gate = gate_of(home, words)
    checked = gate.check(declaration(words))
    stdin, go_on = os.pipe()
    done: list[Any] = []

    def drive() -> None:
        approval = approved(gate, checked)
        done.append(gate.launch(checked, approval=approval, streams=Streams(stdin=stdin)))

    driving = threading.Thread(target=drive)
    driving.start()
    seen: list[Progress] = []
    while not seen and driving.is_alive():
        try:
            for progress in gate.follow(RUN):
                seen.append(progress)
                if progress.written == 5000 and progress.state == "started" and go_on >= 0:
                    os.write(go_on, b"12345\n")
                    os.close(go_on)
                    go_on = -1
        except (InputError, HostError):
            continue  # the registry or the run is not there yet
    driving.join()
    os.close(stdin)
    return [(progress.state, progress.written) for progress in seen], dict(seen[-1]), done[0].outcome.status


def test_follower_sees_state_and_bytes_while_it_runs(sandbox: Sandbox) -> None:
    seen, last, status = play(sandbox, followed)
    assert ("started", 5000) in seen
    assert (seen[-1], status) == (("ended", 5006), 0)
    assert (last["end"]["how"], last["end"]["contract"], last["is_orphaned"]) == ("exited", "kept", False)


def waiting(home: str) -> Any:
    """Count how often a silent run is looked at in a second."""
    words = ("/bin/sh", "-c", "sleep 1")
    gate = gate_of(home, words)
    checked = gate.check(declaration(words))
    approval = approved(gate, checked)
    driving = threading.Thread(target=lambda: gate.launch(checked, approval=approval))
    looks = []
    really = Registry.run

    def counted(self: Registry, run_id: str) -> Any:
        looks.append(run_id)
        return really(self, run_id)

    driving.start()
    seen: list[Progress] = []
    with mock.patch.object(Registry, "run", counted):
        while not seen and driving.is_alive():
            try:
                seen.extend(gate.follow(RUN))
            except (InputError, HostError):
                looks.clear()
    driving.join()
    return len(looks)


def test_silent_run_is_not_polled(sandbox: Sandbox) -> None:
    assert play(sandbox, waiting) <= 8


def orphaned(home: str) -> Any:
    """Follow a run whose parent ends without a word."""
    words = ("/bin/sh", "-c", "sleep 60")
    gate = gate_of(home, words)
    checked = gate.check(declaration(words))
    parent = os.fork()
    if parent == 0:
        try:
            approval = approved(gate, checked)
            gate.launch(checked, approval=approval)
        finally:
            os._exit(1)
    seen: list[Progress] = []
    while not seen and os.waitid(os.P_PID, parent, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        try:
            for progress in gate.follow(RUN):
                seen.append(progress)
                if progress.state == "started" and not progress.is_orphaned:
                    os.kill(parent, 9)
                    os.waitpid(parent, 0)
        except (InputError, HostError):
            continue
    return seen[-1].state, seen[-1].is_orphaned, line(seen[-1]), code_of(seen[-1])


def test_run_whose_parent_is_gone_is_told(sandbox: Sandbox) -> None:
    state, is_orphaned, text, code = play(sandbox, orphaned)
    assert (state, is_orphaned, code) == ("started", True, 6)
    assert text.endswith("its parent is gone, and `prespawn recover` settles it")


def flooded(values: dict[str, Any], log: str) -> Any:
    """Run a flood on both streams and return how it ended, the log's size and how much this process grew."""
    from prespawn.supervise import run

    fd = os.open(log, os.O_RDWR | os.O_CREAT, 0o600)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = run(plans.plan(**values), Streams(log=fd))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    size = os.fstat(fd).st_size
    os.close(fd)
    return outcome.how, outcome.stdout + outcome.stderr, size, grown


@pytest.mark.parametrize(
    ("limits", "how"),
    [
        ({"output": 4 << 20, "wall_clock": 30_000}, "output-ceiling"),
        ({"output": 1 << 40, "wall_clock": 700}, "deadline"),
    ],
)
def test_flood_is_cut_or_ended_in_time_and_does_not_grow_the_parent(
    sandbox: Sandbox, limits: dict[str, int], how: str
) -> None:
    from support.scenarios import Scenario

    scenario = Scenario("flood", ("sh", "-c", "yes & yes >&2"), {}, limits=limits)
    log = f"{sandbox.workspace}/log"
    ended, written, size, grown = sandbox.call(flooded, sandbox.fields(scenario), log)
    assert (ended, size) == (how, written)
    assert size <= limits["output"]
    assert grown < 8 << 10  # KiB


def test_unknown_run_is_named(sandbox: Sandbox) -> None:
    def ask(home: str) -> Any:
        typed(home)
        try:
            list(Gate.load().follow("no-such-run"))
        except InputError as error:
            return error.id, str(error)
        return None

    wanted = "the registry has no run `no-such-run`; allowed here: the id of a run of this site"
    assert play(sandbox, ask) == ("run-unknown", wanted)
