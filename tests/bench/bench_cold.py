"""What one command line costs, cold, with the built-in site: ``python tests/bench/bench_cold.py``.

``check`` of one YAML file stands beside ``python -c pass`` of the same interpreter, ``exec -- true`` beside a bare
``bwrap --ro-bind / / --unshare-all --proc /proc --dev /dev true``. Under root everything is measured a second time as
an ordinary user. The installed command is the one beside the interpreter that runs this. Rows without
a bar say of what parts a cold ``exec`` consists; what is imported while bubblewrap works is part of that wait.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.measure import Row, compared, main, milliseconds, ratio, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = 60001  # whom root lets the worker be, and the second parent
CHECK_BAR, EXEC_BAR, MEMORY_BAR = 4.5, 8.0, 40.0
PROJECT = Path(__file__).parents[2] / "examples" / "project"
DECLARATION = "format-and-test.yaml"
COMMAND = str(Path(sys.executable).parent / "prespawn")
BARE = ("--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true")
PEAK = """\
import gc, sys
gc.disable()
from prespawn.cli import main
code = main(sys.argv[1:])
with open("/proc/self/status") as file:
    print([line.split()[1] for line in file if line.startswith("VmHWM")][0], file=sys.stderr)
sys.exit(code)
"""

PARTS = """\
import gc, sys, time
gc.disable()
first, begun = time.perf_counter(), float(sys.argv[1])
import _frozen_importlib as machinery, _thread
import prespawn
prespawn.own_process = True
spent, parts, last = {"interpreter": first - begun}, ["gather and check"], [first]
main_thread, load = _thread.get_ident(), machinery._find_and_load

def count():
    now = time.perf_counter()
    spent[parts[-1]] = spent.get(parts[-1], 0.0) + now - last[0]
    last[0] = now

def within(name, act, *given, **named):
    count()
    parts.append(name)
    try:
        return act(*given, **named)
    finally:
        count()
        parts.pop()

def loading(name, importing):
    if _thread.get_ident() != main_thread or parts[-1] in ("import", "bwrap to hold"):
        return load(name, importing)
    return within("import", load, name, importing)

def timed(owner, attribute, part):
    act = getattr(owner, attribute)
    setattr(owner, attribute, lambda *given, **named: within(part, act, *given, **named))

def judged(launch, held):
    within("look", look, launch, held)
    parts[-1] = "release to end"

machinery._find_and_load = loading
from prespawn.cli import main
from prespawn import launch, registry, supervise
timed(launch, "started", "registry and receipts")
timed(supervise, "run", "bwrap to hold")
timed(launch._Launch, "_write", "registry and receipts")
timed(registry.Registry, "started", "registry and receipts")
look, launch._Launch.judged = launch._Launch.judged, judged
code = main(sys.argv[2:])
count()
print(*(f"{name}={value}" for name, value in spent.items()), sep="\\n", file=sys.stderr)
sys.exit(code)
"""
ROUNDS_OF_PARTS = 10


class Caller:
    """Somebody who types command lines in a workspace of an ordinary user, with a state directory of their own."""

    def __init__(self, directory: str, uid: int) -> None:
        self.workspace, self.uid = f"{directory}/workspace", uid
        state = f"{directory}/state-{uid}"
        os.mkdir(state, 0o700)
        os.chown(state, uid, -1)
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "XDG_STATE_HOME": state}

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run a line to its end; it must succeed, or what is measured is something else."""
        return subprocess.run(
            words, check=True, cwd=self.workspace, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, user=self.uid if os.geteuid() == 0 else None,
        )  # fmt: skip


@contextmanager
def area() -> Iterator[str]:
    """A directory below which everybody may walk, with a workspace that belongs to an ordinary user."""
    directory = tempfile.mkdtemp(prefix="prespawn-bench-")
    os.chmod(directory, 0o755)
    shutil.copytree(PROJECT, f"{directory}/workspace")
    if os.geteuid() == 0:
        for path in (directory, *map(str, Path(directory).rglob("*"))):
            if path != directory:
                os.chown(path, USER, USER)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def measure(rounds: int) -> list[Row]:
    """Return the rows of every kind of caller that this user can be."""
    with area() as directory:
        callers = {"": Caller(directory, os.geteuid())}
        if os.geteuid() == 0:
            callers = {" by root": callers[""], " by a user": Caller(directory, USER)}
        return [row for words, caller in callers.items() for row in rows_of(words, caller, rounds)]


def rows_of(words: str, caller: Caller, rounds: int) -> list[Row]:
    """Return the rows of one caller."""
    acts = {
        "pass": timed(lambda: caller.run(sys.executable, "-c", "pass")),
        "check": timed(lambda: caller.run(COMMAND, "check", DECLARATION)),
    }
    bwrap = shutil.which("bwrap")
    if bwrap is not None:
        acts["bare"] = timed(lambda: caller.run(bwrap, *BARE))
        acts["exec"] = timed(lambda: caller.run(COMMAND, "exec", "--", "true"))
    times = compared(acts, rounds)
    told = {name: f"{milliseconds(times, name):.1f} ms" for name in acts}
    against = f"{told['check']} against {told['pass']} of `python -c pass`"
    rows = [Row(f"check, cold{words}", ratio(times, "check", "pass"), CHECK_BAR, note=against)]
    rows.append(Row(f"check, peak memory{words}", peak(caller), MEMORY_BAR, "MiB"))
    if bwrap is None:
        sys.stderr.write("skipped: `exec`, for no `bwrap` is installed on this host\n")
        return rows
    against = f"{told['exec']} against {told['bare']} of a bare `bwrap`"
    rows.append(Row(f"exec -- true, cold{words}", ratio(times, "exec", "bare"), EXEC_BAR, note=against))
    return [*rows, *(Row(f"  {name}{words}", share, None, "%") for name, share in parts(caller).items())]


def parts(caller: Caller) -> dict[str, float]:
    """Return the share of each part of a cold ``exec``, in percent, of all that some runs took."""
    spent: dict[str, float] = {}
    for _ in range(ROUNDS_OF_PARTS):
        said = caller.run(sys.executable, "-P", "-c", PARTS, str(time.perf_counter()), "exec", "--", "true").stderr
        for name, seconds in (line.split("=") for line in said.decode().splitlines()):
            spent[name] = spent.get(name, 0.0) + float(seconds)
    return {name: 100 * seconds / sum(spent.values()) for name, seconds in spent.items()}


def peak(caller: Caller) -> float:
    """Return the most memory that a ``check`` held, in MiB, as the kernel counted it for that very process image."""
    said = caller.run(sys.executable, "-c", PEAK, "check", DECLARATION).stderr
    return int(said.split()[-1]) / 1024


if __name__ == "__main__":
    sys.exit(main(measure, rounds=40))
