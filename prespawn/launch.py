"""An approved plan, recorded and run: what is to happen is durable before it does, and the end is true afterwards.

The registry and the receipts are the parent's memory. In this order, each step only after the one before it::

    the run's entry, which takes its id for ever -> launch receipt -> spawn, held
    -> look at the held run, judge it -> attestation receipt -> name the held process -> release

Exactly one end follows: how the run ended, or that it never started. What cannot be recorded is not run, and a held run
that is not what its plan means is ended before its first instruction; both receipts say so then. The terminal receipt
closes the chain, and the row's end names it.
"""

from __future__ import annotations

import os
import time

from prespawn.policy.canonical import digest_bytes
from prespawn.policy.errors import HostError, ShortfallError
from prespawn.policy.record import Record

from . import host_run, supervise
from . import outcome as ends
from .contract import Watch
from .descriptors import limited
from .enforcers import LOCAL
from .outcome import Outcome
from .process import boot_id, start_time
from .pumps import Streams
from .receipts import Receipts, attestation_receipt, launch_receipt, terminal_receipt
from .registry import ENDED, LOST, MOVES, NEVER_STARTED, Registry
from .run_log import RunLog
from .trusted_path import reason, state_directory, tell
from .words import blocker_difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from prespawn.checker.contract import ContractResult
    from prespawn.checker.facts import AttestationFact
    from prespawn.checker.plan import ApprovedPlan
    from prespawn.checker.verdict import Verdict
    from prespawn.launchers.invocation import Invocation

    from .attest import Look
    from .facts import Held
    from .hold import Ready
    from .host_run import Waiting

    Judge = Callable[[AttestationFact], Verdict]

FAILED = "launch-failed"


class Ended(Record):
    """How a run ended; ``verdict`` is the one on its held process, None where it was never held.

    ``contract`` is what came of its file contract, None where nothing of its work ran; ``unrecorded`` is the id of the
    error because of which its end could not be written down, None where it was.
    """

    outcome: Outcome
    verdict: Verdict | None
    contract: ContractResult | None
    unrecorded: str | None


def started(
    plan: ApprovedPlan, state_dir: str, held: Held, streams: Streams | None, cancel: int | None, judge: Judge
) -> Ended:
    """Run an approved plan from its entry in the registry to its end there, and return how it ended.

    ``held`` has the descriptors of what was checked; ``judge`` decides on what was seen of the held run.
    ``ShortfallError`` if that is not what the plan means, any other ``HostError`` where the host failed: nothing of
    the work has run then, and the registry says ``never-started``.
    """
    try:
        directory = state_directory(state_dir, create=True)
        try:
            registry = Registry.open(directory)
            with registry, Receipts.open(directory) as receipts:
                return _Launch(plan, held, registry, receipts, judge, directory).run(streams, cancel)
        finally:
            os.close(directory)
    except OSError as error:
        raise limited(error, 1) or HostError(FAILED, f"the run could not be started: {reason(error)}") from error


