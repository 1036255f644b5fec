"""What a filter costs, as ratios within one run: ``python tests/bench/bench_seccomp.py``.

Set beside ``json.loads`` of the same text. The bar: a whole compilation within 12x of it, and a filter of at most 320
instructions; a warm launch has no cache for it and needs none.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.seccomp import DEFAULT, TABLES, TEXT

from prespawn.launchers.seccomp import assembled, compile_filter
from prespawn.policy.seccomp import read_seccomp

if TYPE_CHECKING:
    from collections.abc import Callable

BAR, MOST = 12.0, 320


def main() -> int:
    """Print the table; 1 if a bar is missed."""
    value = DEFAULT.value
    missed = False
    print(f"{len(TEXT)} bytes of JSON      json.loads   judged  written    whole   ratio  instructions")
    for architecture, table in TABLES.items():
        filter = read_seccomp(value, table)
        times = fastest(
            partial(json.loads, TEXT),
            partial(read_seccomp, value, table),
            partial(assembled, filter, table),
            partial(compile_filter, value, table),
        )
        instructions = len(compile_filter(value, table)) // 8
        ratio = times[3] / times[0]
        missed = missed or ratio > BAR or instructions > MOST
        shown = "".join(f"{one:>6.0f} us" for one in times)
        print(f"{architecture:24} {shown} {ratio:>6.1f}x {instructions:>11}")
    print(f"the bar is {BAR:.0f}x and {MOST} instructions")
    return int(missed)


def fastest(*functions: Callable[[], object], seconds: float = 1.0) -> list[float]:
    """Return the best time of each in microseconds, taken in turns so that a busy moment hits all."""
    best = [float("inf")] * len(functions)
    end = time.perf_counter() + seconds
    gc.disable()
    while time.perf_counter() < end:
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - start)
    gc.enable()
    return [one * 1e6 for one in best]


if __name__ == "__main__":
    sys.exit(main())
