"""Signals that ask ``exec`` to end: they end the run, whole, and not the parent before it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import FrameType
    from typing import Self
else:
    import _signal as signal  # `signal` builds enums: 3.6 ms at every start

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """While it lasts, the first of ``ENDING`` makes ``cancel`` readable and is kept in ``received``.

    What the caller ignores stays ignored, as ``nohup`` means it.
    """

    def __init__(self) -> None:
        self.cancel = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.received: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what `signal` returned
        os.close(self.cancel)

    def _take(self, number: int, _: FrameType | None) -> None:
        if self.received is None:
            self.received = number
        os.eventfd_write(self.cancel, 1)
