"""The mount table of a held run, each mount with what it shows, and every entry of its own file systems.

The worker's root is walked from a descriptor of it. Device and inode of a mount are those of what stands at its place
now, if that is on this very mount by the kernel's number for it; so a mount that is hidden under another one, or that
a name only seems to lead to, has none.
"""

from __future__ import annotations

import os
from stat import S_ISCHR

from prespawn import kernel
from prespawn.checker.expected import DIRECTORY, READ_ONLY, READ_WRITE
from prespawn.policy.known import Unknown

from .reading import known, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.checker.plan import Plan

_OCTAL = frozenset("01234567")
_MOST_ENTRIES = 1 << 12  # a plan's own are some fifty; what is far above that is no plan's
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_MOUNT_ID = Unknown(reason="this kernel does not say on which mount a file is")


class Table:
    """Parsed mountinfo: ``mounts`` by place, ``places`` by the kernel's number of a mount, ``seen`` the kind of the one
    on top at each place."""

    __slots__ = ("mounts", "places", "seen")

    def __init__(self, mountinfo: str, root: int) -> None:
        self.mounts: dict[str, dict[str, object]] = {}
        self.places: dict[int, str] = {}
        self.seen: dict[str, str] = {}
        for line in mountinfo.removesuffix("\n").split("\n"):  # nothing else ends a line: names hold the rest
            mount, _, of = line.partition(" - ")
            words, (kind, _, whole) = mount.split(" "), of.split(" ")
            number, place = int(words[0]), words[4] if "\\" not in words[4] else _unescaped(words[4])
            self.places[number], self.seen[place] = place, kind
            while place in self.mounts:
                place += " (again)"
            self.mounts[place] = _mount(words[5].split(","), kind, whole, _shown(number, self.places[number], root))


def _shown(number: int, place: str, root: int) -> kernel.Statx | Unknown | str:
    """Return what stands at a mount's place, or that it is hidden there."""
    try:
        found = kernel.statx(root, place[1:])
    except OSError as error:
        return refused(place, error)
    if not found.mask & kernel.STATX_MNT_ID:
        return _NO_MOUNT_ID
    return found if found.mount == number else "hidden"


def _mount(options: list[str], kind: str, whole: str, found: kernel.Statx | Unknown | str) -> dict[str, object]:
    """Return one mount; ``options`` are those of the mount, ``whole`` those of its file system."""
    seen: dict[str, object] = {
        "access": READ_ONLY if options[0] == "ro" or whole.startswith("ro") else READ_WRITE,
        "flags": tuple(options[1:]),
        "kind": kind,
        "identity": _identity(found) if isinstance(found, kernel.Statx) else found,
    }
    if kind == "tmpfs":
        seen["size"] = _size(whole)
        seen["mode"] = f"{found.mode & 0o7777:04o}" if isinstance(found, kernel.Statx) else found
    return seen


def _identity(found: kernel.Statx) -> str:
    if S_ISCHR(found.mode):
        return f"character {found.rdev_major}:{found.rdev_minor}"
    return identity(found)


def identity(found: kernel.Statx) -> str:
    """Return device and inode as one word, the device as ``os.stat`` counts it."""
    return f"{os.makedev(found.dev_major, found.dev_minor)}:{found.inode}"


def _size(options: str) -> int | None:
    """Return the size of a tmpfs, which the kernel writes in KiB; None where it has no bound of its own."""
    sizes = [option[5:-1] for option in options.split(",") if option.startswith("size=")]
    return int(sizes[0]) << 10 if sizes else None


def _unescaped(text: str) -> str:
    r"""Return a path of mountinfo as it is; blank, tab, newline, backslash and some more stand there as ``\ooo``."""
    first, *others = text.split("\\")
    return first + "".join(
        chr(int(part[:3], 8)) + part[3:] if _OCTAL.issuperset(part[:3]) and len(part) >= 3 else f"\\{part}"
        for part in others
    )


def tree(table: Table, root: int) -> dict[str, object]:
    """Return every entry of every tmpfs of the run, by path; what other mounts show is theirs."""
    entries: dict[str, object] = {}
    pending = [place for place, kind in table.seen.items() if kind == "tmpfs"]
    while pending:
        place = pending.pop()
        folder = os.open(place[1:] or ".", _FOLDER, dir_fd=root)
        try:
            with os.scandir(folder) as listed:
                for entry in listed:
                    path = f"{place if place != '/' else ''}/{entry.name}"
                    if path in table.mounts:
                        continue
                    entries[path] = word = _entry(entry, folder)
                    if word == DIRECTORY:
                        pending.append(path)
        finally:
            os.close(folder)
        if len(entries) > _MOST_ENTRIES:
            raise OSError(0, "more entries than any plan has")
    return entries


def _entry(entry: os.DirEntry[str], folder: int) -> str:
    """Return what an entry is; for the most part the listing says so without another look."""
    if entry.is_symlink():
        return f"link {os.readlink(entry.name, dir_fd=folder)}"
    if entry.is_dir(follow_symlinks=False):
        return DIRECTORY
    kind = "file" if entry.is_file(follow_symlinks=False) else "special"
    return f"{kind} {entry.stat(follow_symlinks=False).st_mode & 0o7777:04o}"


class Sources:
    """Device and inode, in the parent's own view, of what is mounted and stands in no plan.

    These are the directories of the system tree, what is mounted below them, and the read-only parts of the workspace,
    which is given by its descriptor or path. What a plan names is looked at when this is made.
    """

    __slots__ = ("_found", "_system")

    def __init__(self, plan: Plan, workspace: int | str) -> None:
        self._system = tuple(entry.path for entry in plan.system if entry.kind == "directory")
        self._found: dict[str, object] = {path: _stated(path, path) for path in self._system}
        if plan.workspace is None:
            return
        for path in plan.read_only:
            place = f"{plan.workspace.target}/{path}"
            at, folder = (path, workspace) if isinstance(workspace, int) else (f"{workspace}/{path}", None)
            self._found[place] = _stated(place, at, folder)

    def of(self, mounts: object) -> dict[str, object]:
        """Return them for the mounts that were seen."""
        places = mounts if isinstance(mounts, dict) else ()
        starts = tuple(f"{path}/" for path in self._system)
        below = [place for place in places if place.startswith(starts) and place not in self._found]
        return {**self._found, **{place: _stated(place, place) for place in below}}


def _stated(what: str, path: str, folder: int | None = None) -> object:
    def read() -> str:
        status = os.stat(path, dir_fd=folder, follow_symlinks=False)
        return f"{status.st_dev}:{status.st_ino}"

    return known(what, read)