class _Launch:
    """One launch, and what of it has been written down so far."""

    def __init__(
        self, plan: ApprovedPlan, held: Held, registry: Registry, receipts: Receipts, judge: Judge, directory: int
    ) -> None:
        self.plan, self.held, self.registry, self.receipts, self.judge = plan, held, registry, receipts, judge
        self.directory = directory  # the state directory
        self.look: Look
        self.receipt = ""  # the digest of the last one, ``is_written`` or about to be
        self.is_written = False
        self.may_have_run = False  # from here on nobody can say that it did not
        self.unrecorded: str | None = None
        self.verdict: Verdict | None = None
        self.contract: ContractResult | None = None
        self.watch = Watch(plan, held.workspace)

    def run(self, streams: Streams | None, cancel: int | None) -> Ended:
        text = launch_receipt(self.plan, int(time.time()))
        self.receipt = digest_bytes(text.encode("ascii"))
        entry = {**_entry(self.plan), "receipt": self.receipt}
        self.registry.reserve(self.plan.run_id, entry, approval=_approval(self.plan))
        try:
            self._write(text)
            opened = _opened(self.plan, self.held)
            with RunLog.create(self.plan, self.directory, self.held) as log:
                log.line("reserved", int(time.time()), run_id=self.plan.run_id)
                outcome = self._supervised(log.streams(streams or Streams()), opened, cancel)
                log.line("ended", int(time.time()), how=outcome.how)
        except BaseException as failed:
            if not self.may_have_run:
                self._never_ran(failed)
                raise
            outcome = Outcome(how=ends.LOST, detail=f"the parent could not go on: {_cause(failed)}")
            if not isinstance(failed, Exception):  # the caller wants to end, and the run has: what is known is kept
                self._settle(outcome)
                raise
        self.contract = self.watch.end(outcome)
        self._settle(outcome)
        return Ended(outcome=outcome, verdict=self.verdict, contract=self.contract, unrecorded=self.unrecorded)

    def _never_ran(self, failed: BaseException) -> None:
        """Write down that nothing of the work has run, and why."""
        how = failed.id if isinstance(failed, HostError) else FAILED if isinstance(failed, Exception) else "interrupted"
        self._end(NEVER_STARTED, Outcome(how=how), {})

    def _supervised(self, streams: Streams, opened: dict[str, int], cancel: int | None) -> Outcome:
        if self.plan.launcher == LOCAL:
            self.watch.begin()
            return host_run.run(self.plan, streams, opened=opened, cancel=cancel, on_held=self.waiting)
        return supervise.run(
            self.plan, streams, opened=opened, cancel=cancel, meanwhile=self.prepare, on_held=self.judged
        )

    def waiting(self, process: Waiting) -> None:
        """Write down which process of the host waits; nothing of the kernel's records is claimed of it."""
        pid = process.payload
        start: dict[str, str | int] = {"pid": pid, "start_time": start_time(pid), "boot_id": boot_id()}
        self.registry.started(self.plan.run_id, {**start, "started_at": int(time.time())})
        self.may_have_run = True
        tell(self.directory)

    def prepare(self, told: Invocation) -> None:
        """Look at the workspace, and make ready to look at the run, while bubblewrap is at work.

        It is also the time to import what nothing before the start needs.
        """
        self.watch.begin()
        from .attest import Look

        self.look = Look(self.plan, told, workspace=self.held.workspace, runtime=self.held.runtime)

    def judged(self, process: Ready) -> None:
        """Look at the held run and write down what was seen; raise if it is not what the plan means."""
        from prespawn.checker.attestation import attestation  # `prepare` has it imported while bubblewrap was at work

        plan = self.plan
        seen = self.look.see(process)
        fact = attestation(self.look.means, seen)
        self.verdict = verdict = self.judge(fact)
        self._write(attestation_receipt(plan, self.receipt, seen, fact, verdict, int(time.time())))
        if not verdict.allowed:
            raise _shortfall(verdict)
        self.registry.started(plan.run_id, {**_start(process), "receipt": self.receipt})
        self.may_have_run = True
        tell(self.directory)

    def _write(self, text: str) -> None:
        self.receipts.write(text)
        self.receipt = digest_bytes(text.encode("ascii"))
        self.is_written = True

    def _settle(self, outcome: Outcome) -> None:
        """Write down how a run ended that may have begun."""
        seen = {name: getattr(outcome, name) for name in ("status", "signal")}
        end: dict[str, str | int] = {name: value for name, value in seen.items() if value is not None}
        if outcome.reached:
            end["reached"] = "+".join(outcome.reached)
        if self.contract is not None:
            end["contract"] = self.contract.result
        state = NEVER_STARTED if outcome.stage is not None else LOST if outcome.how == ends.LOST else ENDED
        self._end(state, outcome, end)

    def _end(self, state: str, outcome: Outcome, end: dict[str, str | int]) -> None:
        """Write the terminal receipt, then the row's end, which names it.

        What cannot be written does not undo what happened: then the end is not known to anybody who asks later, and the
        caller is told so.
        """
        level = None if self.verdict is None else self.verdict.level.earned
        end = {**end, "how": outcome.how, "ended_at": int(time.time()), **({} if level is None else {"level": level})}
        text = terminal_receipt(
            self.plan.run_id, self.receipt if self.is_written else None, int(time.time()), state=state, outcome=outcome,
            contract=self.contract, level=level, accepted=self.plan.approval["accepted"],  # type: ignore[arg-type]
            unwritten=() if self.is_written else (self.receipt,),
        )  # fmt: skip
        try:
            self._write(text)
            end["receipt"] = self.receipt
        except HostError as failed:
            self.unrecorded = failed.id
            state, end = (state, end) if state == NEVER_STARTED else (LOST, {**_end(failed.id)})
        try:
            MOVES[state](self.registry, self.plan.run_id, end)
        except HostError as failed:  # the row stays open, and `recover` says then that nobody saw the end
            self.unrecorded = failed.id
        tell(self.directory)


def _cause(failed: BaseException) -> str:
    """Return an error in the system's words; those of others may quote a value."""
    if isinstance(failed, HostError):
        return str(failed)
    return reason(failed) if isinstance(failed, OSError) else type(failed).__name__


def _shortfall(verdict: Verdict) -> ShortfallError:
    """Return the error for a held run that fell short: each place, what may stand there and what does."""
    places = "; ".join(blocker_difference(blocker) for blocker in verdict.blockers)
    message = f"the held worker is not what its plan means, and nothing of it has run: {places}"
    return ShortfallError(verdict.blockers[0].id, message, verdict)


def _entry(plan: ApprovedPlan) -> dict[str, str | int]:
    digests = {name: plan.digests[name] for name in ("declaration", "policy", "facts", "blockers")}
    return {
        **digests,
        "profile": plan.profile.id,
        "adapter": plan.adapter,
        "level": plan.level,
        "origin": str(plan.approval["origin"]),
        "approval": str(plan.approval["digest"]),
        "parent_pid": os.getpid(),
        "parent_start_time": start_time(os.getpid()),
        "parent_boot_id": boot_id(),
        "reserved_at": int(time.time()),
    }


def _approval(plan: ApprovedPlan) -> str | None:
    """Return the id of the approval that this run uses up; what was typed is nothing that could be used again."""
    id = plan.approval["id"]
    return None if id is None else str(id)


def _start(process: Ready) -> dict[str, str | int]:
    return {
        "pid": process.payload,
        "start_time": start_time(process.payload),
        "init_pid": process.init,
        "init_start_time": start_time(process.init),
        "boot_id": boot_id(),
        "started_at": int(time.time()),
    }


def _end(how: str) -> dict[str, str | int]:
    return {"how": how, "ended_at": int(time.time())}


def _opened(plan: ApprovedPlan, held: Held) -> dict[str, int]:
    """Return the descriptors of the check by the path that the plan names them by."""
    opened = {
        mount.place.path: held.toolchains[mount.name] for mount in held.facts.mounts if mount.name in held.toolchains
    }
    if plan.workspace is not None and held.workspace >= 0:
        opened[plan.workspace.source] = held.workspace
    return opened
