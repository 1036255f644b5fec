"""Host processes under ``logical-v1``: what is started is what the site lists, and nothing that comes of it stays."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.cli import Shell, shell

from prespawn import Gate, host_run, spawn
from prespawn.launchers import local
from prespawn.policy.errors import HostError
from prespawn.pumps import Streams
from prespawn.receipts import Receipts, verify
from prespawn.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["shell"]  # the fixture

MARK = "PRESPAWN-HOST-RUN"


class Host:
    """A site that lists one shell script as a whole vector, and launches it."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.workspace: Path = shell.workspace

    def launch(self, script: str, *, contract: tuple[str, ...] = ("**",), **how: Any) -> Any:
        words = ["/bin/sh", "-c", script]
        self.shell.write_site(
            activated=["logical-v1"],
            pairs=[{"adapter": "exec@1", "profile": "logical-v1"}],
            argv={"logical-v1": [words]},
            env={"TZ": "UTC"},
        )
        gate = Gate.load(str(self.shell.site))
        checked = gate.check({
            "prespawn": "declaration/v1", "profile": "logical-v1", "adapter": "exec@1", "cwd": ".",
            "declared_files": [], "env_keys": ["TZ"], "execution": {"argv": words}, "execute": True,
            "file_contract": {"mode": "mutation", "allowed_paths": list(contract)},
        })  # fmt: skip
        assert checked.allowed, checked.blockers
        assert gate.preview(checked)[:2] == ("env", "-i")
        approval = gate.approve(checked, operator="ada", reason="a test")
        return gate.launch(checked, approval=approval, **how)

    def said(self, script: str, **how: Any) -> tuple[Any, str]:
        out = os.memfd_create("out")
        run = self.launch(script, streams=Streams(stdout=out, stderr=out, **how))
        text = os.pread(out, 1 << 20, 0).decode()
        os.close(out)
        return run, text


