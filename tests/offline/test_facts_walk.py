"""Declared files on a real tree: every row and payload of group P that names one."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.facts_world import IS_ROOT, World, area, as_stranger, declare, lost, payloads

from prespawn.checker.facts import FileFact
from prespawn.facts.walk import HOPS, declared_file, descend
from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.spelling import climbs, is_absolute, is_canonical, is_printable_name

if TYPE_CHECKING:
    from collections.abc import Iterator

DECLARED = payloads("P01", "P02", "P03", "P04", "P05", "P07", "P10", "P11", "P15", "P16", "P18")


@pytest.fixture
def world() -> Iterator[World]:
    with area() as top:
        world = World(top)
        world.file("outside.txt", "secret")
        for name in ("f", "a", "docs/page", "docs/deep/page", "sub/deep/x"):
            world.file(f"ws/{name}")
        for name, text in {
            "abs": "/etc/passwd", "in": "f", "loop": "loop", "one": "two", "two": "one", "magic": "/proc/self/root",
            "procfd": "/proc/self/fd/0", "indir": "./docs", "outdir": "/etc", "climb": "../outside.txt",
            "round": "docs/../../ws/f", "chain": "chain2", "chain2": "indir/deep", "dangling": "nowhere",
            "exact": f"{world.root}/f", "out-again": "docs/deep/../../../outside.txt",
        }.items():  # fmt: skip
            world.link(f"ws/{name}", text)
        os.link(f"{top}/outside.txt", f"{world.root}/hard")
        os.mkfifo(f"{world.root}/fifo")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{world.root}/sock")
        with open(os.fsencode(f"{world.root}/rawff") + b"\xff", "w"):
            pass
        yield world


def seen(world: World, path: object) -> FileFact:
    """Return the fact of one declared file, by the public entry point."""
    (fact,) = world.facts(declared_files=[path]).declared_files
    return fact


def fields(fact: FileFact) -> tuple[Any, ...]:
    """Return what matters of a fact without the identity."""
    return fact.leaves, fact.linked, fact.present, fact.kind, fact.links


NOT_LOOKED_FOR = (ABSENT,) * 5
LEAVES = (True, False, ABSENT, ABSENT, ABSENT)
LINKED = (False, True, ABSENT, ABSENT, ABSENT)
MISSING = (False, False, False, ABSENT, ABSENT)
OF_ROW = {
    "P01": NOT_LOOKED_FOR, "P02": NOT_LOOKED_FOR, "P03": NOT_LOOKED_FOR, "P11": NOT_LOOKED_FOR,
    "P15": NOT_LOOKED_FOR, "P04": MISSING, "P10": (False, False, True, "file", 2),
    "P16": (False, False, True, "fifo", ABSENT),
}  # fmt: skip
OF_PAYLOAD = {
    "fs:abs": LEAVES, "fs:in": LINKED, "fs:loop": LEAVES, "fs:loop/../../outside": NOT_LOOKED_FOR,
    "file:///etc/passwd": NOT_LOOKED_FOR, "fs:magic/etc/passwd": LEAVES,
    "/dev/fd/0": NOT_LOOKED_FOR, "fs:procfd": LEAVES,
}  # fmt: skip


@pytest.mark.parametrize("payload", DECLARED, ids=lambda payload: f"{payload['id']}-{payload['n']}")
def test_payload_gets_its_facts(world: World, payload: dict[str, Any]) -> None:
    path = payload["data"].replace("{ws}", world.root).removeprefix("fs:")
    started = time.monotonic()
    expected = OF_PAYLOAD.get(payload["data"]) or OF_ROW[payload["id"]]
    assert fields(seen(world, path)) == expected
    assert time.monotonic() - started < 1


@pytest.mark.parametrize("payload", DECLARED, ids=lambda payload: f"{payload['id']}-{payload['n']}")
def test_payload_that_is_not_looked_for_is_refused_by_its_spelling(payload: dict[str, Any]) -> None:
    path = payload["data"].replace("{ws}", "/ws").removeprefix("fs:")
    refused = not is_printable_name(path) or is_absolute(path) or climbs(path) or not is_canonical(path)
    assert refused is ((OF_PAYLOAD.get(payload["data"]) or OF_ROW[payload["id"]]) == NOT_LOOKED_FOR)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("f", (False, False, True, "file", 1)),
        ("docs", (False, False, True, "directory", ABSENT)),
        ("docs/deep/page", (False, False, True, "file", 1)),
        ("sock", (False, False, True, "socket", ABSENT)),
        ("nowhere", MISSING),
        ("nowhere/at/all", MISSING),
        ("f/below-a-file", MISSING),
        ("x" * 300, MISSING),
        ("/".join(["docs"] * 3000), MISSING),
        ("one", LEAVES),
        ("one/x", LEAVES),
        ("climb", LEAVES),
        ("outdir/hostname", LEAVES),
        ("round", LEAVES),
        ("out-again", LEAVES),
        ("exact", LEAVES),
        ("indir/page", LINKED),
        ("chain/page", LINKED),
        ("dangling", LINKED),
        ("indir/nowhere", LINKED),
    ],
)
def test_walk_says_where_a_name_leads(world: World, path: str, expected: tuple[object, ...]) -> None:
    assert fields(seen(world, path)) == expected


@pytest.mark.parametrize("path", [None, 3, True, ["f"], {"path": "f"}, "", "a\u202eb"])
def test_what_is_no_name_is_not_looked_for(world: World, path: object) -> None:
    fact = seen(world, path)
    assert fact.path == path
    assert {value for name, value in fact if name != "path"} == {ABSENT}


def test_identity_is_the_one_of_the_file(world: World) -> None:
    fact, status = seen(world, "docs/page"), os.stat(f"{world.root}/docs/page")
    assert (fact.device, fact.inode) == (status.st_dev, status.st_ino)


@pytest.mark.parametrize(("length", "expected"), [(HOPS, LINKED), (HOPS + 1, LEAVES)])
def test_chain_of_links_ends_where_the_kernel_gives_up(world: World, length: int, expected: tuple[object, ...]) -> None:
    for number in range(length - 1):
        world.link(f"ws/hop{number}", f"hop{number + 1}")
    world.link(f"ws/hop{length - 1}", "f")
    assert fields(seen(world, "hop0")) == expected


def test_device_does_not_block(world: World) -> None:
    if not IS_ROOT:
        pytest.skip("needs root to make a device")
    os.mknod(f"{world.root}/tty", 0o20666, os.makedev(5, 0))
    os.mknod(f"{world.root}/disk", 0o60600, os.makedev(254, 240))
    started = time.monotonic()
    kinds = {name: seen(world, name).kind for name in ("tty", "disk", "fifo", "sock")}
    assert kinds == {"tty": "device", "disk": "device", "fifo": "fifo", "sock": "socket"}
    assert time.monotonic() - started < 1


def test_mode_0000_file_is_seen_all_the_same(world: World) -> None:
    os.chmod(f"{world.root}/f", 0)
    assert fields(seen(world, "f")) == (False, False, True, "file", 1)


def test_directory_that_cannot_be_searched_is_unknown(world: World) -> None:
    os.chmod(f"{world.root}/docs/deep", 0)

    def ask() -> Any:
        root = os.open(world.root, os.O_PATH)
        return encode(declared_file(root, "docs/deep/page"))

    fact = as_stranger(ask) if IS_ROOT else ask()
    reason = {"unknown": "`docs/deep/page` cannot be looked at: permission denied at `docs/deep`"}
    assert fact == {"path": "docs/deep/page", **dict.fromkeys(tuple(fact)[1:], reason)}


def test_reason_shows_no_control_character(world: World) -> None:
    def ask() -> Any:
        root = os.open(world.root, os.O_PATH)
        try:
            descend(root, "bad\x1b/x")
        except PermissionError as error:
            return error.filename
        return None

    world.directory("ws/bad\x1b", 0)
    assert (as_stranger(ask) if IS_ROOT else ask()) == "bad\x1b"  # an exception keeps it, `why` escapes it
    world.directory("ws/ok")
    world.link("ws/ok/l", "../bad\x1b/x")

    def reason() -> Any:
        return encode(declared_file(os.open(world.root, os.O_PATH), "ok/l"))

    fact = as_stranger(reason) if IS_ROOT else reason()
    assert fact["leaves"] == {"unknown": r"`ok/l` cannot be looked at: permission denied at `bad\x1b`"}


def test_root_that_could_not_be_opened_makes_every_file_unknown() -> None:
    root = Unknown(reason="no root")
    assert {lost(value) for name, value in declared_file(root, "f") if name != "path"} == {"no root"}
    assert {value for name, value in declared_file(root, "../f") if name != "path"} == {ABSENT}


def test_missing_root_leaves_nothing_to_look_at(world: World) -> None:
    os.rename(world.root, f"{world.top}/away")
    facts = world.facts(declared_files=["f"])
    assert facts.workspace.place.kind == "missing"
    assert fields(facts.declared_files[0]) == NOT_LOOKED_FOR


def test_link_of_proc_is_recognised_by_its_size(world: World) -> None:
    top = os.open("/", os.O_PATH)
    try:
        assert descend(top, "proc/self/exe", beneath=False).leaves
        assert descend(top, f"proc/{os.getpid()}/cwd/f", beneath=False).leaves
    finally:
        os.close(top)


def test_walk_leaks_no_descriptor(world: World) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    world.facts(declared_files=["f", "abs", "in", "loop", "indir/page", "nowhere/x", "f/x", "fifo", "out-again", 3])
    assert opened() == before


def test_declared_files_that_are_no_list_give_no_facts(world: World) -> None:
    assert world.facts(declared_files="f").declared_files == ()
    assert declare(declared_files={"a": 1}).declared_files == {"a": 1}
