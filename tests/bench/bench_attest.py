"""What the look at a held run costs, as a share of ``subprocess.run`` of the very same options in the same process.

``same`` is that run, with the same change of user and nothing pinned, staged, held or limited (``bench_launch``);
``look`` is everything between a held run and the fact that the checker gets. What is made ready for it while bubblewrap
builds the sandbox keeps nobody waiting and is not in it. Each round does each act once, in random order.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from bench_launch import plan_for, same
from support import as_user, plans, runtimes
from support.held import FILTERED
from support.measure import Row, compared, main, milliseconds, ratio

from prespawn.attest import Look
from prespawn.checker.attestation import attestation
from prespawn.policy.filters import shipped_filter
from prespawn.supervise import run

if TYPE_CHECKING:
    from prespawn.checker.plan import ApprovedPlan
    from prespawn.hold import Ready

BAR = 0.15
PARTS = ("see", "compare")


def looked(plan: ApprovedPlan, parts: dict[str, list[float]]) -> float:
    """Return how long the look at one held run took."""
    times: list[float] = []
    looks: list[Look] = []

    def on_held(held: Ready) -> None:
        times.append(time.perf_counter())
        seen = looks[0].see(held)
        times.append(time.perf_counter())
        assert not attestation(looks[0].means, seen).differences
        times.append(time.perf_counter())

    run(plan, meanwhile=lambda told: looks.append(Look(plan, told)), on_held=on_held)
    for name, begin, end in zip(PARTS, times, times[1:], strict=False):
        parts[name].append(end - begin)
    return times[-1] - times[0]


def measured(parent: str, bwrap: str, workspace: str, rounds: int) -> list[Row]:
    """Measure in this process, which is the parent's kind."""
    plain = plan_for(bwrap, workspace)
    filtered = {"profile": FILTERED, "filter": shipped_filter("default", plans.MACHINE)}
    plan = plans.plan(**{**dict(plain), **filtered})
    parts: dict[str, list[float]] = {name: [] for name in PARTS}
    times = compared({"same": lambda: same(plan), "look": lambda: looked(plan, parts)}, rounds)
    where = f"{parent}, {'/'.join(Path(bwrap).parts[-3:])[-20:]}"
    shares = {name: sum(of) for name, of in parts.items()}
    told = " ".join(f"{name} {share / sum(shares.values()):.0%}" for name, share in shares.items())
    note = f"{milliseconds(times, 'look'):.2f} ms of {milliseconds(times, 'same'):.2f}; {told}"
    return [Row(f"look at a held run ({where})", ratio(times, "look", "same"), BAR, note=note)]


def measure(rounds: int) -> list[Row]:
    """Return a row for each bubblewrap and each kind of parent."""
    rows: list[Row] = []
    for bwrap in runtimes.bubblewraps():
        for parent in runtimes.parents():
            directory = tempfile.mkdtemp(prefix="prespawn-bench-")
            os.chmod(directory, 0o755)
            os.mkdir(f"{directory}/workspace")
            if runtimes.ROOT:
                os.chown(f"{directory}/workspace", as_user.USER, as_user.USER)
            drops = as_user.USER if runtimes.ROOT and parent == "user" else None
            rows += as_user.call(drops, measured, parent, bwrap, f"{directory}/workspace", rounds)
            shutil.rmtree(directory)
    return rows


if __name__ == "__main__":
    sys.exit(main(measure, 60))
