"""The exceptions of the whole package: one root, two branches.

Being blocked is an answer (a verdict), not an exception. An exception says either that the input is wrong
(``InputError``, exit 2) or that the host failed (``HostError``, exit 5).
"""

from __future__ import annotations


class PrespawnError(Exception):
    """The root; ``id`` is stable, ``str()`` is one line that a person can act on."""

    def __init__(self, id: str, message: str) -> None:
        super().__init__(message)
        self.id = id


class InputError(PrespawnError):
    """What was handed in cannot be used as it stands."""


class NotApprovableError(InputError):
    """Something stands in a run's way that no approval removes; ``verdict`` says what."""

    def __init__(self, id: str, message: str, verdict: object) -> None:
        super().__init__(id, message)
        self.verdict = verdict


class HostError(PrespawnError):
    """The host could not do what the plan needs; nothing of the work has run."""


class ShortfallError(HostError):
    """The held run is not what its plan means, and was ended; ``verdict`` is the one that says where."""

    def __init__(self, id: str, message: str, verdict: object) -> None:
        super().__init__(id, message)
        self.verdict = verdict


class ReadError(InputError):
    """A document that was refused, and where: ``line`` and ``column`` count from 1, 0 where no place is known.

    ``id`` is ``policy-<cause>`` for trusted files. For declarations and other input it is ``input-invalid`` for
    whatever is wrong with bytes or syntax, ``input-unknown-key``, ``input-missing-key``, ``input-unreadable`` or
    ``input-empty``; ``cause`` keeps the finer word in every case. ``others`` are further errors of the same document,
    in the order in which they stand there.
    """

    others: tuple[ReadError, ...] = ()

    def __init__(self, id: str, cause: str, message: str, *, source: str, line: int = 0, column: int = 0) -> None:
        super().__init__(id, message)
        self.cause = cause
        self.message = message
        self.source = source
        self.line = line
        self.column = column

    def __str__(self) -> str:
        source = self.source or "``"
        place = f"{source}:{self.line}:{self.column}" if self.line else source
        return f"{place}: {self.message} ({self.id})"
