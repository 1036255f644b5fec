"""What a launch costs: ``python tests/bench/bench_launch.py`` (as root for both kinds of parent).

``bare`` is ``bwrap --ro-bind / / --unshare-all --proc /proc --dev /dev true``; ``same`` is ``subprocess.run`` of the
very options of the plan, with the same change of user and nothing pinned, staged, held or limited. Each round starts
every command once in random order, and ratios are taken within a round, so that drift cancels.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import as_user, plans, runtimes

from prespawn.checker.plan import Identity
from prespawn.launchers.bwrap import invocation
from prespawn.supervise import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from prespawn.checker.plan import ApprovedPlan

ROUNDS = int(os.environ.get("PRESPAWN_BENCH_ROUNDS", "60"))
WORKER = as_user.USER if runtimes.ROOT else os.getuid()


def plan_for(bwrap: str, workspace: str) -> ApprovedPlan:
    gid = WORKER if runtimes.ROOT else os.getgid()
    return plans.plan(
        runtime=plans.runtime(bwrap),
        workspace=plans.bind(workspace, "/workspace", writable=True),
        alias=workspace,
        system=plans.system(),
        identity=Identity(uid=WORKER, gid=gid, inner_uid=1000, inner_gid=1000),
        environment=(("LANG", "C.UTF-8"),),
        argv=("/usr/bin/true",),
    )


def bare(bwrap: str) -> float:
    vector = [bwrap, "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true"]
    started = time.perf_counter()
    subprocess.run(vector, check=True, env={"PATH": "/usr/bin"})
    return time.perf_counter() - started


def same(plan: ApprovedPlan) -> float:
    """Time the plan's own options; what they read is prepared before the clock starts."""
    told, fds = invocation(plan), {}
    for source in told.sources:
        fds[source.descriptor] = os.open(source.path, os.O_PATH)
    for file in told.files:
        fds[file.descriptor] = os.memfd_create("x") if file.copied is None else os.open(file.copied, os.O_RDONLY)
        if file.copied is None:
            os.write(fds[file.descriptor], file.content)
            os.lseek(fds[file.descriptor], 0, os.SEEK_SET)
    options: list[str] = []
    for option in told.options:
        if option[0] in ("--file", "--bind-fd", "--ro-bind-fd", "--seccomp"):
            option = (option[0], str(fds[int(option[1])]), *option[2:])
        if option[0] != "--json-status-fd":
            options += option
    user = WORKER if os.geteuid() == 0 else None
    started = time.perf_counter()
    subprocess.run(
        [told.program, *options, "--", *told.command], check=True, env={}, pass_fds=tuple(fds.values()),
        user=user, group=user, extra_groups=None if user is None else [], stdin=subprocess.PIPE, capture_output=True,
    )  # fmt: skip
    elapsed = time.perf_counter() - started
    for fd in fds.values():
        os.close(fd)
    return elapsed


def ours(plan: ApprovedPlan) -> float:
    started = time.perf_counter()
    outcome = run(plan)
    elapsed = time.perf_counter() - started
    assert outcome.how == "exited" and outcome.status == 0, outcome
    return elapsed


def measure(bwrap: str, workspace: str) -> dict[str, tuple[float, float, float]]:
    """Return for each command its median in milliseconds, its ratio to ``bare`` and to ``same``."""
    plan = plan_for(bwrap, workspace)
    acts: dict[str, Callable[[], float]] = {
        "bare": lambda: bare(bwrap), "same": lambda: same(plan), "prespawn": lambda: ours(plan),
    }  # fmt: skip
    rounds = []
    for number in range(ROUNDS + 3):
        names = list(acts)
        random.shuffle(names)
        times = {name: acts[name]() for name in names}
        if number >= 3:
            rounds.append(times)

    def median(name: str, over: str | None) -> float:
        return statistics.median(times[name] / (times[over] if over else 1e-3) for times in rounds)

    return {name: (median(name, None), median(name, "bare"), median(name, "same")) for name in acts}


def main() -> None:
    """Print the table."""
    print(f"{'parent':6} {'bubblewrap':20} {'command':9} {'ms':>7} {'x bare':>7} {'x same':>7}")
    for bwrap in runtimes.bubblewraps():
        for parent in runtimes.parents():
            directory = tempfile.mkdtemp(prefix="prespawn-bench-")
            os.chmod(directory, 0o755)
            os.mkdir(f"{directory}/workspace")
            if runtimes.ROOT:
                os.chown(f"{directory}/workspace", WORKER, WORKER)
            drops = WORKER if runtimes.ROOT and parent == "user" else None
            table = as_user.call(drops, measure, bwrap, f"{directory}/workspace")
            shutil.rmtree(directory)
            for name, (milliseconds, to_bare, to_same) in table.items():
                where = "/".join(Path(bwrap).parts[-3:])[-20:]
                print(f"{parent:6} {where:20} {name:9} {milliseconds:7.2f} {to_bare:7.2f} {to_same:7.2f}")


if __name__ == "__main__":
    main()
