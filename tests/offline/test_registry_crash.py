"""A parent that is killed at any moment leaves a registry that can be read and that says nothing untrue."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

from prespawn.policy.errors import HostError
from prespawn.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KILLS = 50
DIGEST = f"sha256:{'0' * 64}"
ENTRY: Mapping[str, str | int] = {
    "declaration": DIGEST, "policy": DIGEST, "facts": DIGEST, "blockers": DIGEST, "profile": "sandbox-v1",
    "adapter": "exec@1", "level": "container", "parent_pid": 10, "parent_start_time": 20, "parent_boot_id": "boot",
    "reserved_at": 0,
}  # fmt: skip
START: Mapping[str, str | int] = {"pid": 1, "start_time": 1, "boot_id": "boot", "started_at": 0}
END: Mapping[str, str | int] = {"how": "exited", "status": 0, "ended_at": 0}
ORDER = ("reserved", "started", "ended")


def parent(state: str, prefix: str, said: int) -> None:
    """Take runs through their life until killed, saying after each step that it has returned."""
    for number in range(1_000_000):
        run_id = f"{prefix}-{number}"
        with Registry.open(state) as registry:
            registry.reserve(run_id, ENTRY)
            os.write(said, f"{run_id} reserved\n".encode())
            registry.started(run_id, START)
            os.write(said, f"{run_id} started\n".encode())
            registry.ended(run_id, END)
            os.write(said, f"{run_id} ended\n".encode())


def killed(state: str, prefix: str, after: float) -> dict[str, str]:
    """Return the last step of each run that a parent, killed ``after`` seconds, had said."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            parent(state, prefix, writer)
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "the parent ended before it was killed"
    with os.fdopen(reader) as lines:
        return dict(line.split() for line in lines)


def test_registry_is_whole_and_true_after_kills_at_random_moments(tmp_path: Path) -> None:
    state, moments = str(tmp_path), random.Random(20240229)
    said: dict[str, str] = {}
    for kill in range(KILLS):
        said |= killed(state, f"kill-{kill}", moments.uniform(0.0, 0.015))
        with Registry.open(state) as registry:
            rows = {run.run_id: run.state for run in registry.unsettled()}
            assert len(rows) <= kill + 1  # each kill leaves one run open at most
            for run_id, step in said.items():
                row = registry.run(run_id)
                assert row is not None
                assert ORDER.index(row.state) >= ORDER.index(step)  # what was said to be written is written
                with pytest.raises(HostError, match="which the registry has already"):
                    registry.reserve(run_id, ENTRY)
    check = sqlite3.connect(tmp_path / "registry.db")
    assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert check.execute("SELECT count(*) FROM run").fetchone()[0] >= len(said) > 0
    check.close()


def test_registry_is_made_whole_or_not_at_all_when_its_maker_is_killed(tmp_path: Path) -> None:
    moments = random.Random(20240301)
    for kill in range(KILLS):
        state = tmp_path / str(kill)
        state.mkdir(mode=0o700)
        said = killed(str(state), "first", moments.uniform(0.0, 0.004))
        with Registry.open(str(state)) as registry:
            assert [registry.used(run_id) for run_id in said] == [True] * len(said)
            registry.reserve("after", ENTRY)


def test_registry_can_be_settled_after_its_parent_was_killed(tmp_path: Path) -> None:
    killed(str(tmp_path), "one", 0.02)
    with Registry.open(str(tmp_path)) as registry:
        for run in registry.unsettled():
            registry.lost(run.run_id, {"how": "parent-gone", "ended_at": 1})
        assert registry.unsettled() == ()


def test_registry_is_not_carried_across_a_fork(tmp_path: Path) -> None:
    with Registry.open(str(tmp_path)) as registry:
        registry.reserve("one", ENTRY)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                registry.reserve("two", ENTRY)
            except HostError as error:
                os.write(writer, f"{error.id}: {error}".encode())
            registry.close()
            os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader) as said:
            assert said.read() == (
                f"registry-not-written: `{tmp_path}/registry.db` was opened by process {os.getpid()} and carried across"
                " a fork; allowed: a registry of this process; open it here"
            )
        registry.started("one", START)
        assert not registry.used("two")
