"""What the registry promises about runs: an id is used once, states follow one another, rows hold no free text."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import prespawn
from prespawn import launch
from prespawn.outcome import HOWS, MEMORY, PROCESSES, Outcome
from prespawn.policy.errors import HostError, InputError
from prespawn.policy.spelling import is_run_id
from prespawn.registry import Registry, Run, Standing, generated_run_id, standing
from prespawn.registry_file import RegistryFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

DIGEST = f"sha256:{'0' * 64}"
ENTRY: Mapping[str, str | int] = {
    "declaration": DIGEST, "policy": DIGEST, "facts": DIGEST, "blockers": DIGEST, "profile": "sandbox-v1",
    "adapter": "exec@1", "level": "container", "parent_pid": 10, "parent_start_time": 20,
    "parent_boot_id": "6f6d5f0e-0000-4000-8000-000000000000", "reserved_at": 1_700_000_000,
}  # fmt: skip
START: Mapping[str, str | int] = {"pid": 11, "start_time": 21, "boot_id": "6f6d5f0e", "started_at": 1_700_000_001}
END: Mapping[str, str | int] = {"how": "exited", "status": 0, "ended_at": 1_700_000_002}
TAKEN = (
    "run_id is `one`, which the registry has already; allowed: an id that was never used;"
    " leave `run_id` out to have one assigned"
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def registry(state: Path) -> Iterator[Registry]:
    with Registry.open(str(state)) as opened:
        yield opened


def failure(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(HostError) as raised:
        act()
    return raised.value.id, str(raised.value)


def test_registry_keeps_a_run_from_reservation_to_end(registry: Registry) -> None:
    assert not registry.used("one")
    registry.reserve("one", ENTRY)
    assert registry.used("one")
    assert registry.run("one") == Run(run_id="one", state="reserved", entry=ENTRY, start=None, end=None)
    registry.started("one", START)
    assert registry.run("one") == Run(run_id="one", state="started", entry=ENTRY, start=START, end=None)
    registry.ended("one", END)
    assert registry.run("one") == Run(run_id="one", state="ended", entry=ENTRY, start=START, end=END)


@pytest.mark.parametrize(
    "outcome",
    [*(Outcome(how=how) for how in HOWS), Outcome(how="exited", status=137, reached=(MEMORY, PROCESSES))],
    ids=[*HOWS, "at two limits"],
)
def test_every_end_that_a_run_can_have_is_written(registry: Registry, outcome: Outcome) -> None:
    registry.reserve("one", ENTRY)
    kept: list[str] = []
    run: Any = launch._Launch.__new__(launch._Launch)
    for name, value in {
        "plan": SimpleNamespace(run_id="one", approval={"accepted": ()}), "registry": registry, "directory": -1,
        "receipts": SimpleNamespace(write=kept.append), "receipt": f"sha256:{'0' * 64}", "is_written": True,
        "unrecorded": None, "verdict": None, "contract": None,
    }.items():  # fmt: skip
        setattr(run, name, value)
    run._settle(outcome)
    assert (len(kept), run.unrecorded) == (1, None)
    row = registry.run("one")
    assert row is not None
    assert row.end is not None
    said = {name: row.end.get(name) for name in ("how", "status", "reached")}
    reached = "limits.memory+limits.processes" if outcome.reached else None
    assert said == {"how": outcome.how, "status": outcome.status, "reached": reached}


def test_registry_outlives_its_process(state: Path) -> None:
    with Registry.open(str(state)) as first:
        first.reserve("one", ENTRY)
    assert sorted(path.name for path in state.iterdir()) == ["registry.db"]
    with Registry.open(str(state)) as second:
        assert second.used("one")


@pytest.mark.parametrize("settle", ["ended", "never_started", "lost"])
def test_run_id_is_used_for_ever(registry: Registry, settle: str) -> None:
    registry.reserve("one", ENTRY)
    assert failure(lambda: registry.reserve("one", ENTRY)) == ("run-id-reused", TAKEN)
    getattr(registry, settle)("one", END)
    assert failure(lambda: registry.reserve("one", ENTRY)) == ("run-id-reused", TAKEN)


def test_row_cannot_be_removed(registry: Registry, state: Path) -> None:
    registry.reserve("one", ENTRY)
    with sqlite3.connect(state / "registry.db") as other, pytest.raises(sqlite3.IntegrityError):
        other.execute("DELETE FROM run")
    other.close()
    assert registry.used("one")


def test_run_id_is_taken_by_one_of_many_threads(registry: Registry) -> None:
    winners: list[int] = []
    gate = threading.Barrier(8)

    def race(number: int) -> None:
        gate.wait()
        for run in range(25):
            try:
                registry.reserve(f"run-{run}", {**ENTRY, "parent_pid": number})
            except HostError as error:
                assert error.id == "run-id-reused"
            else:
                winners.append(run)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(winners) == list(range(25))


RACE = """
import sys
from prespawn.policy.errors import HostError
from prespawn.registry import Registry
entry = eval(sys.argv[2])
sys.stdin.readline()
with Registry.open(sys.argv[1]) as registry:
    for run in range(20):
        try:
            registry.reserve(f"run-{run}", entry)
            print(run)
        except HostError as error:
            assert error.id == "run-id-reused", error
