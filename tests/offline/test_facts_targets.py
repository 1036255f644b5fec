"""Log, registry and state directory: the parent writes there, so nobody else may decide where that is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from support.facts_world import IS_ROOT, MINE, STRANGER, World, area, as_stranger, lost, payloads

from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.checker.facts import TargetFact

NOT_LOOKED_FOR = (ABSENT, ABSENT, ABSENT)
LEAVES = (True, ABSENT, ABSENT)
FREE = (False, False, True)
TAKEN = (False, True, True)
NOT_READY = (False, False, False)


@pytest.fixture
def world() -> Iterator[World]:
    with area() as top:
        yield World(top)


def log(world: World, path: object) -> Any:
    return world.facts(log_path=path).log


def fields(fact: TargetFact) -> tuple[object, ...]:
    return fact.leaves, fact.exists, fact.ready


# -- the log


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("reports/run.log", FREE),
        ("reports/sub/run.log", FREE),
        ("reports/taken.log", TAKEN),
        ("reports/sub", TAKEN),
        ("reports/fifo", TAKEN),
        ("reports/nothing/run.log", NOT_READY),
        ("reports/taken.log/run.log", NOT_READY),
        ("reports", LEAVES),
        ("reports-evil/run.log", LEAVES),
        ("registry.db", LEAVES),
        ("reports/to-home.log", LEAVES),
        ("reports/to-sub/run.log", LEAVES),
        ("reports/to-taken.log", LEAVES),
        ("reports/out/run.log", LEAVES),
        ("reports/loop", LEAVES),
        ("reports/../../x.log", NOT_LOOKED_FOR),
        ("/etc/x.log", NOT_LOOKED_FOR),
        ("reports//x.log", NOT_LOOKED_FOR),
        ("reports/x.log ", NOT_LOOKED_FOR),
        ("reports/", NOT_LOOKED_FOR),
        ("", NOT_LOOKED_FOR),
        (None, NOT_LOOKED_FOR),
        (["reports/x"], NOT_LOOKED_FOR),
        *((f"reports/{payload['data']}", NOT_LOOKED_FOR) for payload in payloads("P11", "P15")),
    ],
)
def test_log_path(world: World, path: object, expected: tuple[object, ...]) -> None:
    world.file("state/reports/taken.log", "kept")
    world.directory("state/reports/sub")
    world.directory("state/reports-evil")
    os.mkfifo(f"{world.state}/reports/fifo")
    for name, text in {"to-home.log": "/root/.bashrc", "to-sub": "sub", "to-taken.log": "taken.log", "out": "/tmp",
                       "loop": "loop"}.items():  # fmt: skip
        world.link(f"state/reports/{name}", text)
    fact = log(world, path)
    assert fields(fact) == expected
    assert (fact.path, fact.root) == (path, f"{world.state}/reports")
    with open(f"{world.state}/reports/taken.log") as taken:
        assert taken.read() == "kept"


def test_log_is_absent_where_none_is_asked_for(world: World) -> None:
    assert world.facts().log is ABSENT


def test_reports_directory_that_is_a_link_leaves(world: World) -> None:
    os.rmdir(f"{world.state}/reports")
    world.link("state/reports", world.directory("elsewhere"))
    assert fields(log(world, "reports/run.log")) == LEAVES
    with world.held() as held:
        assert held.log == -1


def test_log_below_a_state_directory_that_is_still_to_be_made(world: World) -> None:
    world.site = world.site.replace(state_dir=f"{world.top}/later/state")
    facts: Any = world.facts(log_path="reports/run.log")
    assert fields(facts.log) == FREE  # the parent makes its own directories
    assert fields(log(world, "reports/sub/run.log")) == NOT_READY
    assert facts.log.root == f"{world.top}/later/state/reports"
    assert (facts.state.place.kind, facts.state.place.path) == ("missing", f"{world.top}/later/state")
    assert not os.path.exists(f"{world.top}/later")


def test_log_is_unknown_where_its_directory_cannot_be_searched(world: World) -> None:
    world.directory("state/reports/closed", 0)
    os.chmod(world.state, 0o755)
    if IS_ROOT:
        os.chown(world.state, STRANGER, STRANGER)

    def ask() -> Any:
        return encode(log(world, "reports/closed/run.log"))

    answer = as_stranger(ask) if IS_ROOT else ask()
    reason = "`reports/closed/run.log` cannot be looked at: permission denied at `reports/closed`"
    assert answer["leaves"] == answer["exists"] == {"unknown": reason}


@pytest.mark.parametrize("declared", ["reports/run.log", ABSENT])
def test_directory_of_the_log_is_held(world: World, declared: object) -> None:
    asked: dict[str, Any] = {} if declared is ABSENT else {"log_path": declared}
    with world.held(**asked) as held:
        assert os.fstat(held.log).st_ino == os.stat(f"{world.state}/reports").st_ino


def test_reserved_directory_that_is_still_to_be_made_is_ready_and_a_file_in_its_place_is_not(world: World) -> None:
    os.rmdir(f"{world.state}/reports")
    assert fields(log(world, "reports/run.log")) == FREE
    world.file("state/reports")
    assert fields(log(world, "reports/run.log")) == NOT_READY


# -- the registry


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("registry.db", FREE),
        ("taken.db", TAKEN),
        ("reports/other.db", FREE),
        ("to-taken.db", LEAVES),
        ("out/registry.db", LEAVES),
        ("../registry.db", NOT_LOOKED_FOR),
        ("/registry.db", NOT_LOOKED_FOR),
    ],
)
def test_registry_path(world: World, path: str, expected: tuple[object, ...]) -> None:
    world.file("state/taken.db")
    world.link("state/to-taken.db", "taken.db")
    world.link("state/out", "..")
    fact: Any = world.facts(registry_path=path).registry
    assert fields(fact) == expected
    assert fact.root == world.state


def test_registry_is_absent_where_none_is_named(world: World) -> None:
    assert world.facts().registry is ABSENT


# -- the state directory


def state(world: World) -> Any:
    return world.facts().state


def test_state_directory_of_the_caller_alone_is_controlled(world: World) -> None:
    fact = state(world)
    assert (fact.controlled, fact.writable, fact.exposed, fact.registry) == (True, True, ABSENT, "absent")
    assert (fact.place.path, fact.place.kind, fact.place.owner) == (world.state, "directory", MINE)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o707])
def test_state_directory_that_others_can_write_is_not_controlled(world: World, mode: int) -> None:
    os.chmod(world.state, mode)
    assert state(world).controlled is False


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_parent_that_others_can_write_is_not_controlled(world: World, mode: int) -> None:
    world.directory("parent/state", 0o700)
    os.chmod(f"{world.top}/parent", mode)
    world.site = world.site.replace(state_dir=f"{world.top}/parent/state")
    assert state(world).controlled is False


def test_sticky_directory_of_root_is_safe_above_but_not_itself(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs root to make one")
    world.directory("sticky/state", 0o700)
    os.chmod(f"{world.top}/sticky", 0o1777)
    world.site = world.site.replace(state_dir=f"{world.top}/sticky/state")
    assert state(world).controlled is True
    os.chmod(f"{world.top}/sticky/state", 0o1777)
    assert state(world).controlled is False


def test_link_of_somebody_else_on_the_way_is_not_controlled(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs a second account")
    link = world.link("link", "state")
    world.site = world.site.replace(state_dir=link)
    assert state(world).controlled is True
    assert state(world).place.path == world.state
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    assert state(world).controlled is False


def test_state_directory_of_somebody_else_is_not_controlled(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs a second account")
    os.chown(world.state, STRANGER, STRANGER)
    assert state(world).controlled is False
    os.chmod(world.state, 0o755)
    stranger = as_stranger(lambda: encode(state(world)))
    assert (stranger["controlled"], stranger["writable"]) == (True, True)
    os.chown(world.state, 0, 0)
    stranger = as_stranger(lambda: encode(state(world)))
    assert (stranger["controlled"], stranger["writable"]) == (True, False)


def test_state_directory_that_is_not_there_is_judged_by_what_is(world: World) -> None:
    parent = world.directory("parent", 0o755)
    world.site = world.site.replace(state_dir=f"{parent}/a/b")
    assert (state(world).controlled, state(world).writable) == (True, True)
    os.chmod(parent, 0o777)
    assert state(world).controlled is False


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("state", "`state` is neither absolute nor below `~`"),
        ("a\0b", "`a\\x00b` is neither absolute nor below `~`"),
        ("/a\0b", "`/a\\x00b` cannot be looked at: no file can have this name"),
        ("~nobody/x", "`~nobody/x` is neither absolute nor below `~`"),
    ],
)
def test_state_directory_that_cannot_be_looked_for(world: World, given: str, reason: str) -> None:
    world.site = world.site.replace(state_dir=given)
    facts = world.facts(log_path="reports/run.log", registry_path="registry.db")
    fact: Any = facts.state
    assert {lost(fact.place), lost(fact.controlled), lost(fact.writable), lost(fact.exposed)} == {reason}
    assert {lost(facts.log.leaves), lost(facts.log.root), lost(facts.registry.exists)} == {reason}


@pytest.mark.parametrize(("state_dir", "words"), [("ws/state", "workspace `main`"), ("", "workspace `main`"),
                                                  ("ws", "workspace `main`"), ("ws-evil", None)])  # fmt: skip
def test_state_directory_that_shares_the_workspaces_tree_is_exposed(
    world: World, state_dir: str, words: str | None
) -> None:
    world.site = world.site.replace(state_dir=f"{world.top}/{state_dir}".rstrip("/"))
    assert encode(state(world).exposed) == words


def test_state_directory_in_the_workspace_through_a_link_is_exposed(world: World) -> None:
    world.directory("ws/state")
    world.site = world.site.replace(state_dir=world.link("link", "ws/state"))
    assert state(world).exposed == "workspace `main`"


def test_state_directory_in_a_toolchain_is_exposed(world: World) -> None:
    world.grant(py=world.directory("py"))
    world.site = world.site.replace(state_dir=world.directory("py/state", 0o700))
    assert state(world).exposed == "toolchain `py`"


def test_registry_says_how_it_stands(world: World) -> None:
    assert world.facts(look={"registry": "corrupt", "run_id_used": True}).state.registry == "corrupt"
    assert world.facts(look={"registry": "ready", "run_id_used": True}).run_id_used is True
