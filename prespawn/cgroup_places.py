"""Where the control groups of a run can be made on this host by its caller.

A group lies below the caller's own, in the hierarchy that has the controller. Under version 2 a group that has
processes of its own cannot bound others below it: there it is the caller's own group only if that passes its
controllers on (the root of all groups may), else the one above if it was delegated to the caller, as systemd does with
``DelegateSubgroup=``. Nothing of the caller's groups is changed for a run. This module only looks.
"""

from __future__ import annotations

import os

from prespawn.policy.record import Record

CONTROLLERS = {"memory": "memory", "cpu": "cpu", "processes": "pids"}  # of each limit that a group can hold
REQUIRED = ("memory", "cpu")  # nothing else holds these; processes are counted by an rlimit as well
_DELEGATED = ("trusted.delegate", "user.delegate")  # systemd's mark


class Place(Record):
    """Where a group can be made for some controllers.

    ``version`` of the interface; ``hierarchy`` and ``path`` as in ``/proc/PID/cgroup``, the path that of ``above``, the
    directory below which the group will lie; ``own`` is the caller's own directory.
    """

    version: int
    hierarchy: str
    path: str
    above: str
    own: str


def places(own: str, mountinfo: str) -> dict[str, Place]:
    """Return for each controller that the caller may use where; from the texts of its cgroup file and mountinfo."""
    found: dict[str, Place] = {}
    for line in own.splitlines():
        number, names, path = line.split(":", 2)
        if number == "0" and not names:
            for name, place in _unified(path, mountinfo).items():
                found.setdefault(name, place)
        for name in names.split(",") if names else ():
            directory = _directory(mountinfo, "cgroup", name, path)
            if directory is not None and _usable(directory):
                found[name] = Place(version=1, hierarchy=names, path=path, above=directory, own=directory)
    return found


def here() -> dict[str, Place]:
    """Return the places of the calling thread."""
    return places(text_of("/proc/thread-self/cgroup"), text_of("/proc/thread-self/mountinfo"))


def _unified(path: str, mountinfo: str) -> dict[str, Place]:
    own = _directory(mountinfo, "cgroup2", "", path)
    if own is None:
        return {}
    above = own.rpartition("/")[0]
    candidates = [(own, path)]
    if path != "/" and _delegated(above):
        candidates.append((above, path.rpartition("/")[0] or "/"))
    found: dict[str, Place] = {}
    for directory, named in candidates:
        if _usable(directory):
            for controller in text_of(f"{directory}/cgroup.subtree_control").split():
                place = Place(version=2, hierarchy="", path=named, above=directory, own=own)
                found.setdefault(controller, place)
    return found


def _directory(mountinfo: str, kind: str, controller: str, path: str) -> str | None:
    """Return the directory of a group in the hierarchy that has a controller, None where it is not to be seen."""
    for line in mountinfo.splitlines():
        mount, _, of = line.partition(" - ")
        words, (found, _, options) = mount.split(" "), of.split(" ", 2)
        if found != kind or (controller and controller not in options.split(",")):
            continue
        root, point = words[3].rstrip("/"), words[4]
        if path == root or path.startswith(f"{root}/"):
            return (point + path[len(root) :]).rstrip("/")
    return None


def _usable(directory: str) -> bool:
    return os.access(directory, os.W_OK | os.X_OK) and os.access(f"{directory}/cgroup.procs", os.W_OK)


def _delegated(directory: str) -> bool:
    """Say whether a group above the caller's was given to it: it belongs to an ordinary caller, or bears the mark."""
    try:
        if os.geteuid() != 0:
            return os.stat(directory).st_uid == os.geteuid()
        return not set(_DELEGATED).isdisjoint(os.listxattr(directory))
    except OSError:
        return False  # what cannot be looked at was not given to anybody


def text_of(path: str) -> str:
    """Return what a file of the kernel's says."""
    with open(path, "rb", buffering=0) as file:
        return file.read().decode("utf-8", "surrogateescape")
