"""Which process is meant: a pid alone can be another one's tomorrow; with its start time and this boot it cannot."""

from __future__ import annotations

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_STATE, _THREADS, _STARTED = 0, 17, 19  # of the fields after the command name in /proc/PID/stat
_ENDED = (b"Z", b"X", b"x")


def boot_id() -> str:
    """Return the random id of this boot."""
    with open(_BOOT_ID, "rb", buffering=0) as file:
        return file.read().decode("ascii").strip()


def start_time(pid: int) -> int:
    """Return when a process started, in ticks since boot; ``FileNotFoundError`` if it is gone."""
    return int(_fields(pid)[_STARTED])


def is_alive(pid: int, started: int) -> bool:
    """Return whether that very process still runs: a zombie does not, unless threads of it are left."""
    try:
        fields = _fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    ended = fields[_STATE] in _ENDED and int(fields[_THREADS]) <= 1
    return int(fields[_STARTED]) == started and not ended


def _fields(pid: int) -> list[bytes]:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()  # the command name may hold blanks and brackets
