"""A name that somebody exchanges while it is looked at never leads outside.

Another process exchanges a directory with a link that leads out, as fast as it can, by ``renameat2``. Both names exist
at every instant, so "missing" would be a wrong answer as well. The first test shows that the race is real: a look by
path loses it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from support.facts_world import World, area, lists

from prespawn.facts.look import Look
from prespawn.facts.scan import scan
from prespawn.facts.targets import open_state, target
from prespawn.facts.walk import declared_file
from prespawn.policy.known import ABSENT, Absent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS, ROUNDS = 5.0, 10_000
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture
def world() -> Iterator[World]:
    with area() as top:
        world = World(top)
        world.file("ws/d/page", "inside")
        world.file("out/page", "outside")
        os.chmod(world.file("out/su"), 0o4755)
        world.link("ws/l", "../out")
        yield world


@contextmanager
def exchanging(one: str, other: str) -> Iterator[None]:
    """Let a child exchange two names for as long as the context lasts."""
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    arguments = (AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)
    if rename(*arguments) != 0:
        pytest.skip(f"this file system cannot exchange names: {os.strerror(ctypes.get_errno())}")
    child = os.fork()
    if child == 0:
        while os.getppid() != 1:
            rename(*arguments)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def rounds(look: Callable[[], None], seconds: float) -> int:
    """Look again and again, and return how often."""
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(100):
            look()
        count += 100
    return count


def test_looking_by_path_loses_the_race(world: World) -> None:
    outside, escapes = os.stat(f"{world.top}/out/page").st_ino, 0

    def look() -> None:
        nonlocal escapes
        path = f"{world.root}/d/page"
        with suppress(OSError):  # `realpath` itself stumbles over the exchange
            if os.path.realpath(path).startswith(f"{world.root}/"):
                escapes += os.stat(path).st_ino == outside

    with exchanging(f"{world.root}/d", f"{world.root}/l"):
        end = time.monotonic() + SECONDS
        while not escapes and time.monotonic() < end:
            look()
    assert escapes > 0


def test_declared_file_never_escapes(world: World) -> None:
    inside = os.stat(f"{world.root}/d/page")
    seen: dict[tuple[object, ...], int] = {}
    root = os.open(world.root, os.O_PATH)

    def look() -> None:
        fact = declared_file(root, "d/page")
        answer = (fact.leaves, fact.present, fact.device, fact.inode)
        seen[answer] = seen.get(answer, 0) + 1

    with exchanging(f"{world.root}/d", f"{world.root}/l"):
        assert rounds(look, SECONDS) >= ROUNDS
    os.close(root)
    assert set(seen) == {(False, True, inside.st_dev, inside.st_ino), (True, ABSENT, ABSENT, ABSENT)}


def test_log_directory_never_escapes(world: World) -> None:
    inside = os.stat(world.directory("state/reports/d")).st_ino
    world.link("state/reports/l", "../../out")
    opened = open_state(Look(lists(), 100, {}), world.state)
    seen: set[tuple[bool, bool | Absent]] = set()

    def look() -> None:
        fact, fd = target(opened, "reports", "reports/d/run.log")
        seen.add((fact.leaves, fact.exists))
        if fd >= 0:
            assert os.fstat(fd).st_ino == inside
            os.close(fd)

    with exchanging(f"{world.state}/reports/d", f"{world.state}/reports/l"):
        rounds(look, 1)
    os.close(opened.fd)
    assert seen == {(True, ABSENT), (False, False)}


def test_scan_never_escapes(world: World) -> None:
    root = os.open(world.root, os.O_PATH)
    answers: list[object] = []

    def look() -> None:
        answers.append(scan(root, 100).setuid)

    with exchanging(f"{world.root}/d", f"{world.root}/l"):
        rounds(look, 1)
    os.close(root)
    assert () in answers
    assert not any(isinstance(answer, tuple) and answer for answer in answers)


def test_place_and_descriptor_belong_together_when_the_root_is_renamed_away(world: World) -> None:
    world.directory("other")
    with exchanging(world.root, f"{world.top}/other"):
        end = time.monotonic() + 1
        while time.monotonic() < end:
            with world.held() as held:
                place, status = held.facts.workspace.place, os.fstat(held.workspace)
                assert (place.device, place.inode) == (status.st_dev, status.st_ino)
