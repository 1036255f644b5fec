"""An approved plan, recorded and run: the entry is durable before the start, and the end is true afterwards.

The registry is the parent's memory. ``reserve`` is on disk before anything is spawned, ``started`` names the held
process before it is released, and exactly one end follows: how the run ended, or that it never started. What cannot be recorded
is not run.
"""

from __future__ import annotations

import os
import time

from prespawn.policy.errors import HostError

from . import outcome as ends
from . import supervise
from .process import boot_id, start_time
from .registry import Registry
from .trusted_path import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.checker.plan import ApprovedPlan

    from .facts import Held
    from .hold import Held as HeldProcess
    from .outcome import Outcome
    from .pumps import Streams


def started(plan: ApprovedPlan, state_dir: str, held: Held, streams: Streams | None, cancel: int | None) -> Outcome:
    """Run an approved plan from its entry in the registry to its end there, and return the outcome.

    ``held`` has the descriptors of what was checked. ``HostError`` where nothing of the work has run; the registry then
    says ``never-started``.
    """
    directory = state_directory(state_dir, create=True)
    try:
        registry = Registry.open(directory)
    finally:
        os.close(directory)
    with registry:
        registry.reserve(plan.run_id, _entry(plan))
        try:
            outcome = supervise.run(
                plan, streams, opened=_opened(plan, held), cancel=cancel,
                on_held=lambda process: registry.started(plan.run_id, _start(process)),
            )  # fmt: skip
        except BaseException as failed:
            registry.never_started(plan.run_id, _end(failed.id if isinstance(failed, HostError) else "interrupted"))
            raise
        _settle(registry, plan.run_id, outcome)
    return outcome


def _settle(registry: Registry, run_id: str, outcome: Outcome) -> None:
    end = _end(outcome.how)
    if outcome.how == ends.SETUP_FAILED:
        registry.never_started(run_id, end)
        return
    for name in ("status", "signal"):
        value = getattr(outcome, name)
        if value is not None:
            end[name] = value
    registry.ended(run_id, end)


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


def _start(process: HeldProcess) -> dict[str, str | int]:
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
