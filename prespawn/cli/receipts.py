"""``prespawn receipts``: what was written down of each run, and the proof that it still is what was written.

``verify`` answers 1 as soon as one receipt is not: missing, changed, out of its place, another run's, or in the
directory without a run that names it. What a killed parent left open is no falsification; ``recover`` settles it.
"""

from __future__ import annotations

import os

from prespawn import exit_codes
from prespawn.policy.canonical import canonical
from prespawn.policy.errors import InputError
from prespawn.policy.spelling import shown as escaped

from ..gate import Gate
from ..receipts import Receipts, verify
from ..registry import UNSETTLED, Registry
from ..registry_place import Place
from ..trusted_path import state_directory
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from ..registry import Run

    Answer = TypeVar("Answer")

UNKNOWN, TAMPERED = "run-unknown", "receipt-tampered"


def listed(site: str | None, format: str) -> int:
    """Print every run, oldest first; that there is none is an answer of its own."""
    runs: tuple[Run, ...] = _with_open(site, lambda registry, _: tuple(registry.runs())) or ()
    if format == "json":
        documents = [
            {
                "run_id": one.run_id,
                "state": one.state,
                "end": dict(one.end) if one.end else None,
                "receipts": _named(one),
            }
            for one in runs
        ]
        say([canonical({"prespawn": "runs/v1", "runs": documents})])
    else:
        say(_line(one) for one in runs)
    return exit_codes.ALLOWED if runs else exit_codes.NOTHING


def shown(run_id: str, site: str | None) -> int:
    """Print the proved receipts of one run."""

    def texts(registry: Registry, receipts: Receipts) -> list[str]:
        chain = verify(run_id, _named(_run(registry, run_id)), receipts.read)
        return [canonical(receipt) for receipt in chain]

    try:
        lines = _with_open(site, texts)
    except InputError as wrong:
        if wrong.id != TAMPERED:
            raise
        say([f"{escaped(run_id)}: {wrong} ({wrong.id})"])
        return exit_codes.BLOCKED
    if lines is None:
        raise _missing(run_id)
    say(lines)
    return exit_codes.ALLOWED


def verified(run_ids: Sequence[str], site: str | None, format: str) -> int:
    """Prove the receipts of some runs, or of all, and then also that there are no others."""
    found = _with_open(site, lambda registry, receipts: tuple(_judged(registry, receipts, run_ids))) or ()
    if run_ids and not found:
        raise _missing(run_ids[0])
    if format == "json":
        results = [{"about": about, "tampered": wrong} for about, wrong in found]
        say([canonical({"prespawn": "verified/v1", "results": results})])
    else:
        say(f"{escaped(about)}: {'proved' if wrong is None else wrong}" for about, wrong in found)
    if not found:
        return exit_codes.NOTHING
    return exit_codes.BLOCKED if any(wrong is not None for _, wrong in found) else exit_codes.ALLOWED


def _judged(registry: Registry, receipts: Receipts, run_ids: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each run, or each receipt that none names, with what is wrong with it."""
    runs = [_run(registry, id) for id in run_ids] or list(registry.runs())
    held: set[str] = set()
    for one in runs:
        named = _named(one)
        held.update(named)
        try:
            chain = verify(one.run_id, named, receipts.read)
        except InputError as wrong:
            if not _is_being_written(one, receipts):
                yield one.run_id, f"{wrong} ({wrong.id})"
                continue
        else:
            held.update(str(receipt["previous"]) for receipt in chain)
        yield one.run_id, None
    if run_ids or any(one.state in UNSETTLED for one in registry.runs()):
        return  # what an open run has written, its row names only later
    for digest in receipts.names():
        if digest not in held:
            yield digest, f"no run names it; allowed: what the parent wrote of a run ({TAMPERED})"


def _is_being_written(run: Run, receipts: Receipts) -> bool:
    """Say whether a run has only just been entered: its first receipt follows, or a killed parent never wrote it."""
    if run.state not in UNSETTLED or run.start is not None:
        return False
    try:
        receipts.read(_named(run)[0])
    except FileNotFoundError:
        return True
    return False


def _named(run: Run) -> list[str]:
    """Return the receipts that a row names, in the order of the run."""
    return [str(part["receipt"]) for part in (run.entry, run.start, run.end) if part is not None and "receipt" in part]


def _line(run: Run) -> str:
    said = run.end or {}
    number = next((f" {said[name]}" for name in ("status", "signal") if name in said), "")
    how = f": {said['how']}{number}" if said else ""
    rest = "".join(f", {name} {said[name]}" for name in ("contract", "level") if name in said)
    return f"{run.run_id}: {run.state}{how}{rest}"


def _run(registry: Registry, run_id: str) -> Run:
    found = registry.run(run_id)
    if found is None:
        raise _missing(run_id)
    return found


def _missing(run_id: str) -> InputError:
    message = f"the registry has no run `{escaped(run_id)}`; `prespawn receipts list` shows those that it has"
    return InputError(UNKNOWN, message)


def _with_open(site: str | None, ask: Callable[[Registry, Receipts], Answer]) -> Answer | None:
    """Return what is asked of a site's registry and receipts, nothing where there is no registry."""
    state = Gate.load(site).trusted.state_dir
    place = Place.look(state)
    if place is None:
        return None
    with place:
        if not place.has_registry():
            return None
        directory = state_directory(state, create=False)
        try:
            with Registry.open_to_read(place) as registry, Receipts.open(directory) as receipts:
                return ask(registry, receipts)
        finally:
            os.close(directory)
