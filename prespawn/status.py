"""What bubblewrap's monitor records about a run: one line of JSON when the sandbox has started, one with the exit code.

Only the monitor, which is outside the sandbox, holds the descriptor. The second line stands there if and only if the
payload was executed, which tells its exit 1 from bubblewrap's own.
"""

from __future__ import annotations

import os

_MOST = 1 << 12  # bytes; the two lines are below 400


class Status:
    """Reads the records from a non-blocking descriptor: ``exit_code`` once it was recorded, ``is_open`` to the end."""

    __slots__ = ("_text", "exit_code", "fd", "is_open")

    def __init__(self, fd: int) -> None:
        self.fd, self.is_open = fd, True
        self.exit_code: int | None = None
        self._text = b""

    def read(self) -> None:
        """Take in what is there."""
        while self.is_open:
            try:
                piece = os.read(self.fd, _MOST)
            except BlockingIOError:
                break
            self._text = (self._text + piece)[:_MOST]
            self.is_open = piece != b""
        for line in self._text.split(b"\n")[:-1]:
            if self.exit_code is None:
                self.exit_code = _exit_code(line)


def _exit_code(line: bytes) -> int | None:
    """Return the number of ``{ "exit-code": N }``; a reader of all JSON would cost 7 ms to import."""
    start, found, rest = line.partition(b'"exit-code":')
    number = rest.strip().removesuffix(b"}").strip()
    return int(number) if found and start.strip() == b"{" and number.isdigit() else None
