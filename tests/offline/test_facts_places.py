"""Workspace root, ``cwd`` and what the root covers: compared by what they resolve to."""

from __future__ import annotations

import os
import resource
import socket
from typing import TYPE_CHECKING, Any

import pytest
from support.facts_world import IS_ROOT, MINE, STRANGER, World, area, as_stranger, lists, lost, profile, with_own_mounts

from prespawn import kernel
from prespawn.checker.expected import HOME
from prespawn.facts import look as looks
from prespawn.facts import places
from prespawn.facts.look import Look, is_within
from prespawn.facts.scan import SHOWN, scan
from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT
from prespawn.policy.profile import RootRule

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[World]:
    with area() as top:
        yield World(top)


def root_as(world: World, given: str) -> Any:
    """Return the workspace's place when the site spells its root so."""
    main = world.site.workspaces["main"].replace(root=given)
    world.site = world.site.replace(workspaces={"main": main})
    return world.facts().workspace.place


# -- the root


def test_root_is_what_the_site_names(world: World) -> None:
    status, place = os.stat(world.root), world.facts().workspace.place
    assert (place.given, place.path, place.kind) == (world.root, world.root, "directory")
    assert (place.device, place.inode, place.owner) == (status.st_dev, status.st_ino, MINE)


@pytest.mark.parametrize("spelling", ["{}/", "{}/.", "{}//", "{}/../ws", "{}/sub/.."])
def test_root_spelled_otherwise_is_the_same_place(world: World, spelling: str) -> None:
    world.directory("ws/sub")
    plain = root_as(world, world.root)
    assert root_as(world, spelling.format(world.root)).replace(given="") == plain.replace(given="")


def test_root_by_a_link_is_where_it_leads(world: World) -> None:
    link = world.link("link", "ws")
    assert root_as(world, link).path == world.root


def test_root_relative_to_the_drivers_directory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.top)
    assert root_as(world, "ws").path == world.root


@pytest.mark.parametrize(("name", "kind"), [("nothing", "missing"), ("file", "file"), ("fifo", "special")])
def test_root_that_is_no_directory_says_so(world: World, name: str, kind: str) -> None:
    world.file("file")
    os.mkfifo(f"{world.top}/fifo")
    assert root_as(world, f"{world.top}/{name}").kind == kind
    facts = world.facts(cwd=".", declared_files=["f"], execution={"argv": ["./x"]})
    assert {value for field, value in facts.workspace if field not in ("known", "name", "place")} == {ABSENT}
    assert (facts.cwd, facts.declared_files[0].present) == (ABSENT, ABSENT)  # one cause, one blocker


@pytest.mark.parametrize(("text", "kind"), [("self", "link"), ("nowhere", "missing")])
def test_root_by_a_link_that_leads_nowhere(world: World, text: str, kind: str) -> None:
    world.link("self", text)
    place = root_as(world, f"{world.top}/self")
    assert (place.kind, place.device, place.filesystem) == (kind, ABSENT, ABSENT)


def test_root_that_was_removed_is_missing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = world.directory("gone")
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    place = root_as(world, ".")
    assert (place.kind, place.path) == ("missing", gone)


def test_root_below_a_closed_directory_is_unknown(world: World) -> None:
    world.directory("closed/ws")
    os.chmod(f"{world.top}/closed", 0)
    given = f"{world.top}/closed/ws"
    answer = as_stranger(lambda: encode(root_as(world, given))) if IS_ROOT else encode(root_as(world, given))
    assert answer == {"unknown": f"`{given}` cannot be looked at: permission denied"}


def test_unknown_root_leaves_nothing_known(world: World) -> None:
    world.site = world.site.replace(workspaces={"main": world.site.workspaces["main"].replace(root="a\0b")})
    facts = world.facts(declared_files=["f"], cwd="/", execution={"argv": ["./x"]})
    reason = "`a\\x00b` cannot be looked at: no file can have this name"
    assert lost(facts.workspace.place) == reason
    for value in (facts.workspace.covers, facts.workspace.setuid, facts.declared_files[0].present, facts.state.exposed):
        assert lost(value) == reason
    assert lost(facts.program.found) == reason


