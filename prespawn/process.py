"""Which process is meant: a pid alone can be another one's tomorrow; with its start time and this boot it cannot."""

from __future__ import annotations

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_STARTED = 19  # of the fields after the command name in /proc/PID/stat: field 22, ticks since boot


def boot_id() -> str:
    """Return the random id of this boot."""
    with open(_BOOT_ID, "rb", buffering=0) as file:
        return file.read().decode("ascii").strip()


def start_time(pid: int) -> int:
    """Return when a process started, in ticks since boot; ``FileNotFoundError`` if it is gone."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()  # the command name may hold blanks and brackets
    return int(fields[_STARTED])
