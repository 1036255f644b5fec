"""One gathering as a whole: total, silent, cheap, and true to the record types."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.facts_world import LEASED, MOST, World, area, declare, lists, lost, policy, profile

from prespawn.checker.facts import Facts
from prespawn.facts import gather, host, look, runtime
from prespawn.policy.canonical import digest
from prespawn.policy.codec import decode, encode
from prespawn.policy.known import ABSENT, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERYTHING: dict[str, Any] = {
    "cwd": ".", "declared_files": ["f", "l", "nothing", 3], "env_keys": ["LANG", "TZ", 3], "log_path": "reports/x.log",
    "registry_path": "registry.db", "execution": {"argv": ["ls", "-l"]},
}  # fmt: skip


@pytest.fixture
def world() -> Iterator[World]:
    with area() as top:
        world = World(top)
        world.file("ws/f")
        world.link("ws/l", "f")
        world.grant(py=world.directory("py/bin"))
        yield world


def test_facts_name_the_declaration_and_the_time(world: World) -> None:
    facts = world.facts(look={"now": 17, "evidence": ("canary",)}, **EVERYTHING)
    assert (facts.declaration, facts.now, facts.evidence, facts.reported) == (
        digest(declare(**EVERYTHING).raw), 17, ("canary",), ABSENT,
    )  # fmt: skip


def test_what_the_registry_does_not_know_is_unknown(world: World) -> None:
    reason = "the registry is locked"
    facts = world.facts(look=dict.fromkeys(("run_id_used", "registry", "evidence"), Unknown(reason=reason)))
    assert {lost(facts.run_id_used), lost(facts.state.registry), lost(facts.evidence)} == {reason}


def test_same_host_gives_the_same_facts(world: World) -> None:
    first, second = (encode(world.facts(**EVERYTHING)) for _ in range(2))
    assert first == second


def test_facts_survive_being_written_down(world: World) -> None:
    facts = world.facts(**EVERYTHING)
    document: Any = encode(facts)
    assert encode(decode(Facts, document)) == document
    assert digest(document).startswith("sha256:")


def test_memo_is_optional_and_written_where_it_is_given(world: World) -> None:
    memo: dict[str, object] = {}
    world.facts(look={"memo": memo})
    assert {key.split(" ")[0] for key in memo} <= {"digest"}


def test_descriptors_are_held_until_closed(world: World) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with world.held(**EVERYTHING) as held:
        held_now = [held.workspace, held.state, held.log, *held.toolchains.values()]
        assert all(fd >= 0 and not os.get_inheritable(fd) for fd in held_now)
        assert os.fstat(held.workspace).st_ino == held.facts.workspace.place.inode
        assert os.fstat(held.state).st_ino == held.facts.state.place.inode
    assert sorted(os.listdir("/proc/self/fd")) == before
    held.close()  # a second time there is nothing left


def test_crash_leaves_no_descriptor_open(world: World) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    without = {id: named for id, named in lists().items() if id != "credential-shapes"}
    broken = policy(world.site).replace(lists=without)
    with pytest.raises(KeyError):  # a list that is missing is a bug, and no default stands in for it
        gather(
            declare(), broken, now=1, run_id_used=False, registry="absent", most_entries=MOST, launchers={}
        )  # fmt: skip
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_host_without_proc_is_unknown_and_never_a_crash(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def content(path: str) -> bytes:
        raise FileNotFoundError(2, "No such file or directory", path)

    for module in (host, look, runtime):
        monkeypatch.setattr(module, "content", content)
    before = sorted(os.listdir("/proc/self/fd"))
    world.lease(lease_root=world.top, root=world.root, state=world.directory("lease"))
    facts = world.facts(profile(**LEASED), **EVERYTHING)
    assert sorted(os.listdir("/proc/self/fd")) == before
    reason = f"`{world.root}` cannot be looked at: no such file or directory at `/proc/self/mountinfo`"
    for value in (facts.workspace.place, facts.cwd, facts.declared_files[0].present, facts.mounts[0].place):
        assert lost(value) == reason
    assert "mountinfo" in str(lost(facts.state.place))


def test_nothing_is_created_or_written(world: World) -> None:
    def everything() -> list[tuple[str, int, int]]:
        found = []
        for directory, names, files in os.walk(world.top):
            for name in (*names, *files):
                status = os.lstat(os.path.join(directory, name))
                found.append((os.path.join(directory, name), status.st_mtime_ns, status.st_ctime_ns))
        return sorted(found)

    before = everything()
    world.facts(**EVERYTHING)
    world.facts(profile(launcher="docker", image="x"), profile="sandbox-v1", workspace="other")
    assert everything() == before


def run_alone(code: str) -> str:
    """Run code in a fresh interpreter and return what it printed."""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=path).stdout


def test_cold_path_imports_nothing_heavy() -> None:
    heavy = ("json", "re", "subprocess", "pathlib", "typing", "dataclasses", "enum", "ctypes", "hashlib", "yaml", "pwd")
    code = (
        "import sys; before = set(sys.modules); import prespawn.facts\n"
        f"print(sorted((set(sys.modules) - before) & set({heavy!r})))"
    )
    assert run_alone(code) == "[]\n"


def test_no_process_is_started_and_nothing_is_opened_for_writing(world: World) -> None:
    started: list[str] = []
    starting = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system", "socket.connect")

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event in starting:
            started.append(event)
        if watching and event == "open" and isinstance(arguments[2], int):
            access = arguments[2] & os.O_ACCMODE
            if access != os.O_RDONLY or arguments[2] & (os.O_CREAT | os.O_TRUNC):
                started.append(f"open {arguments[0]!r}")

    watching = True
    sys.addaudithook(watch)  # for good: it is told to look away below
    try:
        world.facts(**EVERYTHING)
    finally:
        watching = False
    assert started == []
