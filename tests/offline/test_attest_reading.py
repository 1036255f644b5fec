"""Reading a process's records: what stays open does not grow with how often they are read, and goes with the reader."""

from __future__ import annotations

import os

from prespawn.attest.reading import Process


def test_directory_of_a_process_is_opened_once_and_closed_with_it() -> None:
    before = set(os.listdir("/proc/self/fd"))
    with Process(os.getpid()) as process:
        opened = [{process.folder(name) for name in ("ns", "fd")} for _ in range(50)]
        assert opened[0] == opened[-1]
        assert all(one == opened[0] for one in opened)
        assert len(set(os.listdir("/proc/self/fd")) - before) == 3  # the process, `ns` and `fd`
        assert sorted(os.listdir(process.folder("ns"))) == sorted(os.listdir(f"/proc/{os.getpid()}/ns"))
        assert os.listdir(process.folder("fd")) == os.listdir(process.folder("fd"))
    assert set(os.listdir("/proc/self/fd")) == before