@pytest.mark.parametrize(("declared", "name"), [("other", "other"), (3, ""), (["main"], "")])
def test_workspace_that_the_site_does_not_know(world: World, declared: object, name: str) -> None:
    asked: dict[str, Any] = {"cwd": ".", "log_path": "reports/x", "execution": {"argv": ["ls"]}}
    facts = world.facts(workspace=declared, declared_files=["f"], **asked)
    fact = facts.workspace
    assert (fact.known, fact.name) == (False, name)
    assert {value for field, value in fact if field not in ("known", "name")} == {ABSENT}
    assert (facts.cwd, facts.log) == (ABSENT, ABSENT)
    assert facts.declared_files[0].present is ABSENT
    assert facts.mounts == ()
    assert facts.program.path == os.path.realpath("/usr/bin/ls")


def test_profile_without_a_workspace(world: World) -> None:
    facts = world.facts(profile().replace(workspace=ABSENT), cwd=".", declared_files=["f"], log_path="reports/x")
    assert (facts.workspace, facts.cwd, facts.log) == (ABSENT, ABSENT, ABSENT)
    assert facts.declared_files[0].present is ABSENT


@pytest.mark.parametrize("name", ["other-v1", 5, None])
def test_profile_that_is_not_known(world: World, name: object) -> None:
    facts = world.facts(profile=name, execution={"argv": ["ls"]})
    assert (facts.program, facts.runtime, facts.image) == (ABSENT, ABSENT, ABSENT)
    assert facts.workspace.known


def test_home_comes_from_the_password_database(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.directory("home/ws")
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.setattr(places, "home", lambda: f"{world.top}/home/")
    assert root_as(world, "~/ws").path == f"{world.top}/home/ws"
    assert root_as(world, "~").path == f"{world.top}/home"
    monkeypatch.setattr(places, "home", lambda: "/")
    assert places.expand("~/etc") == "/etc"
    assert places.expand("~") == "/"
    assert places.expand("~root/x") == "~root/x"
    monkeypatch.setattr(places, "home", lambda: None)
    reason = "`~/ws` lies below a home, and the password database has none for the caller"
    assert lost(root_as(world, "~/ws")) == reason


# -- cwd


@pytest.mark.parametrize("spelling", [".", "", "./", "{}", "{}/.", "{}//", "../ws", "sub/..", "{}-link"])
def test_cwd_that_is_the_root_has_its_identity(world: World, spelling: str) -> None:
    world.directory("ws/sub")
    world.link("ws-link", "ws")
    if spelling == "":
        assert world.facts(cwd="").cwd.kind == "missing"
        return
    facts = world.facts(cwd=spelling.format(world.root))
    assert (facts.cwd.device, facts.cwd.inode) == (facts.workspace.place.device, facts.workspace.place.inode)
    assert facts.cwd.path == world.root


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [("..", "directory"), ("sub", "directory"), ("/", "directory"), ("{}-evil", "directory"), ("f", "file"),
     ("closed", "directory"), ("gone", "missing"), ("~", "missing"), ("f/x", "missing"), ("fifo", "special")],
)  # fmt: skip
def test_cwd_that_is_another_place_has_another_identity(world: World, spelling: str, kind: str) -> None:
    world.directory("ws/sub")
    world.directory("ws-evil")
    world.directory("ws/closed", 0)
    world.file("ws/f")
    os.mkfifo(f"{world.root}/fifo")
    facts = world.facts(cwd=spelling.format(world.root))
    assert facts.cwd.kind == kind
    assert (facts.cwd.device, facts.cwd.inode) != (facts.workspace.place.device, facts.workspace.place.inode)


@pytest.mark.parametrize("value", [None, 3, ["."], "a\0b", "a\nb", "\udcff"])
def test_cwd_that_is_no_name_is_not_looked_for(world: World, value: object) -> None:
    assert world.facts(cwd=value).cwd is ABSENT


