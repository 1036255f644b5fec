"""Control groups of one run: bounds on what all of its processes together may use, and what the kernel counted.

Only a bound that the profile states makes a group. It is gone with the run; what a parent that was killed has left is
empty, and is removed when the next one makes its own.

*Version 1*: the run's thread joins the new groups before the spawn and leaves them after it, so that the child is born
there. Moving a process from outside waits for every processor (5 to 13 ms on an idle machine), a thread that moves
itself for none. *Version 2* has no such door for threads: bubblewrap is moved while it waits for its options.

What ended a run is read from the kernel's counters; an exit status of 137 says nothing.
"""

from __future__ import annotations

import _thread
import errno
import os
import resource
import select

from prespawn.policy.errors import HostError
from prespawn.policy.record import Record

from .cgroup_places import CONTROLLERS, REQUIRED, here, text_of
from .process import start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .cgroup_places import Place

    Bounds = tuple[tuple[str, int], ...]

_PREFIX, _PARTS = "prespawn-", 4
_PAUSES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # milliseconds between attempts to remove what is just ending


class Counters(Record):
    """Of the limits of a run those at which the kernel stopped something: killed for memory, or refused a process."""

    killed: int = 0
    refused: int = 0


def name_here() -> str:
    """Return a name for the calling thread's groups: by it another parent can tell that this one is gone."""
    pid = os.getpid()
    return f"{_PREFIX}{_pid_namespace()}-{pid}-{start_time(pid)}-{_thread.get_native_id()}"


class Groups:
    """The groups of one run; without bounds there are none, and everything here does nothing."""

    __slots__ = ("_inside", "_leaves", "_places", "left")

    def __init__(self) -> None:
        self._leaves: dict[str, str] = {}  # directory of the run's group by hierarchy
        self._places: dict[str, Place] = {}
        self._inside = False
        self.left = ""  # why a group is still there

    @classmethod
    def made(cls, bounds: Bounds, named: Callable[[], str], found: Callable[[], Mapping[str, Place]] = here) -> Groups:
        """Make the groups for some bounds; ``HostError`` ``limit-not-enforceable`` if this host does not let it."""
        groups = cls()
        limit = bounds[0][0] if bounds else ""  # what is named where it cannot even be looked where groups could be
        try:
            at = found() if bounds else {}
            for above in {place.above for place in at.values()}:
                _sweep(above)
            name = named() if bounds else ""
            for limit, value in bounds:
                groups._bound(limit, value, at.get(CONTROLLERS[limit]), name)
        except OSError as error:
            groups.remove()
            reason = (error.strerror or str(error)).lower()
            raise HostError("limit-not-enforceable", f"limits.{limit} could not be set: {reason}; {_NEEDED}") from error
        except HostError:
            groups.remove()
            raise
        return groups

    @property
    def paths(self) -> dict[str, str]:
        """The run's group by hierarchy, both as ``/proc/PID/cgroup`` has them."""
        return {
            name: f"{place.path.rstrip('/')}/{self._leaves[name].rpartition('/')[2]}"
            for name, place in self._places.items()
        }

    def _bound(self, limit: str, value: int, place: Place | None, name: str) -> None:
        if place is None:
            if limit in REQUIRED:
                raise HostError("limit-not-enforceable", f"limits.{limit} has no control group here; {_NEEDED}")
            return
        leaf = f"{place.above}/{name}"
        if place.hierarchy not in self._leaves:
            os.mkdir(leaf, 0o755)
            self._leaves[place.hierarchy], self._places[place.hierarchy] = leaf, place
        _SETTERS[limit](leaf, place.version, value)

    def enter(self) -> None:
        """Have what the calling thread starts next be born in the groups, where threads can join (version 1)."""
        self._inside = True
        for name, place in self._places.items():
            if place.version == 1:
                _moved(f"{self._leaves[name]}/tasks", "0")

    def place(self, pid: int) -> None:
        """Take the calling thread back, now that it has started a process, and move that where it was not born."""
        self._leave()
        for name, place in self._places.items():
            if place.version != 1:
                _moved(f"{self._leaves[name]}/cgroup.procs", str(pid))

    def _leave(self) -> None:
        places = self._places.values() if self._inside else ()
        for place in places:
            if place.version == 1:
                _moved(f"{place.own}/tasks", "0")
        self._inside = False

    def counters(self) -> Counters:
        """Return what the kernel counted."""
        killed = refused = 0
        for name, place in self._places.items():
            leaf = self._leaves[name]
            killed += _counted(leaf, "memory.oom_control" if place.version == 1 else "memory.events", "oom_kill")
            refused += _counted(leaf, "pids.events", "max")
        return Counters(killed=killed, refused=refused)

    def remove(self) -> None:
        """Remove the groups of a run that has ended; the kernel may need a moment to see that they are empty."""
        self._leave()
        for leaf in self._leaves.values():
            reason = next((why for pause in _PAUSES if (why := _removed(leaf, pause)) != _BUSY), _BUSY)
            if reason:
                self.left = f"its control group `{leaf}` could not be removed: {reason}"
        self._leaves, self._places = {}, {}


