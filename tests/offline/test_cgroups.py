"""Control groups on made-up trees of both versions: where a group can be made, what is written, what is counted."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prespawn import cgroup_places, cgroups
from prespawn.cgroup_places import Place, places
from prespawn.cgroups import Groups, name_here
from prespawn.policy.errors import HostError

ANSWERS = {
    "cgroup.procs": "", "tasks": "", "memory.max": "", "memory.swap.max": "",
    "memory.events": "low 0\noom 3\noom_kill 2\n", "pids.max": "", "pids.events": "max 5\n",
    "cpu.max": "max 100000\n", "cpu.cfs_period_us": "100000\n", "cpu.cfs_quota_us": "",
    "memory.limit_in_bytes": "", "memory.memsw.limit_in_bytes": "",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which a new group has the kernel's files at once, and goes whatever stands in it."""

    def mkdir(path: str, mode: int) -> None:
        os.mkdir(path, mode)
        for name, text in ANSWERS.items():
            Path(path, name).write_text(text)

    own = {name: getattr(os, name) for name in dir(os)}
    for module in (cgroups, cgroup_places):
        monkeypatch.setattr(module, "os", SimpleNamespace(**{**own, "mkdir": mkdir, "rmdir": shutil.rmtree}))
    return tmp_path


def group(path: Path, controllers: str = "") -> Path:
    """Make a group that somebody has; ``controllers`` are those that it passes on."""
    path.mkdir(parents=True, exist_ok=True)
    for name, text in {"cgroup.procs": "", "tasks": "", "cgroup.subtree_control": controllers}.items():
        (path / name).write_text(text)
    return path


def mounted(at: Path, kind: str, options: str, root: str = "/") -> str:
    return f"31 23 0:28 {root} {at} rw,relatime shared:9 - {kind} {kind} {options}\n"


# -- where


def test_groups_of_version_1_are_found_by_their_controller(tree: Path) -> None:
    memory, both = group(tree / "memory" / "app"), group(tree / "cpu,cpuacct")
    mountinfo = mounted(tree / "memory", "cgroup", "rw,memory") + mounted(both, "cgroup", "rw,cpu,cpuacct")
    found = places("5:memory:/app\n4:cpu,cpuacct:/\n3:pids:/\n1:name=systemd:/app\n", mountinfo)
    assert found == {
        "memory": Place(version=1, hierarchy="memory", path="/app", above=str(memory), own=str(memory)),
        "cpu": Place(version=1, hierarchy="cpu,cpuacct", path="/", above=str(both), own=str(both)),
        "cpuacct": Place(version=1, hierarchy="cpu,cpuacct", path="/", above=str(both), own=str(both)),
    }


@pytest.mark.parametrize(
    ("root", "path", "where"),
    [("/docker/a", "/docker/a", ""), ("/docker/a", "/docker/a/b", "/b"), ("/docker/a", "/docker/ab", None),
     ("/docker/a", "/", None), ("/", "/docker/a", "/docker/a")],
)  # fmt: skip
def test_group_is_looked_for_below_what_is_mounted(tree: Path, root: str, path: str, where: str | None) -> None:
    for name in ("", "b", "docker/a"):
        group(tree / name)
    found = places(f"5:memory:{path}\n", mounted(tree, "cgroup", "rw,memory", root))
    assert {name: place.above for name, place in found.items()} == (
        {} if where is None else {"memory": f"{tree}{where}"}
    )


