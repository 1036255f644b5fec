"""Toolchains and leases: what trusted configuration grants, and what it must not grant by mistake."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from support.facts_world import IS_ROOT, LEASED, World, area, lists, lost, profile, with_own_mounts

from prespawn import kernel
from prespawn.facts import places
from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT
from prespawn.policy.site import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[World]:
    with area() as top:
        yield World(top)


def listen(path: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
    return path


def toolchain(world: World, given: str, **look: Any) -> Any:
    world.grant(py=given)
    (fact,) = world.facts(look=look).mounts
    assert (fact.name, fact.purpose, fact.inside) == ("py", "toolchains", ABSENT)
    return fact


def leases(world: World, **look: Any) -> list[Any]:
    return list(world.facts(profile(**LEASED), look=look).mounts)


# -- toolchains


def test_toolchain_that_exposes_nothing(world: World) -> None:
    world.file("py/bin/python")
    fact = toolchain(world, f"{world.top}/py")
    assert (fact.place.kind, fact.place.path) == ("directory", f"{world.top}/py")
    assert (fact.exposes, fact.overlaps, fact.credentials) == (ABSENT, ABSENT, ())


def test_toolchain_is_held_by_its_descriptor(world: World) -> None:
    world.grant(py=world.directory("py"))
    with world.held() as held:
        assert os.fstat(held.toolchains["py"]).st_ino == os.stat(f"{world.top}/py").st_ino


@pytest.mark.parametrize(
    ("given", "exposes"),
    [
        ("/", "the file system root"),
        ("/usr/..", "the file system root"),
        ("/proc", "`/proc`"),
        ("/sys/kernel", "`/sys/`"),
        ("/dev", "`/dev`"),
        ("/run", "`/run`"),
        ("/var/run", "`/run`"),
        ("/etc", "`/etc`"),
    ],
)
def test_toolchain_that_no_worker_may_see(world: World, given: str, exposes: str) -> None:
    if not os.path.isdir(given):
        pytest.skip(f"this host has no {given}")
    assert toolchain(world, given).exposes == exposes


def test_toolchain_by_a_link_is_what_it_leads_to(world: World) -> None:
    assert toolchain(world, world.link("link", "/")).exposes == "the file system root"
    assert toolchain(world, world.link("etc", "/etc")).exposes == "`/etc`"


def test_toolchain_that_holds_a_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "home", lambda: world.directory("homes/me"))
    assert toolchain(world, f"{world.top}/homes").exposes == "a home directory"
    assert toolchain(world, f"{world.top}/homes/me").exposes == "a home directory"
    assert toolchain(world, world.directory("homes/me/tools")).exposes is ABSENT
    assert toolchain(world, "~/tools").exposes is ABSENT


@pytest.mark.parametrize("given", ["run/docker.sock", "link", "run/other.sock"])
def test_toolchain_that_is_a_runtimes_socket(world: World, given: str) -> None:
    path = listen(f"{world.top}/run/docker.sock")
    world.link("link", "run/docker.sock")
    os.link(path, f"{world.top}/run/other.sock")  # a second name: known by identity
    known = lists()["runtime-sockets"].replace(names=(path,), suffixes=())
    assert toolchain(world, f"{world.top}/{given}", runtime_sockets=known).exposes == "a container runtime's socket"
    beside = toolchain(world, listen(f"{world.top}/run/own"), runtime_sockets=known)
    assert (beside.place.kind, beside.exposes) == ("special", ABSENT)  # no directory either


def test_toolchain_that_holds_a_runtimes_socket(world: World) -> None:
    path = listen(f"{world.top}/run/deep/docker.sock")
    known = lists()["runtime-sockets"].replace(names=(path,), suffixes=())
    words = "holds a container runtime's socket at `deep/docker.sock`"
    assert toolchain(world, f"{world.top}/run", runtime_sockets=known).exposes == words
    linked = known.replace(names=(world.link("by-link", "run/deep/docker.sock"),))
    assert toolchain(world, f"{world.top}/run", runtime_sockets=linked).exposes == words
    assert toolchain(world, f"{world.top}/run").exposes == words  # by its name alone, whoever listens


def test_toolchain_that_holds_any_socket_or_setuid_file(world: World) -> None:
    os.chmod(world.file("py/bin/su"), 0o4755)
    assert toolchain(world, f"{world.top}/py").exposes == "holds a setuid file at `bin/su`"
    listen(f"{world.top}/py/agent")
    assert toolchain(world, f"{world.top}/py").exposes == "holds a socket at `agent`"


def test_toolchain_that_holds_the_parents_own(world: World) -> None:
    site_file = world.file("conf/site.yaml")
    assert toolchain(world, f"{world.top}/conf", site_file=site_file).exposes == "the site file"
    assert toolchain(world, world.state).exposes == "the state directory"


def test_toolchain_larger_than_the_bound_is_unknown(world: World) -> None:
    for number in range(5):
        world.file(f"py/{number}")
    assert lost(toolchain(world, f"{world.top}/py", most_entries=4).exposes) == "more than 4 entries"
    assert toolchain(world, f"{world.top}/py", most_entries=5).exposes is ABSENT


def test_toolchain_credentials_are_those_at_its_top(world: World) -> None:
    for name in ("py/.npmrc", "py/lib/certifi/cacert.pem", "py/key.pem"):
        world.file(name)
    assert toolchain(world, f"{world.top}/py").credentials == (".npmrc", "key.pem")


@pytest.mark.parametrize(("given", "kind"), [("nothing", "missing"), ("file", "file"), ("loop", "link")])
def test_toolchain_that_is_no_directory(world: World, given: str, kind: str) -> None:
    world.file("file")
    world.link("loop", "loop")
    fact = toolchain(world, f"{world.top}/{given}")
    assert (fact.place.kind, fact.exposes) == (kind, ABSENT)


def test_toolchain_that_the_site_does_not_know(world: World) -> None:
    main = world.site.workspaces["main"].replace(toolchains=("go",))
    world.site = world.site.replace(workspaces={"main": main})
    (fact,) = world.facts().mounts
    assert lost(fact.place) == lost(fact.exposes) == "the site has no toolchain `go`"


@pytest.mark.parametrize("given", ["tools", "./tools", ""])
def test_toolchain_is_never_looked_for_around_the_caller(world: World, given: str) -> None:
    assert lost(toolchain(world, given).place) == f"`{given}` is neither absolute nor below `~`"


@pytest.mark.parametrize(
    ("given", "words"), [("ws/tools", "workspace `main`"), ("", "workspace `main`"), ("ws-evil", None)]
)
def test_toolchain_that_shares_the_workspaces_tree(world: World, given: str, words: str | None) -> None:
    given = world.directory(given).rstrip("/") if given else world.top
    assert encode(toolchain(world, given).overlaps) == words


@pytest.mark.parametrize(("first", "second"), [("py", "py/lib"), ("py/lib", "py")])
def test_toolchain_that_shares_the_tree_of_one_before_it(world: World, first: str, second: str) -> None:
    world.directory("py/lib")
    world.grant(one=f"{world.top}/{first}", two=f"{world.top}/{second}", other=world.directory("py-other"))
    assert [fact.overlaps for fact in world.facts().mounts] == [ABSENT, "toolchain `one`", ABSENT]


def test_toolchain_that_is_named_twice_is_one(world: World) -> None:
    path = world.directory("py")
    world.grant(py=path, again=path, link=world.link("link", "py"), missing=f"{world.top}/no", gone=f"{world.top}/no")
    assert [fact.name for fact in world.facts().mounts] == ["py", "missing", "gone"]


def test_toolchain_that_holds_a_piece_of_the_system_tree(world: World) -> None:
    tree = lists()["system-tree"].replace(names=(world.directory("sys/certs"),))
    found = {name: toolchain(world, f"{world.top}/{name}", system_tree=tree).overlaps for name in ("sys", "sys/certs")}
    assert found == {"sys": "the system tree", "sys/certs": "the system tree"}
    inside = toolchain(world, world.directory("sys/certs/java"), system_tree=tree)
    assert inside.overlaps is ABSENT  # it lies over itself, and its programs are found


@pytest.mark.skipif(not IS_ROOT, reason="needs root to mount")
def test_toolchain_with_a_mount_below_it(world: World) -> None:
    below = world.directory("py/lib/a b")

    def ask() -> Any:
        kernel.mount_tmpfs(below, "size=64k")
        return toolchain(world, f"{world.top}/py").exposes

    assert with_own_mounts(ask) == "holds a mount at `lib/a b`"


# -- leases


def test_lease_below_the_lease_root(world: World) -> None:
    places = {"root": world.directory("leases/a"), "state": world.directory("leases/s")}
    world.lease(lease_root=f"{world.top}/leases", **places)
    root, state = leases(world)
    assert (root.purpose, root.name, root.inside, root.place.kind) == ("leases", "workspace", True, "directory")
    assert (state.purpose, state.name, state.inside) == ("leases", "state", True)
    assert {encode(value) for fact in (root, state) for value in (fact.exposes, fact.overlaps)} == {None}
    assert (root.credentials, state.credentials) == ((), ())


@pytest.mark.parametrize(
    ("given", "inside", "kind"),
    [
        ("leases/link-root", False, "link"),
        ("leases/link-in", False, "link"),
        ("leases/via/a", False, "link"),
        ("leases/../other", False, "directory"),
        ("leases-evil", False, "directory"),
        ("other", False, "directory"),
        ("leases", False, "directory"),
        ("leases/nothing", True, "missing"),
        ("leases/a", True, "directory"),
        ("leases/a/", True, "directory"),
    ],
)
def test_lease_that_is_not_below_the_lease_root(world: World, given: str, inside: bool, kind: str) -> None:
    for name in ("leases/a", "leases-evil", "other"):
        world.directory(name)
    world.link("leases/link-root", "/")
    world.link("leases/link-in", "a")
    world.link("leases/via", ".")
    world.lease(lease_root=f"{world.top}/leases", root=f"{world.top}/{given}")
    (fact,) = leases(world)
    assert (fact.inside, fact.place.kind) == (inside, kind)
    if kind == "link":
        assert fact.exposes is ABSENT  # a link is not followed, so nothing is said about where it leads


def test_lease_without_a_lease_root_is_not_inside(world: World) -> None:
    world.site = world.site.replace(lease_root=None)
    (fact,) = leases(world)
    assert fact.inside is False


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("leases/a", "lease `workspace`"),
        ("leases/a/state", "lease `workspace`"),
        ("leases", "lease `workspace`"),
        ("leases/b", "the workspace of `other`"),
        ("leases/b/x", "the workspace of `other`"),
        ("leases/t", "the state of `other`"),
        ("leases/a-evil", None),
    ],
)
def test_state_lease_that_shares_a_tree(world: World, state: str, words: str | None) -> None:
    for name in ("leases/a", "leases/b", "leases/t", state):
        world.directory(name)
    world.lease(lease_root=f"{world.top}/leases", root=f"{world.top}/leases/a", state=f"{world.top}/{state}")
    other = Workspace(root=f"{world.top}/leases/b", reports="r", state=f"{world.top}/leases/t")
    world.site = world.site.replace(workspaces={**world.site.workspaces, "other": other})
    facts = world.facts(profile(**LEASED), workspace="main").mounts
    assert encode(facts[1].overlaps) == words


def test_lease_that_holds_credentials_names_them_at_any_depth(world: World) -> None:
    root = world.directory("leases/a")
    for name in (".env", "deep/id_rsa", "home/.aws/credentials", "tls/key.pem", "aws/credentials", "README"):
        world.file(f"leases/a/{name}", "secret")
    world.lease(lease_root=f"{world.top}/leases", root=root)
    (fact,) = leases(world)
    assert fact.credentials == (".env", "deep/id_rsa", "home/.aws/credentials", "tls/key.pem")
    assert "secret" not in repr(fact)