def _moved(file: str, who: str) -> None:
    try:
        _write(file, who)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"the run could not be moved between control groups, by `{file}`: {reason}"
        raise HostError("limit-not-enforceable", f"{message}; {_NEEDED}") from error


def _sweep(above: str) -> None:
    """Remove empty groups of parents that are gone; those of another pid namespace are not ours to judge."""
    for entry in os.listdir(above):
        if entry.startswith(_PREFIX):
            parts = entry.removeprefix(_PREFIX).split("-")
            if len(parts) == _PARTS and parts[0] == str(_pid_namespace()) and not _is_alive(parts[1], parts[2]):
                _removed(f"{above}/{entry}", 0)


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _is_alive(pid: str, started: str) -> bool:
    try:
        return str(start_time(int(pid))) == started
    except (FileNotFoundError, ProcessLookupError):
        return False


_BUSY = "it is in use"


def _removed(leaf: str, pause: int) -> str:
    """Remove a group after some milliseconds; return why it is still there, nothing if it is not."""
    select.poll().poll(pause)
    try:
        os.rmdir(leaf)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _BUSY if error.errno == errno.EBUSY else (error.strerror or str(error)).lower()
    return ""


_NEEDED = (
    "allowed here: a parent whose own control group lets it make others below it (root under version 1; a delegated"
    " subtree under version 2), or a profile without that limit"
)


def _set_memory(leaf: str, version: int, value: int) -> None:
    """Bound memory and what is swapped of it together."""
    name, swap = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes") if version == 1 else ("memory.max", "")
    _write(f"{leaf}/{name}", str(value))
    found = text_of(f"{leaf}/{name}").strip()
    if not found.isdigit() or not 0 <= value - int(found) < resource.getpagesize():
        raise OSError(errno.EINVAL, f"`{found}` was set in place of `{value}`")
    if version != 1:
        _write_if_there(f"{leaf}/memory.swap.max", "0")
    elif not _write_if_there(f"{leaf}/{swap}", str(value)):
        _write(f"{leaf}/memory.swappiness", "0")


def _set_cpu(leaf: str, version: int, value: int) -> None:
    """Bound processor time in thousandths of one processor, over the kernel's own period."""
    if version == 1:
        period = int(text_of(f"{leaf}/cpu.cfs_period_us"))
        _set(f"{leaf}/cpu.cfs_quota_us", str(value * period // 1000))
    else:
        period = int(text_of(f"{leaf}/cpu.max").split()[1])
        _set(f"{leaf}/cpu.max", f"{value * period // 1000} {period}")


def _set_processes(leaf: str, version: int, value: int) -> None:
    """Bound processes and threads, bubblewrap's own among them."""
    _set(f"{leaf}/pids.max", str(value))


_SETTERS = {"memory": _set_memory, "cpu": _set_cpu, "processes": _set_processes}


def _set(path: str, text: str) -> None:
    _write(path, text)
    found = text_of(path).strip()
    if found != text:
        raise OSError(errno.EINVAL, f"`{found}` was set in place of `{text}`")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)


def _write_if_there(path: str, text: str) -> bool:
    try:
        _write(path, text)
    except FileNotFoundError:
        return False
    return True


def _counted(leaf: str, name: str, key: str) -> int:
    """Return one number of a file of counters; nothing was counted where there is no such controller."""
    try:
        lines = text_of(f"{leaf}/{name}").splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[0] == key), 0)
