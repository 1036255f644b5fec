"""Files that are there whole or not at all: every call that fails on the way leaves no name that could be read."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from prespawn.durable import sweep, unfinished, write_new

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


def test_file_is_whole_and_its_owners_alone(directory: int, tmp_path: Path) -> None:
    write_new(directory, "a", b"x" * 100_000)
    assert (tmp_path / "a").read_bytes() == b"x" * 100_000
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a"]


def test_file_is_not_written_over(directory: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_new(directory, "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("call", ["open", "fchmod", "write", "fsync", "link"])
def test_call_that_fails_leaves_nothing(directory: int, tmp_path: Path, call: str) -> None:
    with mock.patch(f"os.{call}", side_effect=OSError(28, "No space left on device")), pytest.raises(OSError):
        write_new(directory, "a", b"new")
    assert os.listdir(tmp_path) == []


def test_name_that_may_not_last_is_none(directory: int, tmp_path: Path) -> None:
    synced = os.fsync

    def fsync(fd: int) -> None:
        if fd == directory:
            raise OSError(5, "Input/output error")
        synced(fd)

    with mock.patch("os.fsync", fsync), pytest.raises(OSError, match="Input/output error"):
        write_new(directory, "a", b"new")
    assert os.listdir(tmp_path) == []


def test_first_name_that_stays_is_swept_when_its_writer_is_gone_and_not_before(directory: int, tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        os.close(os.open(tmp_path / unfinished("of-a-child"), os.O_CREAT | os.O_WRONLY))
        os.close(os.open(tmp_path / f"{unfinished('registry.db')}-wal", os.O_CREAT | os.O_WRONLY))
        os._exit(0)
    os.waitpid(child, 0)
    mine = unfinished("mine")
    for name in (mine, "somebody.new", "else.12-x-y.new", "kept"):
        (tmp_path / name).touch()
    gone = sweep(directory)
    assert [name.partition(".")[0] for name in gone] == ["of-a-child", "registry"]
    assert sorted(os.listdir(tmp_path)) == sorted([mine, "somebody.new", "else.12-x-y.new", "kept"])
