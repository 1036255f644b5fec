"""One process of a held run, as the kernel records it: ids, privileges, namespaces, limits, descriptors, keys.

Numbers that mean nothing outside this moment (namespaces, pipes, sessions) become words about whose they are. Of the
environment the keys are kept, of the argument vector only whether it is the plan's.
"""

from __future__ import annotations

import os

from prespawn.checker.capabilities import named
from prespawn.checker.expected import NAMESPACES
from prespawn.policy.known import Unknown

from .reading import known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from prespawn.hold import Ready

    from .reading import Process

_MAPS = ("uid_map", "gid_map", "setgroups")
_SETS = {
    "inheritable": "CapInh",
    "permitted": "CapPrm",
    "effective": "CapEff",
    "bounding": "CapBnd",
    "ambient": "CapAmb",
}
_LIMITS = {
    "Max processes": "processes", "Max open files": "open_files", "Max file size": "file_size",
    "Max core file size": "core",
}  # fmt: skip
_HARD, _WIDTH = 47, 21  # where in a line of /proc/PID/limits the hard limit stands
_PROCESS_GROUP, _SESSION, _TERMINAL = 2, 3, 4  # of the fields after the command name in /proc/PID/stat


class Own:
    """The parent's own records, with which those of its run are compared; no run changes them."""

    __slots__ = ("cgroup", "filters", "groups", "namespaces", "uid")

    def __init__(self, own: Process) -> None:
        self.uid, self.groups = os.geteuid(), {os.getegid(), *os.getgroups()}
        self.namespaces = known("namespaces", lambda: namespaces(own))
        self.cgroup = known("cgroup", lambda: own.text("cgroup"))
        self.filters = _whole(status(own), "Seccomp_filters")


class Parent:
    """What one held run is compared with: the parent's own, and what it holds of this run."""

    __slots__ = ("cgroup", "filters", "groups", "init", "leaves", "namespaces", "run", "streams", "uid")

    def __init__(self, own: Own, runtime: Process, held: Ready) -> None:
        self.uid, self.groups, self.cgroup, self.filters = own.uid, own.groups, own.cgroup, own.filters
        self.init, self.namespaces, self.leaves = held.init, own.namespaces, held.groups
        self.run = known("namespaces", lambda: runtime.link("ns/mnt"))  # of a root parent's thread, with its staging
        names = ("stdin", "stdout", "stderr")
        self.streams = {f"pipe:[{os.fstat(fd).st_ino}]": name for fd, name in zip(held.streams, names, strict=True)}