@pytest.mark.parametrize("kind", ["closed", "gone"])
def test_group_that_the_caller_cannot_write_is_none(tree: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = group(tree / "memory")
    if kind == "gone":
        shutil.rmtree(at)
    else:  # as for an ordinary user, or on a mount that is read-only
        monkeypatch.setattr("prespawn.cgroup_places.os.access", lambda path, mode: False)
    assert places("5:memory:/\n", mounted(at, "cgroup", "rw,memory")) == {}


def test_group_of_version_2_is_the_callers_own_where_it_passes_controllers_on(tree: Path) -> None:
    group(tree, "cpu memory pids\n")
    found = places("0::/\n", mounted(tree, "cgroup2", "rw"))
    at = Place(version=2, hierarchy="", path="/", above=str(tree), own=str(tree))
    assert found == {"cpu": at, "memory": at, "pids": at}


@pytest.mark.parametrize("mark", ["trusted.delegate", "user.delegate", "user.other", None])
def test_group_of_version_2_is_beside_the_callers_where_that_was_delegated(
    tree: Path, mark: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prespawn.cgroup_places.os.geteuid", lambda: 0)
    monkeypatch.setattr("prespawn.cgroup_places.os.listxattr", lambda path: [] if mark is None else [mark])
    group(tree / "app.service", "memory pids\n")
    own = group(tree / "app.service" / "supervisor")
    found = places("0::/app.service/supervisor\n", mounted(tree, "cgroup2", "rw"))
    at = Place(version=2, hierarchy="", path="/app.service", above=str(tree / "app.service"), own=str(own))
    assert found == ({"memory": at, "pids": at} if mark in ("trusted.delegate", "user.delegate") else {})


def test_group_above_belongs_to_an_ordinary_caller_or_is_not_used(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group(tree / "user", "memory\n")
    group(tree / "user" / "supervisor")
    owner = os.stat(tree / "user").st_uid
    for uid, found in ((owner or 4711, owner != 0), (owner + 1, False)):
        monkeypatch.setattr("prespawn.cgroup_places.os.geteuid", lambda uid=uid: uid)
        assert bool(places("0::/user/supervisor\n", mounted(tree, "cgroup2", "rw"))) is found


def test_version_1_comes_first_where_both_have_a_controller(tree: Path) -> None:
    one, two = group(tree / "memory"), group(tree / "unified", "memory pids\n")
    mountinfo = mounted(two, "cgroup2", "rw") + mounted(one, "cgroup", "rw,memory")
    found = places("4:memory:/\n0::/\n", mountinfo)
    assert {name: place.version for name, place in found.items()} == {"memory": 1, "pids": 2}


# -- what is written


def unified(tree: Path) -> dict[str, Place]:
    return dict.fromkeys(
        ("memory", "pids", "cpu"), Place(version=2, hierarchy="", path="/a", above=str(tree), own=str(tree / "own"))
    )


def separate(tree: Path) -> dict[str, Place]:
    at = {name: group(tree / name) for name in ("memory", "pids", "cpu")}
    return {
        name: Place(version=1, hierarchy=name, path="/", above=str(path), own=str(path)) for name, path in at.items()
    }


def contents(leaf: Path, *names: str) -> list[str]:
    return [(leaf / name).read_text() for name in names]


BOUNDS = (("memory", 1 << 26), ("cpu", 1500), ("processes", 99))


def test_bounds_of_version_2_are_written_and_the_process_is_moved(tree: Path) -> None:
    groups = Groups.made(BOUNDS, lambda: "run", lambda: unified(tree))
    leaf = tree / "run"
    assert contents(leaf, "memory.max", "memory.swap.max", "cpu.max", "pids.max") == [
        "67108864", "0", "150000 100000", "99",
    ]  # fmt: skip
    assert groups.paths == {"": "/a/run"}
    groups.enter()
    assert contents(leaf, "cgroup.procs", "tasks") == ["", ""]
    groups.place(4711)
    assert contents(leaf, "cgroup.procs", "tasks") == ["4711", ""]
    assert dict(groups.counters()) == {"killed": 2, "refused": 5}
    groups.remove()
    assert (leaf.exists(), groups.left, groups.paths) == (False, "", {})


def test_bounds_of_version_1_are_written_and_the_thread_goes_in_and_out(tree: Path) -> None:
    groups = Groups.made(BOUNDS, lambda: "run", lambda: separate(tree))
    assert contents(tree / "memory" / "run", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes") == ["67108864"] * 2
    assert contents(tree / "cpu" / "run", "cpu.cfs_quota_us") == ["150000"]
    assert contents(tree / "pids" / "run", "pids.max") == ["99"]
    assert groups.paths == {"memory": "/run", "cpu": "/run", "pids": "/run"}
    groups.enter()
    assert [contents(tree / name / "run", "tasks") for name in ("memory", "cpu", "pids")] == [["0"]] * 3
    assert contents(tree / "memory", "tasks") == [""]
    groups.place(4711)
    assert [contents(tree / name, "tasks", "cgroup.procs") for name in ("memory", "cpu", "pids")] == [["0", ""]] * 3
    assert dict(groups.counters()) == {"killed": 4 * 3, "refused": 5 * 3}
    groups.remove()
    assert not list(tree.glob("*/run"))


def test_swap_that_cannot_be_bounded_is_not_used(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
        monkeypatch.delitem(ANSWERS, name)
    monkeypatch.setitem(ANSWERS, "memory.swappiness", "60")
    Groups.made((("memory", 1 << 26),), lambda: "run", lambda: separate(tree))
    assert contents(tree / "memory" / "run", "memory.swappiness") == ["00"]  # over the first of two bytes
    Groups.made((("memory", 1 << 26),), lambda: "run", lambda: unified(tree)).remove()


@pytest.mark.parametrize("limit", ["memory", "cpu"])
def test_bound_that_nothing_holds_here_is_an_error(limit: str) -> None:
    with pytest.raises(HostError) as raised:
        Groups.made(((limit, 1), ("processes", 1)), lambda: "run", dict)
    assert raised.value.id == "limit-not-enforceable"
    assert str(raised.value).startswith(f"limits.{limit} has no control group here; allowed here: a parent whose own")


def test_host_that_does_not_show_its_groups_is_an_error() -> None:
    def unseen() -> dict[str, Place]:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(HostError) as raised:
        Groups.made((("cpu", 1),), lambda: "run", unseen)
    assert raised.value.id == "limit-not-enforceable"
    assert str(raised.value).startswith("limits.cpu could not be set: permission denied; allowed here: a parent whose")


def test_processes_without_a_controller_are_left_to_the_rlimit(tree: Path) -> None:
    at = unified(tree)
    del at["pids"]
    Groups.made(BOUNDS, lambda: "run", lambda: at)
    assert contents(tree / "run", "pids.max") == [""]


def test_no_bounds_look_at_nothing_and_make_nothing() -> None:
    def fails() -> Any:
        raise AssertionError

    groups = Groups.made((), fails, fails)
    groups.enter()
    groups.place(1)
    assert dict(groups.counters()) == {"killed": 0, "refused": 0}
    groups.remove()
    assert (groups.paths, groups.left) == ({}, "")


@pytest.mark.parametrize("file", ["memory.max", "cpu.max", "pids.max"])
def test_bound_that_does_not_read_back_leaves_no_group(file: str, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = cgroups._write
    monkeypatch.setattr(cgroups, "_write", lambda path, text: None if path.endswith(file) else write(path, text))
    with pytest.raises(HostError) as raised:
        Groups.made(BOUNDS, lambda: "run", lambda: unified(tree))
    assert raised.value.id == "limit-not-enforceable"
    assert "was set in place of" in str(raised.value)
    assert not (tree / "run").exists()


def test_group_of_somebody_elses_is_not_taken_over(tree: Path) -> None:
    (tree / "run").mkdir()
    with pytest.raises(HostError) as raised:
        Groups.made(BOUNDS, lambda: "run", lambda: unified(tree))
    assert str(raised.value).startswith("limits.memory could not be set: file exists; ")
    assert (tree / "run").exists()


def test_group_that_is_in_use_is_tried_again_and_then_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def rmdir(path: str) -> None:
        tries.append(path)
        if len(tries) < most:
            raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr("prespawn.cgroups.os.rmdir", rmdir)
    monkeypatch.setattr(cgroups, "_PAUSES", (0, 0, 0, 0))
    for most, left in ((3, ""), (9, f"its control group `{tree}/run` could not be removed: it is in use")):
        groups = Groups.made((("memory", 1 << 26),), lambda: "run", lambda: unified(tree))
        groups.remove()
        assert (groups.left, len(tries)) == (left, min(most, 4))
        tries.clear()
        shutil.rmtree(tree / "run")


def test_thread_that_cannot_join_is_an_error(tree: Path) -> None:
    groups = Groups.made(BOUNDS, lambda: "run", lambda: separate(tree))
    (tree / "cpu" / "run" / "tasks").unlink()
    with pytest.raises(HostError) as raised:
        groups.enter()
    assert raised.value.id == "limit-not-enforceable"
    groups.remove()
    assert contents(tree / "memory", "tasks") == ["0"]  # and is taken back from those that it had joined


def test_groups_of_parents_that_are_gone_are_removed_and_no_others(tree: Path) -> None:
    mine = name_here()
    namespace, pid, started, thread = mine.removeprefix("prespawn-").split("-")
    gone = [f"prespawn-{namespace}-{pid}-{int(started) + 1}-{thread}", f"prespawn-{namespace}-{1 << 30}-1-1"]
    kept = [mine, f"prespawn-1-{1 << 30}-1-1", "prespawn-other", "other", f"other-{namespace}-{1 << 30}-1-1"]
    for name in (*gone, *kept):
        (tree / name).mkdir()
    Groups.made(BOUNDS, lambda: "run", lambda: unified(tree)).remove()
    assert sorted(path.name for path in tree.iterdir()) == sorted(kept)
