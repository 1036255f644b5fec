"""How one run ended, as it was observed."""

from __future__ import annotations

from prespawn.policy.record import Record

EXITED, SIGNALLED, DEADLINE, OUTPUT_CEILING, CANCELLED, SETUP_FAILED, LOST = HOWS = (
    "exited", "signalled", "deadline", "output-ceiling", "cancelled", "setup-failed", "lost",
)  # fmt: skip


class Outcome(Record):
    """The end of one run; when there is one, every process of it is gone.

    ``how`` is one of ``HOWS``:

    * ``exited``: with ``status``. It is the kernel's record of the worker's first process where the kernel keeps one
      (6.15 and later), else bubblewrap's word, which is 128 + N for signal N as well: then nobody saw a signal, and
      none is claimed.
    * ``signalled``: the kernel's record says that ``signal`` ended it.
    * ``deadline``, ``output-ceiling`` (``ceiling`` names the limit), ``cancelled``: it was ended from here.
    * ``setup-failed``: the worker's program never ran. ``stage`` says where it stopped: ``runtime`` (bubblewrap refused
      before it made namespaces), ``root`` (while it built them and the root), ``program`` (the program could not be
      executed). ``detail`` is what bubblewrap said.
    * ``lost``: bubblewrap itself was ended by somebody else, and with it the run.

    ``stdout`` and ``stderr`` count the bytes that the worker wrote and that were taken, ``undelivered`` those of them
    that the caller's side did not accept; ``init`` is the pid of the sandbox's first process as the host sees it.
    """

    how: str
    status: int | None = None
    signal: int | None = None
    stage: str | None = None
    ceiling: str | None = None
    stdout: int = 0
    stderr: int = 0
    undelivered: int = 0
    init: int | None = None
    detail: str = ""
