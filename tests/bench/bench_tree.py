"""Looking at a tree for the file contract, against reading and hashing every file of it in plain Python.

Run with ``python tests/bench/bench_tree.py``. The tree has 2,000 files; the look is the second one, which is compared
with the first.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.measure import Row, compared, main, milliseconds, ratio, timed

from prespawn.checker.contract import Contract
from prespawn.checker.contract import compared as judged
from prespawn.tree import tree

FILES, DIRECTORIES, MOST = 2_000, 50, 1 << 20
SIZES = (0, 100, 1_000, 4_000, 20_000)
BAR = 1.5


def made(top: str) -> None:
    """Make the tree; sizes come in turn, contents are random."""
    chance = random.Random(FILES)
    for number in range(FILES):
        directory = f"{top}/d{number % DIRECTORIES}/e{number % 3}"
        os.makedirs(directory, exist_ok=True)
        with open(f"{directory}/f{number}", "wb") as file:
            file.write(chance.randbytes(SIZES[number % len(SIZES)]))


def plain(top: str) -> dict[str, str]:
    """Read and hash every file, as a script would."""
    seen = {}
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                seen[path] = hashlib.sha256(file.read()).hexdigest()
    return seen


def measure(rounds: int) -> list[Row]:
    """Return the rows."""
    with tempfile.TemporaryDirectory(prefix="prespawn-bench-") as top:
        made(top)
        root = os.open(top, os.O_PATH)
        whole, none = Contract(), Contract(mode="mutation", allowed_paths=("**",))
        before = tree(root, whole, MOST)

        def look() -> None:
            assert judged(before, tree(root, whole, MOST, before=before), whole).is_kept

        acts = {
            "plain": timed(lambda: plain(top)),
            "look": timed(look),
            "listing": timed(lambda: tree(root, none, MOST)),
        }
        times = compared(acts, rounds)
        os.close(root)
    note = f"{milliseconds(times, 'look'):.1f} ms against {milliseconds(times, 'plain'):.1f} ms, {FILES} files"
    return [
        Row("look and compare / read and hash", ratio(times, "look", "plain"), BAR, note=note),
        Row("look under `**` / read and hash", ratio(times, "listing", "plain"), note="nothing is read"),
    ]


if __name__ == "__main__":
    sys.exit(main(measure, 15))
