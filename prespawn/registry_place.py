"""Where ``registry.db`` lies: its directory, held open, and whether what stands there can be a registry at all.

Owns the judgement of directory and file by what they are (owner, mode, kind, size) and the words of both faults, and
imports nothing that costs anything. It opens no file: closing a descriptor of the registry would drop the locks that
SQLite holds on it for the whole process. What is in the file is ``registry_file``'s.
"""

from __future__ import annotations

import os
import stat

from prespawn.policy.errors import HostError

from .trusted_path import Walk, judged, kind, named, reason, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

NAME = "registry.db"
PAGE = 4096  # bytes; the file is a whole number of pages


class Place:
    """An open state directory that nobody else can write; a context manager, which closes ``directory``.

    ``path`` is the registry's, for messages. Every method raises ``HostError``.
    """

    def __init__(self, directory: int) -> None:
        """Take over an open descriptor and judge the directory that it is of."""
        self.directory = directory
        try:
            path = os.readlink(f"/proc/self/fd/{directory}")
            fault = judged(os.fstat(directory), path)
        except OSError as error:
            self.close()
            raise not_written("state directory", reason(error)) from None
        if fault:
            self.close()
            raise HostError("registry-not-parent-controlled", f"state directory {fault}")
        self.path = os.path.join(path, NAME)

    @classmethod
    def open(cls, state: str | int) -> Self:
        """Open a state directory that exists: a path, walked and judged whole, or a descriptor, which stays open."""
        if isinstance(state, str):
            return cls(state_directory(state, create=False))
        try:
            return cls(os.dup(state))
        except OSError as error:
            raise not_written("state directory", reason(error)) from None

    @classmethod
    def look(cls, state: str) -> Self | None:
        """Open the state directory at a path, or return nothing where there is none."""
        try:
            with Walk(state, follow_last=True, sticky=True) as way:
                if way.missing:
                    return None
        except (OSError, ValueError):
            pass  # not to be seen is not missing: opening it says what is wrong
        return cls.open(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory."""
        os.close(self.directory)

    def has_registry(self) -> bool:
        """Return whether a registry is there; an error for a file of its name that cannot be one."""
        left = [f"{NAME}{end}" for end in ("-journal", "-wal", "-shm") if self._status(f"{NAME}{end}")]
        status = self._status(NAME)  # after the look at its companions, which are never there before it is
        if status is None:
            if left:
                raise corrupt(self.path, f"is gone, and `{left[0]}` of it is left")
            return False
        if not stat.S_ISREG(status.st_mode):
            raise corrupt(self.path, f"is {kind(status)}")
        fault = judged(status, self.path)
        if fault:
            raise HostError("registry-not-parent-controlled", str(fault))
        if status.st_size == 0:
            raise corrupt(self.path, "is empty")
        return True

    def is_writable(self) -> bool:
        """Return whether the caller can make files here."""
        return os.access(f"/proc/self/fd/{self.directory}", os.W_OK | os.X_OK, effective_ids=True)

    def has_log(self) -> bool:
        """Return whether changes stand beside the file that are not worked in yet."""
        return self._status(f"{NAME}-wal") is not None

    def is_cut(self) -> bool:
        """Return whether the last page is not whole: SQLite counts it, and reads it as if zeros followed."""
        status = self._status(NAME)
        return status is None or status.st_size % PAGE != 0

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise not_written(self.path, reason(error)) from None


def corrupt(path: str, found: str) -> HostError:
    """Return the error for a file that is no registry, or not a whole one."""
    message = f"{named(path)}: {found}; allowed: a whole registry of this version"
    remedy = "restore it, or move it away together with all reports and receipts: its run ids could then be used again"
    return HostError("registry-corrupt", f"{message}; {remedy}")


def not_written(path: str, found: str) -> HostError:
    """Return the error for a file that cannot be opened or changed."""
    message = f"{named(path)}: {found}; allowed: a file that uid {os.geteuid()} can write, with space left"
    return HostError("registry-not-written", f"{message}; free it, or name another `state_dir` in the site")