def seen(
    process: Process, parent: Parent, environ: bytes | Unknown, shared: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Return what payload and init have in common; the namespaces as the links that they are.

    ``shared`` is what the payload showed, for init: the maps belong to the user namespace, and are read once for both
    where it is one.
    """
    links = known("namespaces", lambda: namespaces(process))
    of, ids = status(process), known("stat", lambda: process.text("stat").rpartition(")")[2].split())
    return {
        "pid": _of(of, "NSpid", lambda text: int(text.split()[-1])),
        "uids": _of(of, "Uid", _numbers),
        "gids": _of(of, "Gid", _numbers),
        "groups": _groups(_of(of, "Groups", _numbers), _of(of, "Uid", _numbers), parent),
        "capabilities": {name: _of(of, key, _capabilities) for name, key in _SETS.items()},
        "no_new_privs": _of(of, "NoNewPrivs", lambda text: text == "1"),
        "seccomp": {"mode": _whole(of, "Seccomp"), "filters": _added(_whole(of, "Seccomp_filters"), parent.filters)},
        "process_group": _whose(ids, _PROCESS_GROUP, parent),
        "session": _whose(ids, _SESSION, parent),
        "terminal": ids if isinstance(ids, Unknown) else int(ids[_TERMINAL]),
        "namespaces": links,
        **(_of_both(shared, links) or maps(process)),
        "cgroup": known("cgroup", lambda: _group(process.text("cgroup"), parent.cgroup, parent.leaves)),
        "limits": known("limits", lambda: _limits(process.text("limits"))),
        "descriptors": known("descriptors", lambda: _descriptors(process, parent)),
        "environment": environ if isinstance(environ, Unknown) else _keys(environ),
    }  # fmt: skip


def _of_both(shared: Mapping[str, object] | None, links: object) -> dict[str, object]:
    """Return the maps that the other one showed, if its namespaces are these."""
    same = shared is not None and isinstance(links, dict) and shared["namespaces"] == links
    return {name: shared[name] for name in _MAPS} if shared is not None and same else {}


def maps(process: Process) -> dict[str, object]:
    """Return what the user namespace of a process makes of ids."""
    return {
        "uid_map": known("uid_map", lambda: _lines(process.text("uid_map"))),
        "gid_map": known("gid_map", lambda: _lines(process.text("gid_map"))),
        "setgroups": known("setgroups", lambda: process.text("setgroups").strip()),
    }


def environ(process: Process) -> bytes | Unknown:
    """Return the environment of a process, which goes no further than to those who read keys of it."""
    return known("environment", lambda: process.content("environ"))


def whose(found: object, init: object, parent: Parent) -> object:
    """Return for each namespace whether it is the run's own: no one of the parent's, and init's."""
    ours = parent.namespaces
    for links in (found, init, ours, parent.run):
        if isinstance(links, Unknown):
            return links
    assert isinstance(found, dict) and isinstance(init, dict) and isinstance(ours, dict)
    words = {}
    for name, link in found.items():
        is_hosts = link in (ours[name], parent.run)
        words[name] = "the host's" if is_hosts else "own" if link == init[name] else "neither the host's nor init's"
    return words


def namespaces(process: Process) -> dict[str, str]:
    """Return the links of the seven kinds of namespace."""
    folder = process.folder("ns")
    return {name: os.readlink(name, dir_fd=folder) for name in NAMESPACES}


def status(process: Process) -> str | Unknown:
    """Return ``/proc/PID/status``."""
    return known("status", lambda: process.text("status"))


def _of(of: str | Unknown, key: str, read: Callable[[str], Any]) -> Any:
    """Return what one line of a status says; the first, a name that the process chose, is never asked for."""
    if isinstance(of, Unknown):
        return of
    name = f"\n{key}:\t"
    begin = of.find(name)
    if begin < 0:
        return Unknown(reason=f"this kernel's status has no `{key}`")
    return read(of[begin + len(name) : of.index("\n", begin + 1)])


def _whole(of: str | Unknown, key: str) -> Any:
    return _of(of, key, int)


def _capabilities(text: str) -> tuple[str, ...]:
    return named(int(text, 16))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(" ".join(line.split()) for line in text.splitlines())


def _groups(found: tuple[int, ...] | Unknown, uids: tuple[int, ...] | Unknown, parent: Parent) -> object:
    """An ordinary parent cannot take its own groups from a child; another user's worker has none."""
    if isinstance(found, Unknown) or isinstance(uids, Unknown):
        return found if isinstance(found, Unknown) else uids
    if not found:
        return "none"
    return "the caller's" if uids[0] == parent.uid and parent.groups.issuperset(found) else found


def _added(count: Any, before: Any) -> Any:
    """Return how many filters came with the sandbox: a parent that lives under some hands them on."""
    for number in (count, before):
        if isinstance(number, Unknown):
            return number
    return count - before


def _whose(ids: list[str] | Unknown, index: int, parent: Parent) -> object:
    if isinstance(ids, Unknown):
        return ids
    return "init's" if int(ids[index]) == parent.init else "another process's"


def _group(found: str, ours: str | Unknown, leaves: Mapping[str, str]) -> object:
    """Return whose control groups these are; ``leaves`` are those that were made for the run, by hierarchy."""
    if isinstance(ours, Unknown):
        return ours
    if found == ours:
        return "the caller's"
    pairs = [line.split(":", 2)[1:] for line in found.splitlines()]
    own = dict(line.split(":", 2)[1:] for line in ours.splitlines())
    if leaves and dict(pairs) == {**own, **leaves}:
        return "the run's own"
    if len(pairs) == len(own) and all(
        name in own and (path == own[name] or path.startswith(own[name].rstrip("/") + "/")) for name, path in pairs
    ):
        return "below the caller's"
    return tuple(found.splitlines())


def _limits(text: str) -> dict[str, object]:
    limits: dict[str, object] = {}
    for label, name in _LIMITS.items():
        begin = text.index(label) + _HARD
        hard = text[begin : begin + _WIDTH].rstrip()
        limits[name] = hard if hard == "unlimited" else int(hard)
    return limits


def _descriptors(process: Process, parent: Parent) -> tuple[str, ...]:
    """Return what each descriptor is: by number and name the parent's pipes, any other by its kind or path."""
    folder = process.folder("fd")
    numbers = sorted(map(int, os.listdir(folder)))
    return tuple(_descriptor(number, os.readlink(str(number), dir_fd=folder), parent) for number in numbers)


def _descriptor(number: int, link: str, parent: Parent) -> str:
    kind = link.partition(":")[0] if link.startswith(("pipe:", "socket:")) else link
    return f"{number} {parent.streams.get(link, kind)}" if number < 3 else kind


def _keys(environ: bytes) -> tuple[str, ...]:
    """Return the keys alone, sorted, each as often as it stands there."""
    entries = environ.split(b"\0")[:-1]
    keys = (key if sign else b"(no key)" for key, sign, _ in (entry.partition(b"=") for entry in entries))
    return tuple(sorted(key.decode("utf-8", "backslashreplace") for key in keys))