@pytest.fixture
def host(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("SECRET", "canary-4711")
    return Host(shell)


def alive(word: str) -> list[int]:
    """Return the processes whose command line holds a word."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if word.encode() in file.read():
                        found.append(int(name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize(("script", "how", "number"), [("exit 0", "exited", 0), ("exit 7", "exited", 7),
                                                       ("kill -9 $$", "signalled", 9)])  # fmt: skip
def test_end_of_the_worker_is_told_as_it_was(host: Host, script: str, how: str, number: int) -> None:
    run = host.launch(script)
    outcome = run.outcome
    assert (outcome.how, outcome.status if how == "exited" else outcome.signal) == (how, number)
    assert (run.verdict.level.earned, run.contract.result, run.contract.seen) == ("logical", "kept", "compared")
    assert {"network", "process", "mounts", "resources"} <= set(run.verdict.not_claimed)


def test_worker_has_what_was_planned_and_nothing_else(host: Host) -> None:
    run, text = host.said(
        "/usr/bin/env | sort; ls /proc/self/fd; pwd; umask; id -u; cut -d' ' -f6 /proc/$$/stat; echo $$;"
        " grep -E 'NoNewPrivs' /proc/self/status; ulimit -c"
    )
    assert run.outcome.status == 0
    lines = text.splitlines()
    environment = [line for line in lines if "=" in line]
    assert [line.partition("=")[0] for line in environment if line[:4] not in ("PWD=", "OLDP", "SHLV", "_=/u")] == [
        "LANG", "PATH", "TZ",
    ]  # fmt: skip
    rest = [line for line in lines if "=" not in line]
    assert rest[:4] == ["0", "1", "2", "3"]  # 3 is `ls` looking
    owner = host.workspace.stat().st_uid
    assert rest[4:7] == [str(host.workspace), "0022", str(owner)]
    assert rest[7] == rest[8]  # it leads a session of its own
    assert rest[9:] == ["NoNewPrivs:\t1", "0"]
    assert owner != 0
    assert "canary" not in text


DETACHED = f"(setsid sh -c '(while :; do sleep 0.05; done; : {MARK}) & exec sleep 77' & ) ; "


@pytest.mark.parametrize("rest", ["exit 0", "exit 3"])
def test_who_detaches_is_found_and_ended(host: Host, rest: str) -> None:
    run = host.launch(f"{DETACHED} sleep 0.1; {rest}")
    assert run.outcome.how == "exited"
    assert alive(MARK) == []


def test_cancel_ends_all_of_it(host: Host) -> None:
    cancel = os.eventfd(1)
    started = time.monotonic()
    run = host.launch(f"{DETACHED} sleep 60", cancel=cancel)
    os.close(cancel)
    assert (run.outcome.how, alive(MARK)) == ("cancelled", [])
    assert time.monotonic() - started < 5


def test_worker_that_stops_itself_and_ignores_signals_is_ended(host: Host) -> None:
    reading, writing = os.pipe()
    run = (
        host.launch(f"trap '' TERM INT HUP; {DETACHED} kill -STOP $$", cancel=reading)
        if os.write(writing, b"x")
        else None
    )
    os.close(reading)
    os.close(writing)
    assert run is not None
    assert (run.outcome.how, alive(MARK)) == ("cancelled", [])


def test_forking_without_end_is_ended(host: Host) -> None:
    cancel = os.eventfd(0)
    import threading

    timer = threading.Timer(0.5, lambda: os.eventfd_write(cancel, 1))
    timer.start()
    run = host.launch(f"f() {{ : {MARK}; sleep 0.02; f & }}; f; f; sleep 30", cancel=cancel)
    timer.join()
    os.close(cancel)
    assert (run.outcome.how, alive(MARK)) == ("cancelled", [])


def test_descendant_that_keeps_a_stream_open_does_not_hold_the_run(host: Host) -> None:
    started = time.monotonic()
    run, text = host.said(f"{DETACHED} echo said; exit 0")
    assert (run.outcome.how, text) == ("exited", "said\n")
    assert time.monotonic() - started < 5


def test_streams_flow_both_ways(host: Host) -> None:
    run, text = host.said("cat; echo err >&2", stdin=b"x" * 200_000)
    assert run.outcome.status == 0
    assert text == "x" * 200_000 + "err\n"


def test_violated_contract_is_told_beside_the_exit(host: Host) -> None:
    run = host.launch("mkdir out; : > out/a; : > stray", contract=("out/**",))
    assert (run.outcome.status, run.contract.result) == (0, "violated")
    assert [(change.path, change.how) for change in run.contract.violations] == [("stray", "added")]


def test_keeper_that_is_gone_is_a_lost_run_and_the_worker_is_ended(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []
    really = spawn.spawn

    def spawned(*given: Any) -> int:
        pids.append(really(*given))
        return pids[-1]

    monkeypatch.setattr(host_run, "spawn", spawned)
    held = host_run._Kept.work

    def killed(self: Any, *given: Any) -> Any:
        os.kill(pids[0], 9)
        return held(self, *given)

    monkeypatch.setattr(host_run._Kept, "work", killed)
    run = host.launch(f"sleep 60; : {MARK}")
    assert (run.outcome.how, alive(MARK)) == ("lost", [])


def test_program_that_was_exchanged_is_not_started(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    really = local.invocation
    monkeypatch.setattr(local, "invocation", lambda plan: really(plan).replace(identity=(1, 2)))
    with pytest.raises(HostError, match="is not the program that was checked") as failed:
        host.launch("touch ran")
    assert failed.value.id == "program-identity-changed"
    assert not (host.workspace / "ran").exists()


def test_no_descriptor_is_left(host: Host) -> None:
    host.launch("exit 0")
    count = len(os.listdir("/proc/self/fd"))
    host.launch("exit 0")
    assert len(os.listdir("/proc/self/fd")) == count


def test_receipts_of_a_host_run_are_chained_without_an_attestation(host: Host) -> None:
    run = host.launch("exit 0")
    directory = os.open(host.shell.state, os.O_RDONLY)
    with Registry.open(directory) as registry, Receipts.open(directory) as receipts:
        row = registry.run(run.run_id)
        assert row is not None
        named = [part["receipt"] for part in (row.entry, row.start, row.end) if part is not None and "receipt" in part]
        chain = verify(run.run_id, [str(one) for one in named], receipts.read)
    os.close(directory)
    assert [receipt["kind"] for receipt in chain] == ["launch", "terminal"]
