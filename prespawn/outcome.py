"""How one run ended, as it was observed."""

from __future__ import annotations

from prespawn.policy.record import Record

EXITED, SIGNALLED, DEADLINE, OUTPUT_CEILING, OUT_OF_MEMORY, CANCELLED, SETUP_FAILED, LOST = HOWS = (
    "exited", "signalled", "deadline", "output-ceiling", "out-of-memory", "cancelled", "setup-failed", "lost",
)  # fmt: skip
MEMORY, PROCESSES = "limits.memory", "limits.processes"


class Outcome(Record):
    """The end of one run; when there is one, every process of it is gone.

    ``how`` is one of ``HOWS``:

    * ``exited``: with ``status``. It is the kernel's record of the worker's first process where the kernel keeps one
      (6.15 and later), else bubblewrap's word, which is 128 + N for signal N as well: then nobody saw a signal, and
      none is claimed.
    * ``signalled``: the kernel's record says that ``signal`` ended it.
    * ``deadline``, ``output-ceiling`` (``ceiling`` names the limit), ``cancelled``: it was ended from here.
    * ``out-of-memory``: the worker or bubblewrap was killed, and the kernel counted a kill for ``limits.memory``.
    * ``setup-failed``: the worker's program never ran. ``stage`` says where it stopped: ``runtime`` (bubblewrap refused
      before it made namespaces), ``root`` (while it built them and the root), ``program`` (the program could not be
      executed). ``detail`` is what bubblewrap said. A run that was ended from here on the way has a ``stage`` too.
    * ``lost``: bubblewrap itself was ended by somebody else, and with it the run.

    ``stdout`` and ``stderr`` count the bytes that the worker wrote and that were taken, ``undelivered`` those of them
    that the caller's side did not accept; ``init`` is the pid of the sandbox's first process as the host sees it.
    ``reached`` names the limits of all processes together at which the kernel killed one or refused one, by its own
    counters, whatever the end was.
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
    reached: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """How it ended, in one line for a person; what bubblewrap said stands in it, already escaped."""
        said = f": {self.detail}" if self.detail else ""
        return {
            EXITED: f"the worker exited with status {self.status}",
            SIGNALLED: f"the worker was ended by signal {self.signal}",
            DEADLINE: "the run was ended at its deadline, limits.wall_clock",
            OUTPUT_CEILING: f"the run was ended at a ceiling, {_CEILINGS.get(str(self.ceiling))}",
            OUT_OF_MEMORY: f"the run was ended by the kernel at {MEMORY}",
            CANCELLED: "the run was cancelled",
            SETUP_FAILED: f"the worker never ran; {_STAGES.get(str(self.stage))}{said}",
            LOST: f"the run is lost{said}",
        }[self.how]

    def counted(self, killed: int, refused: int) -> Outcome:
        """Return this end with what the kernel counted of the run: processes that it killed for memory, or refused.

        A count alone says nothing of the worker's own end: a child may have been killed, and the worker gone on.
        """
        reached = tuple(name for name, count in ((MEMORY, killed), (PROCESSES, refused)) if count)
        ended = self.how == LOST or (self.how == SIGNALLED and self.signal == _SIGKILL)
        if not killed or not ended:
            return self.replace(reached=reached)
        return self.replace(how=OUT_OF_MEMORY, signal=None, detail="", reached=reached)


_SIGKILL = 9
_CEILINGS = {
    "output": "limits.output",
    "diagnostics": "limits.diagnostics",
    "log": "the room that the file system of its log had left",
}
_STAGES = {
    "runtime": "bubblewrap refused before it made the sandbox",
    "root": "the sandbox could not be built",
    "program": "its program could not be executed",
}
