"""Side by side measuring for ``tests/bench``: ratios within one run, never times.

Every round does each act once, in random order, and a ratio is the median of the rounds' own ratios: what slows the
machine down for a while slows both sides of a ratio. A bench prints its rows as a table, or with ``--json`` as values
for ``run.py``.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Times = Mapping[str, list[float]]

NOISE = 1.10  # a bar that is missed by less may have been missed by the machine
WARM_UP = 3  # rounds that are thrown away: the first ones read files from disk


class Row(NamedTuple):
    """One measured value, with the bar that it must not pass, or None where it is only told.

    ``unit`` is ``x`` for a ratio; ``note`` says what was measured against what.
    """

    name: str
    measured: float
    bar: float | None = None
    unit: str = "x"
    note: str = ""

    @property
    def word(self) -> str:
        """Say how the value stands to its bar: ok, close (within the noise), over, or nothing without a bar."""
        if self.bar is None:
            return ""
        if self.measured <= self.bar:
            return "ok"
        return "close" if self.measured <= self.bar * NOISE else "over"


def compared(acts: Mapping[str, Callable[[], float]], rounds: int) -> Times:
    """Return each act's times, round by round; an act returns its own time in seconds.

    As in ``timeit``, garbage is collected between the acts and not in them: whom it hits would be chance.
    """
    times: dict[str, list[float]] = {name: [] for name in acts}
    gc.disable()
    for number in range(rounds + WARM_UP):
        order = list(acts)
        random.shuffle(order)
        for name in order:
            gc.collect()
            seconds = acts[name]()
            if number >= WARM_UP:
                times[name].append(seconds)
    gc.enable()
    return times


def timed(act: Callable[[], object], repeat: int = 1) -> Callable[[], float]:
    """Return an act that does something so many times and says how long one took."""

    def measured() -> float:
        started = time.perf_counter()
        for _ in range(repeat):
            act()
        return (time.perf_counter() - started) / repeat

    return measured


def ratio(times: Times, of: str, to: str) -> float:
    """Return the median of the rounds' ratios of one act to another."""
    return statistics.median(one / other for one, other in zip(times[of], times[to], strict=True))


def milliseconds(times: Times, of: str) -> float:
    """Return the median time of one act, to be told and not to be compared between runs."""
    return statistics.median(times[of]) * 1e3


def main(measure: Callable[[int], list[Row]], rounds: int) -> int:
    """Measure as the line asks, print the rows, and return 1 if one is over its bar by more than the noise."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.rounds)
    sys.stdout.write(json.dumps(rows) + "\n" if options.json else table(rows))
    return int(any(row.word == "over" for row in rows))


def table(rows: list[Row]) -> str:
    """Return rows as lines of text."""
    width = max(len(row.name) for row in rows)
    lines = [f"{'':{width}}  {'measured':>12} {'bar':>10}"]
    for row in rows:
        bar = "" if row.bar is None else f"{row.bar:,.4g} {row.unit}"
        lines.append(
            f"{row.name:{width}}  {row.measured:>8,.2f} {row.unit:<3} {bar:>10}  {row.word:5}  {row.note}".rstrip()
        )
    return "\n".join(lines) + "\n"
