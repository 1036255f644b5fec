"""``prespawn run --execute FILE``: the whole way, from the declaration to the end of its run.

For people the worker's streams are passed on, and how it ended is a remark; a driver that asks for JSON gets one
document on standard output whatever happens, and what the worker says stands in the run's log alone.
"""

from __future__ import annotations

import os

from prespawn import exit_codes
from prespawn.policy.canonical import canonical
from prespawn.policy.codec import encode
from prespawn.policy.errors import HostError, InputError, ShortfallError
from prespawn.words import verdict_lines

from .. import outcome as ends
from ..documents import declaration_file
from ..gate import Gate
from ..pumps import Streams
from .check import code_of, document
from .output import remark, say
from .signals import Signals
from .workspaces import workspace_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..gate import Run
    from ..outcome import Outcome

FORMAT = "run/v1"
STDOUT, STDERR = 1, 2
_SAID = ("how", "status", "signal", "stage", "ceiling", "stdout", "stderr", "undelivered")  # of an outcome; no words


def run(file: str, *, approval: str | None, site: str | None, workspaces: Sequence[str], format: str) -> int:
    """Run a declaration that was approved, and return how that went as an exit code."""
    told = _Told(file, format)
    try:
        gate = Gate.load(site, workspaces=workspace_roots(workspaces))
        checked = gate.check(declaration_file(file, gate))
        wanted = gate.approval_for(checked) if approval is None else approval
        with Signals() as signals:
            if os.isatty(STDERR):
                remark(f"{file}: to be started")
            run = gate.launch(checked, approval=wanted, streams=told.streams, cancel=signals.cancel)
    except ShortfallError as short:
        return told.failed(short, exit_codes.HOST_FAILED)
    except HostError as failed:
        return told.failed(failed, exit_codes.HOST_FAILED)
    except InputError as wrong:
        return told.failed(wrong, exit_codes.USAGE)
    return told.blocked(gate, run) if run.outcome is None else told.ended(run, run.outcome)


class _Told:
    """What the caller is told, in the form that was asked for."""

    def __init__(self, file: str, format: str) -> None:
        self.file, self.is_json = file, format == "json"
        self.streams = Streams() if self.is_json else Streams(stdout=STDOUT, stderr=STDERR)

    def failed(self, error: HostError | InputError, code: int) -> int:
        """Say that nothing ran, and why."""
        if not self.is_json:
            raise error
        self._say(document(self.file, error))
        return code

    def blocked(self, gate: Gate, run: Run) -> int:
        """Say what stands in the way: nothing was started."""
        if self.is_json:
            self._say({**document(self.file, run.verdict), "run_id": run.run_id, "outcome": None, "contract": None})
        else:
            say(verdict_lines(self.file, run.verdict, gate.remedies))
        return code_of(run.verdict)

    def ended(self, run: Run, outcome: Outcome) -> int:
        """Say how the run ended: exit, contract and level are three results."""
        if self.is_json:
            said = {name: getattr(outcome, name) for name in _SAID}
            contract = None if run.contract is None else encode(run.contract)
            ended = {"outcome": said, "contract": contract, "unrecorded": run.unrecorded}
            self._say({**document(self.file, run.verdict), "run_id": run.run_id, **ended})
        else:
            remark(f"run {run.run_id}: {outcome.sentence}; level {run.verdict.level.earned}")
            if run.contract is not None and not run.contract.is_kept:
                remark(run.contract.sentence)
            if run.unrecorded is not None:
                remark(f"run {run.run_id}: its end could not be written down ({run.unrecorded})")
        return ended_code(run, outcome)

    def _say(self, said: Mapping[str, object]) -> None:
        say([canonical({"prespawn": FORMAT, **said})])


def ended_code(run: Run, outcome: Outcome) -> int:
    """Return the exit code of a run that was begun."""
    if outcome.stage is not None:
        return exit_codes.HOST_FAILED  # its program never ran, whoever or whatever ended that
    well = outcome.how == ends.EXITED and outcome.status == 0
    kept = run.contract is not None and run.contract.is_kept and run.unrecorded is None
    return exit_codes.ALLOWED if well and kept else exit_codes.RAN_BADLY
