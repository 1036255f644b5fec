"""What was looked at, still open: a launcher uses the descriptors that were checked and looks no name up again."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from prespawn.checker.facts import Facts


class Held:
    """Facts, and the descriptors (``O_PATH``, close-on-exec) of what they are about; leaving the context closes them.

    ``workspace``, ``state``, ``log`` (the directory in which the log will stand) and ``runtime`` (the program, open for
    reading) are -1 where there is nothing; ``toolchains`` has one by name for each that is there. ``search_path`` are
    the directories in which the program was looked for, in order: what ``PATH`` inside has to say.
    """

    __slots__ = ("_owned", "facts", "log", "runtime", "search_path", "state", "toolchains", "workspace")

    facts: Facts

    def __init__(self) -> None:
        self.workspace = self.state = self.log = self.runtime = -1
        self.toolchains: Mapping[str, int] = {}
        self.search_path: tuple[str, ...] = ()
        self._owned: list[int] = []

    def own(self, fd: int) -> int:
        """Take a descriptor over; -1 is none."""
        if fd >= 0:
            self._owned.append(fd)
        return fd

    def close(self) -> None:
        """Close everything that is held; a second time there is nothing left to close."""
        while self._owned:
            os.close(self._owned.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
