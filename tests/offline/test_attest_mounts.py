"""The mount table of a held run as the kernel writes it: names of any bytes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from prespawn.attest.mounts import Table
from prespawn.attest.reading import Process

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {
    r"blank\040backslash\134newline\012": "/opt/blank backslash\\newline\n",
    r"word\134x41": r"/opt/word\x41",
    "next\u0085line\u2028separator\x0b": "/opt/next\u0085line\u2028separator\x0b",
    "byte\udcff": "/opt/byte\udcff",
    "byte\\134\udcff\\040": "/opt/byte\\\udcff ",
    r"not\escaped\9": r"/opt/not\escaped\9",
}


@pytest.mark.parametrize("written", NAMES, ids=ascii)
def test_mount_of_any_name_stands_at_its_place(written: str, tmp_path: Path) -> None:
    place = NAMES[written]
    lines = ["21 1 0:5 / / ro,nosuid - tmpfs tmpfs rw,size=64k", f"22 21 0:6 / /opt/{written} ro - ext4 /dev/sda ro"]
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        table = Table("".join(f"{line}\n" for line in lines), folder)
    finally:
        os.close(folder)
    assert set(table.mounts) == {"/", place}
    assert table.mounts[place]["kind"] == "ext4"


def test_bytes_of_a_name_are_kept(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_bytes(b"/opt/\xff\xe2\x80\xa8")
    with Process(os.getpid()) as process:
        process.fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            assert os.fsencode(process.names("mountinfo")) == b"/opt/\xff\xe2\x80\xa8"
        finally:
            os.close(process.fd)