def test_cwd_below_a_closed_directory_is_unknown(world: World) -> None:
    world.directory("ws/closed/below")
    os.chmod(f"{world.root}/closed", 0)

    def ask() -> Any:
        return encode(world.facts(cwd="closed/below").cwd)

    answer = as_stranger(ask) if IS_ROOT else ask()
    assert answer == {"unknown": "`closed/below` cannot be looked at: permission denied"}


# -- what the root covers


def test_root_covers_nothing(world: World) -> None:
    assert world.facts().workspace.covers == ()


def test_root_that_is_the_file_system_root(world: World) -> None:
    root_as(world, "/")
    assert world.facts(look={"most_entries": 3}).workspace.covers == ("the file system root",)


def covers_with_home(world: World, monkeypatch: pytest.MonkeyPatch, home: str) -> Any:
    monkeypatch.setattr(places, "home", lambda: home)
    monkeypatch.setattr(places, "all_homes", lambda: ())
    return world.facts().workspace.covers


@pytest.mark.parametrize("below", ["", "/home", "/deep/home", "/link"])
def test_root_that_is_or_holds_the_callers_home(world: World, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    world.directory("ws/home")
    world.directory("ws/deep/home")
    world.link("ws/link", "deep")
    assert covers_with_home(world, monkeypatch, f"{world.root}{below}") == ("a home directory",)


@pytest.mark.parametrize("home", ["{}-evil", "{}/../other", "/nonexistent", "/"])
def test_root_beside_a_home_covers_none(world: World, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    assert covers_with_home(world, monkeypatch, home.format(world.root)) == ()


def test_root_that_holds_somebody_elses_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    home = world.directory("ws/homes/them")
    monkeypatch.setattr(places, "home", lambda: None)
    monkeypatch.setattr(places, "all_homes", lambda: ((os.stat(home).st_uid, home),))
    assert world.facts().workspace.covers == ("a home directory",)


def test_home_that_is_not_its_accounts_own_is_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "home", lambda: None)
    monkeypatch.setattr(places, "all_homes", lambda: ((MINE + 1, world.root), (MINE, f"{world.root}/nothing")))
    assert world.facts().workspace.covers == ()
    world.link("ws/loop", "loop")
    monkeypatch.setattr(places, "all_homes", lambda: ((MINE + 1, f"{world.root}/loop"),))
    assert world.facts().workspace.covers == ("a home directory",)  # it cannot be seen: compared by its name


def test_password_database_is_listed_only_outside_the_callers_home(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_homes() -> tuple[tuple[int, str], ...]:
        raise AssertionError("enumerated")

    monkeypatch.setattr(places, "home", lambda: world.top)
    monkeypatch.setattr(places, "all_homes", all_homes)
    assert world.facts().workspace.covers == ()
    assert looks.all_homes() != ()


def test_root_that_holds_what_is_the_parents(world: World) -> None:
    site_file = world.file("ws/conf/site.yaml")
    world.site = world.site.replace(state_dir=f"{world.root}/state")
    facts = world.facts(look={"site_file": site_file})
    assert facts.workspace.covers == ("the site file", "the state directory")
    beside = world.facts(look={"site_file": f"{world.top}/ws-evil/site.yaml"})
    assert beside.workspace.covers == ("the state directory",)


@pytest.mark.parametrize(("given", "covers"), [("/etc", "`/etc`"), ("/proc/sys/kernel", "`/proc/`"), ("/usr/..", None)])
def test_root_that_no_worker_may_see(world: World, given: str, covers: str | None) -> None:
    root_as(world, given)
    found = world.facts(look={"most_entries": 3}).workspace.covers
    assert found == ((covers,) if covers else ("the file system root",))


def test_root_that_is_mounted_a_second_time_is_known_by_identity(world: World) -> None:
    look = Look(lists(), 1, {})
    world.directory("real/inner")
    world.link("alias", "real")
    assert look.holds(f"{world.top}/alias", f"{world.top}/real/inner")
    assert not look.holds(f"{world.top}/real/inner", f"{world.top}/alias")
    assert not look.holds(f"{world.top}/nothing", f"{world.top}/real")


@pytest.mark.parametrize(
    ("path", "root", "answer"),
    [("/a", "/a", True), ("/a/b", "/a", True), ("/a-evil", "/a", False), ("/", "/a", False), ("/a", "/", True)],
)
def test_within_is_by_whole_components(path: str, root: str, answer: bool) -> None:
    assert is_within(path, root) is answer


# -- what the root holds


def test_credentials_at_the_top_are_listed_by_name(world: World) -> None:
    for name in (".ssh/id", ".aws/credentials", "sub/.gnupg/x", ".env", "ssh"):
        world.file(f"ws/{name}")
    assert world.facts().workspace.credentials == (".aws", ".ssh")


@pytest.mark.parametrize(("what", "answer"), [("directory", "directory"), ("file", "file"), ("link", "link")])
def test_git_at_the_top(world: World, what: str, answer: str) -> None:
    assert world.facts().workspace.git is ABSENT
    {"directory": lambda: world.directory("ws/.git"), "file": lambda: world.file("ws/.git"),
     "link": lambda: world.link("ws/.git", "/elsewhere")}[what]()  # fmt: skip
    assert world.facts().workspace.git == answer


def listen(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)


def test_sockets_and_setuid_files_are_found_at_any_depth(world: World) -> None:
    world.directory("ws/a/b")
    listen(f"{world.root}/a/b/sock")
    for name, mode in {"a/su": 0o4755, "sg": 0o2755, "both": 0o6600, "plain": 0o755, "sticky": 0o1755}.items():
        os.chmod(world.file(f"ws/{name}"), mode)
    os.chmod(world.directory("ws/shared"), 0o2775)  # a directory's bit passes its group on and gives nothing
    facts = world.facts().workspace
    assert facts.sockets == ("a/b/sock",)
    assert facts.setuid == ("a/su", "both", "sg")


def test_devices_and_files_with_capabilities_are_found_where_root_looks(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs root")
    world.directory("ws/a/b")
    os.mknod(f"{world.root}/a/b/whiteout", 0o020600, 0)
    os.mknod(f"{world.root}/null", 0o020666, os.makedev(1, 3))
    os.mkfifo(f"{world.root}/fifo")
    capability = (0x02000001).to_bytes(4, "little") + (1 << 13).to_bytes(4, "little") + bytes(12)
    os.setxattr(world.file("ws/a/ping"), "security.capability", capability)
    os.setxattr(world.file("ws/a/other"), "user.capability", capability)
    facts = world.facts().workspace
    assert facts.devices == ("a/b/whiteout", "null")
    assert facts.setuid == ("a/ping",)


def test_what_links_lead_to_is_not_walked(world: World) -> None:
    os.chmod(world.file("out/su"), 0o4755)
    world.link("ws/out", "../out")
    world.link("ws/su", "../out/su")
    assert world.facts().workspace.setuid == ()


def test_only_the_first_few_are_shown_in_order(world: World) -> None:
    for number in range(SHOWN + 3):
        os.chmod(world.file(f"ws/su{number}"), 0o4755)
    assert world.facts().workspace.setuid == tuple(f"su{number}" for number in range(SHOWN))


def test_more_entries_than_the_bound_are_not_known(world: World) -> None:
    for number in range(4):
        world.file(f"ws/d/{number}")
    assert world.facts(look={"most_entries": 5}).workspace.setuid == ()
    facts = world.facts(look={"most_entries": 4}).workspace
    assert {lost(facts.setuid), lost(facts.sockets), lost(facts.credentials)} == {"more than 4 entries"}
    assert facts.place.kind == "directory"


def test_scan_of_a_directory_that_cannot_be_read(world: World) -> None:
    closed = world.directory("ws/closed", 0o711)
    if not IS_ROOT:
        pytest.skip("needs a second account")
    reason = {"unknown": "`closed` cannot be looked at: permission denied"}

    def ask() -> Any:
        return encode(scan(os.open(world.root, os.O_PATH), 100).setuid)

    assert as_stranger(ask) == reason  # it can be searched by name
    os.chmod(closed, 0o700)
    assert as_stranger(ask) == []  # a stranger's: neither it nor its worker gets in
    os.chown(closed, STRANGER, STRANGER)
    os.chmod(closed, 0)
    assert as_stranger(ask) == reason  # its own: the worker can open it up again


def test_scan_of_a_tree_deeper_than_descriptors_last(world: World) -> None:
    fd = os.open(world.root, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    root, limits = os.open(world.root, os.O_PATH), resource.getrlimit(resource.RLIMIT_NOFILE)
    assert scan(root, 1000).setuid == ()
    resource.setrlimit(resource.RLIMIT_NOFILE, (root + 50, limits[1]))
    try:
        found = scan(root, 1000).setuid
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        os.close(root)
    assert str(lost(found)).endswith("cannot be looked at: too many open files")


def test_scan_leaks_no_descriptor(world: World) -> None:
    world.file("ws/a/b/c")
    fd = os.open(world.root, os.O_PATH)
    before = len(os.listdir("/proc/self/fd"))
    for most in range(5):
        scan(fd, most)
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(fd)


# -- what the worker's own root has at the same path


def test_root_in_the_system_tree(world: World) -> None:
    tree = lists()["system-tree"].replace(names=(world.directory("sys"),))
    beside = {f"{world.top}/sys": True, world.directory("sys/src/x"): True, world.directory("sys-evil"): False}
    for root, inside in beside.items():
        world.site = world.site.replace(workspaces={"main": world.site.workspaces["main"].replace(root=root)})
        assert world.facts(look={"system_tree": tree}).workspace.covers == (("the system tree",) if inside else ())
        hosts = profile(root=RootRule(system="host"))
        assert world.facts(hosts, look={"system_tree": tree}).workspace.covers == ()


def test_root_that_is_the_workers_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert places.WORKERS_HOME == HOME
    monkeypatch.setattr(places, "WORKERS_HOME", world.root)
    assert world.facts().workspace.covers == ("the worker's home",)


@pytest.mark.parametrize(
    ("mode", "enterable"), [(0o755, True), (0o500, True), (0o400, False), (0o077, False), (0, False)]
)
def test_root_that_its_owner_may_enter(world: World, mode: int, enterable: bool) -> None:
    os.chmod(world.root, mode)
    assert world.facts().workspace.enterable is enterable


# -- mounts below the root


@pytest.mark.skipif(not IS_ROOT, reason="needs root to mount")
def test_mounts_below_the_root_are_named(world: World) -> None:
    os.chmod(world.file("ws/sub/suid"), 0o4755)
    names = ["sub", "a b\\c#\td", "z"]

    def ask() -> Any:
        before = world.facts().workspace.mounts
        for name in names[:2]:
            kernel.mount_tmpfs(world.directory(f"ws/{name}"), "size=64k")
        file = os.open(world.file("data"), os.O_PATH)  # a single file of the same file system: no device number tells
        kernel.attach_mount(kernel.clone_mount(file), world.file("ws/z"))
        kernel.mount_tmpfs(world.directory("ws-evil"), "size=64k")
        fact = world.facts().workspace
        return before, fact.mounts, fact.setuid

    assert with_own_mounts(ask) == ((), tuple(sorted(names)), ())


@pytest.mark.skipif(not IS_ROOT, reason="needs root to mount")
def test_mount_that_another_hides_is_not_below_the_root(world: World) -> None:
    above = world.directory("above/ws/sub").removesuffix("/ws/sub")

    def ask() -> Any:
        kernel.mount_tmpfs(f"{above}/ws/sub", "size=64k")
        kernel.mount_tmpfs(above, "size=64k")
        main = world.site.workspaces["main"].replace(root=world.directory("above/ws"))
        world.site = world.site.replace(workspaces={"main": main})
        return world.facts().workspace.mounts

    assert with_own_mounts(ask) == ()


@pytest.mark.skipif(not IS_ROOT, reason="needs root to mount")
def test_root_that_is_a_mount_itself_passes(world: World) -> None:
    def ask() -> Any:
        kernel.mount_tmpfs(world.root, "size=64k")
        return world.facts().workspace.mounts

    assert with_own_mounts(ask) == ()
