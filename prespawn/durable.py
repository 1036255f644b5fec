"""Small files that are there whole or not at all, and durable when the call returns.

A file is finished under a name of its own and then linked to the one that it is known by, which fails if that is taken:
no kill, no full disk and no second writer leaves half of one to be read. What a killed writer leaves is the other name,
in which the writer's pid and start time stand, so that ``sweep`` takes away what nobody will finish and nothing else.
"""

from __future__ import annotations

import os

from .process import is_alive, start_time

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_END = ".new"
_COMPANIONS = ("", "-wal", "-shm", "-journal")  # what SQLite makes beside a file


def write_new(directory: int, name: str, content: bytes, mode: int = 0o600) -> None:
    """Write a file below an open directory; ``FileExistsError`` if something has the name, other ``OSError`` as is."""
    fresh = unfinished(name)
    file = os.open(fresh, _NEW, mode, dir_fd=directory)
    try:
        try:
            os.fchmod(file, mode)  # whatever the umask says
            write_whole(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        os.link(fresh, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except BaseException:
        os.unlink(fresh, dir_fd=directory)
        raise
    try:
        os.unlink(fresh, dir_fd=directory)
        os.fsync(directory)
    except OSError:
        os.unlink(name, dir_fd=directory)  # a name that may not last is none
        raise


def write_whole(file: int, content: bytes) -> None:
    """Write all of a text."""
    while content:
        content = content[os.write(file, content) :]


def unfinished(name: str) -> str:
    """Return the name under which this process makes a file ready."""
    return f"{name}.{os.getpid()}-{start_time(os.getpid())}-{os.urandom(4).hex()}{_END}"


def sweep(directory: int) -> tuple[str, ...]:
    """Take away what writers that are gone have left unfinished, and return the names, sorted."""
    left = sorted(name for name in os.listdir(directory) if _END in name and not _is_being_made(name))
    for name in left:
        os.unlink(name, dir_fd=directory)
    return tuple(left)


def _is_being_made(name: str) -> bool:
    """Say whether the writer lives; a name that no writer of ours gives is nobody's to take away."""
    before, _, companion = name.rpartition(_END)
    pid, _, rest = before.rpartition(".")[2].partition("-")
    started = rest.partition("-")[0]
    ours = pid.isdecimal() and started.isdecimal() and companion in _COMPANIONS
    return not ours or is_alive(int(pid), int(started))
