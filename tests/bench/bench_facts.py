"""What looking at the host costs: the walk, the scan, and one whole gathering.

Run with ``python tests/bench/bench_facts.py``; prints a table. Times are medians of this run on this machine; only the
ratios travel.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.facts_world import World, area, lists

from prespawn.facts import look as looks
from prespawn.facts.look import Look
from prespawn.facts.scan import scan
from prespawn.facts.walk import declared_file

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = 5_000


def microseconds(act: Callable[[], object], times: int, repeat: int = 5) -> float:
    """Return the median time of one act."""
    rounds = []
    for _ in range(repeat):
        started = time.perf_counter()
        for _ in range(times):
            act()
        rounds.append((time.perf_counter() - started) / times)
    return statistics.median(rounds) * 1e6


def cold(code: str) -> float:
    """Return the median time of a fresh interpreter that runs some code."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return microseconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment), 1, 25)


def main() -> None:
    """Print the table."""
    rows: list[tuple[str, float]] = []
    with area() as top:
        world = World(top)
        for number in range(FILES):
            world.file(f"ws/d{number % 50}/f{number}")
        root = os.open(world.root, os.O_PATH)
        rows.append(("stat by path", microseconds(lambda: os.stat(f"{world.root}/d1/f1"), 5_000)))
        rows.append(("declared file, 2 components", microseconds(lambda: declared_file(root, "d1/f1"), 5_000)))
        rows.append((f"scan of {FILES} files", microseconds(lambda: scan(root, FILES * 2), 1)))
        names = os.listdir(world.root)
        listed = microseconds(lambda: [os.listdir(f"{world.root}/{name}") for name in names if name[0] == "d"], 1)
        rows.append((f"listing of {FILES} files, nothing looked at", listed))
        rows.append(("file system of a descriptor", microseconds(lambda: Look(lists(), 1, {}).filesystem(root), 200)))
        rows.append(("all homes", microseconds(looks.all_homes, 50)))
        for number in range(FILES):
            os.remove(f"{world.root}/d{number % 50}/f{number}")
        asked: dict[str, Any] = {"cwd": ".", "declared_files": ["d1"], "execution": {"argv": ["ls"]}}
        remembering: dict[str, Any] = {"memo": {}}
        rows.append(("gathering, small tree", microseconds(lambda: world.facts(**asked), 50)))
        rows.append(("gathering, digest remembered", microseconds(lambda: world.facts(look=remembering, **asked), 50)))
    rows.append(("python -c pass", cold("pass")))
    rows.append(("python -c 'import prespawn.facts'", cold("import prespawn.facts")))
    for name, value in rows:
        print(f"{name:45} {value:12,.1f} µs")


if __name__ == "__main__":
    main()
