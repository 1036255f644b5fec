"""An approved plan, recorded and run: what is to happen is durable before it does, and the end is true afterwards.

The registry and the receipts are the parent's memory. In this order, each step only after the one before it::

    the run's entry, which takes its id for ever -> launch receipt -> spawn, held
    -> look at the held run, judge it -> attestation receipt -> name the held process -> release

Exactly one end follows: how the run ended, or that it never started. What cannot be recorded is not run, and a held run
that is not what its plan means is ended before its first instruction; both receipts say so then.
"""

from __future__ import annotations

import os
import time

from prespawn.policy.canonical import digest_bytes
from prespawn.policy.errors import HostError, ShortfallError
from prespawn.policy.record import Record

from . import outcome as ends
from . import supervise
from .process import boot_id, start_time
from .receipts import Receipts, attestation_receipt, launch_receipt
from .registry import Registry
from .trusted_path import state_directory
from .words import blocker_difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from prespawn.checker.facts import AttestationFact
    from prespawn.checker.plan import ApprovedPlan
    from prespawn.checker.verdict import Verdict
    from prespawn.launchers.invocation import Invocation

    from .attest import Look
    from .facts import Held
    from .hold import Ready
    from .outcome import Outcome
    from .pumps import Streams

    Judge = Callable[[AttestationFact], Verdict]


class Ended(Record):
    """How a run ended; ``verdict`` is the one on its held process, None where it was never held."""

    outcome: Outcome
    verdict: Verdict | None


def started(
    plan: ApprovedPlan, state_dir: str, held: Held, streams: Streams | None, cancel: int | None, judge: Judge
) -> Ended:
    """Run an approved plan from its entry in the registry to its end there, and return how it ended.

    ``held`` has the descriptors of what was checked; ``judge`` decides on what was seen of the held run.
    ``ShortfallError`` if that is not what the plan means, any other ``HostError`` where the host failed: nothing of
    the work has run then, and the registry says ``never-started``.
    """
    directory = state_directory(state_dir, create=True)
    try:
        registry = Registry.open(directory)
        with registry, Receipts.open(directory) as receipts:
            return _Launch(plan, held, registry, receipts, judge).run(streams, cancel)
    finally:
        os.close(directory)


class _Launch:
    """One launch, and what of it has been written down so far."""

    def __init__(self, plan: ApprovedPlan, held: Held, registry: Registry, receipts: Receipts, judge: Judge) -> None:
        self.plan, self.held, self.registry, self.receipts, self.judge = plan, held, registry, receipts, judge
        self.look: Look
        self.receipt = ""  # the digest of the last one
        self.verdict: Verdict | None = None

    def run(self, streams: Streams | None, cancel: int | None) -> Ended:
        text = launch_receipt(self.plan, int(time.time()))
        receipt = digest_bytes(text.encode("ascii"))
        self.registry.reserve(self.plan.run_id, {**_entry(self.plan), "receipt": receipt})
        try:
            self._write(text)
            opened = _opened(self.plan, self.held)
            outcome = supervise.run(
                self.plan, streams, opened=opened, cancel=cancel, meanwhile=self.prepare, on_held=self.judged
            )
        except BaseException as failed:
            how = failed.id if isinstance(failed, HostError) else "interrupted"
            self.registry.never_started(self.plan.run_id, {**_end(how), **self._last_receipt()})
            raise
        self._settle(outcome)
        return Ended(outcome=outcome, verdict=self.verdict)

    def prepare(self, told: Invocation) -> None:
        """Make ready to look, while bubblewrap is at work: time to import what nothing before the start needs."""
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

    def _write(self, text: str) -> None:
        self.receipts.write(text)
        self.receipt = digest_bytes(text.encode("ascii"))

    def _settle(self, outcome: Outcome) -> None:
        end = _end(outcome.how)
        if outcome.how == ends.SETUP_FAILED:
            self.registry.never_started(self.plan.run_id, end)
            return
        for name in ("status", "signal"):
            value = getattr(outcome, name)
            if value is not None:
                end[name] = value
        if outcome.reached:
            end["reached"] = " ".join(outcome.reached)
        if self.verdict is not None:
            end["level"] = self.verdict.level.earned
        self.registry.ended(self.plan.run_id, end)

    def _last_receipt(self) -> dict[str, str]:
        """Return what no other part of the row names: the receipt of a run that was looked at and never released."""
        return {} if self.verdict is None else {"receipt": self.receipt}


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
        "parent_pid": os.getpid(),
        "parent_start_time": start_time(os.getpid()),
        "parent_boot_id": boot_id(),
        "reserved_at": int(time.time()),
    }


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