"""


def test_run_id_is_taken_by_one_of_many_processes_that_also_race_to_make_the_file(state: Path) -> None:
    command = [sys.executable, "-c", RACE, str(state), repr(dict(ENTRY))]
    racers = [subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) for _ in range(6)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    outputs = [racer.communicate() for racer in racers]
    assert [errors for _, errors in outputs] == [""] * 6
    assert sorted(int(line) for output, _ in outputs for line in output.split()) == list(range(20))
    assert sorted(path.name for path in state.iterdir()) == ["registry.db"]


@pytest.mark.parametrize(
    ("before", "act", "found"),
    [
        ([], "started", "is not in the registry; to become `started`: `reserved`"),
        ([], "ended", "is not in the registry; to become `ended`: `reserved` or `started`"),
        (["reserve", "started"], "started", "is `started`; to become `started`: `reserved`"),
        (["reserve", "ended"], "started", "is `ended`; to become `started`: `reserved`"),
        (["reserve", "ended"], "ended", "is `ended`; to become `ended`: `reserved` or `started`"),
        (["reserve", "started", "ended"], "lost", "is `ended`; to become `lost`: `reserved` or `started`"),
        (["reserve", "lost"], "ended", "is `lost`; to become `ended`: `reserved` or `started`"),
        (["reserve", "never_started"], "lost", "is `never-started`; to become `lost`: `reserved` or `started`"),
    ],
)
def test_run_has_one_start_and_one_end(registry: Registry, before: list[str], act: str, found: str) -> None:
    values = {"reserve": ENTRY, "started": START}
    for step in before:
        getattr(registry, step)("one", values.get(step, END))
    was = registry.run("one")
    assert failure(lambda: getattr(registry, act)("one", values.get(act, END))) == (
        "registry-not-written",
        f"run `one` {found}",
    )
    assert registry.run("one") == was


def test_unsettled_lists_runs_without_an_end_oldest_first(registry: Registry) -> None:
    for name in ("d", "c", "b", "a"):
        registry.reserve(name, ENTRY)
    registry.started("c", START)
    registry.ended("b", END)
    assert [(run.run_id, run.state) for run in registry.unsettled()] == [
        ("d", "reserved"),
        ("c", "started"),
        ("a", "reserved"),
    ]


@pytest.mark.parametrize(
    "run_id",
    ["../../x", "a/b", "-rf", "", "x" * 64, "x" * 300, "a\nb", ".", "..", "a\0", "CON", "\u202ea", "a\n", "\udcff"],
)
def test_run_id_that_no_run_may_have_is_refused_before_it_is_a_name(registry: Registry, run_id: str) -> None:
    assert not is_run_id(run_id)
    assert not registry.used(run_id)
    assert registry.run(run_id) is None
    with pytest.raises(InputError) as raised:
        registry.reserve(run_id, ENTRY)
    assert raised.value.id == "run-id-invalid"
    assert str(raised.value).isprintable()
    assert registry.unsettled() == ()


@pytest.mark.parametrize("value", [None, True, 7, b"one", ["one"], {"one": 1}])
def test_run_id_of_another_type_was_never_used(registry: Registry, value: object) -> None:
    assert not registry.used(value)


@pytest.mark.parametrize("run_id", ["a", "0", "fix-login-42", "x" * 63, "a--b-"])
def test_run_id_of_the_right_form_is_taken(registry: Registry, run_id: str) -> None:
    registry.reserve(run_id, ENTRY)
    assert registry.used(run_id)


def test_generated_run_ids_are_fresh_and_sort_by_time() -> None:
    ids = [generated_run_id(1_700_000_000) for _ in range(500)]
    assert len(set(ids)) == 500
    assert all(is_run_id(run_id) and run_id.startswith("20231114-221320-") for run_id in ids)
    assert max(ids) < generated_run_id(1_700_000_001)


CANARY = "CANARY-7f3a secret=hunter2"


def without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


@pytest.mark.parametrize(
    ("act", "values", "key"),
    [
        ("reserve", {**ENTRY, "argv": CANARY}, "argv"),
        ("reserve", {**ENTRY, "profile": CANARY}, "profile"),
        ("reserve", {**ENTRY, "profile": ["sandbox-v1"]}, "profile"),
        ("reserve", {**ENTRY, "declaration": CANARY}, "declaration"),
        ("reserve", {**ENTRY, "declaration": f"sha256:{'A' * 64}"}, "declaration"),
        ("reserve", {**ENTRY, "reserved_at": CANARY}, "reserved_at"),
        ("reserve", {**ENTRY, "reserved_at": True}, "reserved_at"),
        ("reserve", {**ENTRY, "reserved_at": -1}, "reserved_at"),
        ("reserve", {**ENTRY, "reserved_at": 1 << 63}, "reserved_at"),
        ("reserve", {**ENTRY, "reserved_at": 1.5}, "reserved_at"),
        ("reserve", {**ENTRY, "level": ""}, "level"),
        ("reserve", {**ENTRY, "level": "x" * 129}, "level"),
        ("reserve", without(ENTRY, "policy"), "policy"),
        ("started", {**START, "env": {"A": CANARY}}, "env"),
        ("started", without(START, "boot_id"), "boot_id"),
        ("ended", {**END, "how": CANARY}, "how"),
        ("ended", {**END, "stderr": CANARY}, "stderr"),
        ("never_started", without(END, "how"), "how"),
        ("lost", {**END, "status": "0"}, "status"),
    ],
)
def test_row_has_no_field_for_free_text(
    registry: Registry, state: Path, act: str, values: dict[str, Any], key: str
) -> None:
    registry.reserve("other", ENTRY)
    with pytest.raises(ValueError, match=f"`{key}` is missing, unknown or of the wrong form") as raised:
        getattr(registry, act)("one" if act == "reserve" else "other", values)
    assert "hunter2" not in str(raised.value)
    assert not registry.used("one")
    registry.close()
    assert b"hunter2" not in (state / "registry.db").read_bytes()


def test_row_is_canonical_json(registry: Registry, state: Path) -> None:
    registry.reserve("one", ENTRY)
    with sqlite3.connect(state / "registry.db") as other:
        [(text,)] = other.execute("SELECT entry FROM run").fetchall()
    other.close()
    zeros = "0" * 64
    assert text == (
        f'{{"adapter":"exec@1","blockers":"sha256:{zeros}","declaration":"sha256:{zeros}","facts":"sha256:{zeros}",'
        '"level":"container","parent_boot_id":"6f6d5f0e-0000-4000-8000-000000000000","parent_pid":10,'
        f'"parent_start_time":20,"policy":"sha256:{zeros}","profile":"sandbox-v1","reserved_at":1700000000}}'
    )


def test_standing_looks_and_makes_nothing(tmp_path: Path, state: Path) -> None:
    absent, free, taken = (
        Standing(registry=registry, run_id_used=used)
        for registry, used in (("absent", False), ("ready", False), ("ready", True))
    )
    assert standing(str(tmp_path / "nowhere" / "at" / "all"), "one") == absent
    assert standing(str(state), "one") == absent
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert list(state.iterdir()) == []
    with Registry.open(str(state)) as registry:
        registry.reserve("one", ENTRY)
        assert standing(str(state), "one") == taken
    assert standing(str(state), "one") == taken
    assert standing(str(state), "two") == free
    assert standing(str(state), None) == free
    assert [path.name for path in state.iterdir()] == ["registry.db"]


def test_registry_imports_nothing_heavy() -> None:
    heavy = {"_sqlite3", "datetime", "enum", "json", "pathlib", "re", "sqlite3", "subprocess", "threading", "typing"}
    root = os.path.dirname(prespawn.__path__[0])  # and no site packages, whose hooks import half of these themselves
    program = (
        f"import sys; sys.path.append({root!r}); before = set(sys.modules);"
        f" import prespawn.registry; print(sorted((set(sys.modules) - before) & {heavy!r}))"
    )
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"


# -- approvals: used up with the entry, in one transaction


def test_approval_is_used_up_by_the_entry_that_names_it(registry: Registry) -> None:
    registry.reserve("one", ENTRY, approval="abc-1")
    assert (registry.spent("abc-1"), registry.spent("abc-2")) == (True, False)
    used = "approval `abc-1` has started a run already; allowed: one that was not used; ask the operator again"
    assert failure(lambda: registry.reserve("two", ENTRY, approval="abc-1")) == ("approval-used", used)
    assert not registry.used("two")
    assert failure(lambda: registry.reserve("one", ENTRY, approval="abc-2")) == ("run-id-reused", TAKEN)
    assert not registry.spent("abc-2")
    registry.reserve("three", ENTRY)
    registry.reserve("four", ENTRY)  # what was typed uses no approval up


def test_approval_is_used_up_once_by_threads_and_processes_that_race_for_it(state: Path) -> None:
    with Registry.open(str(state)):
        pass
    begun = threading.Barrier(4)

    def driver(name: str, answers: list[str]) -> None:
        with Registry.open(str(state)) as mine:
            begun.wait()
            for number in range(20):
                try:
                    mine.reserve(f"{name}-{number}", ENTRY, approval=f"abc-{number}")
                    answers.append(f"abc-{number}")
                except HostError as error:
                    assert error.id == "approval-used"

    def process(name: str) -> list[str]:
        answers: list[str] = []
        threads = [threading.Thread(target=driver, args=(f"{name}-{one}", answers)) for one in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    reader, writer = os.pipe()
    children = []
    for name in ("a", "b", "c"):
        child = os.fork()
        if not child:
            try:
                os.write(writer, "".join(f"{won}\n" for won in process(name)).encode())
            finally:
                os._exit(0)
        children.append(child)
    os.close(writer)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(reader) as said:
        won = said.read().split()
    assert sorted(won) == sorted(f"abc-{number}" for number in range(20))


# -- as many rows as there may be: nothing that a launch asks looks through them


def test_no_statement_of_a_launch_or_of_recovery_looks_through_all_rows(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, tuple[Any, ...]]] = []
    run = RegistryFile._run

    def noted(self: RegistryFile, statement: str, values: tuple[Any, ...] = ()) -> Any:
        asked.append((statement, values))
        return run(self, statement, values)

    monkeypatch.setattr(RegistryFile, "_run", noted)
    with Registry.open(str(state)) as opened:
        opened.reserve(generated_run_id(0), ENTRY, approval="abc-1")
        opened.reserve("one", ENTRY)
        opened.started("one", START)
        opened.ended("one", END)
        opened.run("one")
        opened.spent("abc-1")
        opened.unsettled()
    standing(str(state), "one", "abc-1")
    statements = {(words, values) for words, values in asked if words.startswith(("SELECT", "INSERT", "UPDATE"))}
    assert len({words for words, _ in statements}) == 7
    file = sqlite3.connect(state / "registry.db")
    for words, values in statements:
        plan = [line[3] for line in file.execute(f"EXPLAIN QUERY PLAN {words}", values)]
        through = [step for step in plan if step.startswith("SCAN") and "INDEX unsettled" not in step]
        assert not through, (words, plan)
        assert words.startswith("INSERT") or any("INDEX" in step for step in plan), (words, plan)
    file.close()
