"""How fast the strict reader is, as ratios within one run: ``python tests/bench/bench_reader.py``.

The bar: YAML within 2x of ``CSafeLoader`` up to 2,000 lines. JSON is set beside ``json.loads`` for information.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable

import yaml

from prespawn.policy.reader import read

BAR = 2.0
LINES = (20, 200, 2_000)
UNIT = """\
profile{n}:
  id: sandbox-v{n}                  # released profiles never change
  extends: null
  workspace: {{access: write, git: read-only}}
  network: {{mode: none}}
  process: {{uid: worker, capabilities: [], no_new_privs: true, seccomp: default}}
  environment: {{fixed: {{LANG: C.UTF-8}}, allowed_keys: [TZ, TERM]}}
  limits:
    wall_clock: 1h
    processes: 1024
    open_files: 4096
    output: 64MiB
    tmp: 1GiB
  evidence: {{canary: {{max_age: 7d}}}}
  activation: {{requires: []}}
  still_allowed:
    - act: "memory file"
      reason: 'it holds no more than the worker could'
    - act: abstract socket
      reason: own network namespace
"""


def main() -> int:
    """Print the table; 1 if the bar is missed."""
    print(" lines   bytes  CSafeLoader      yaml  ratio   json.loads      json  ratio")
    ratios = [row(lines) for lines in LINES]
    worst = max(ratios)
    print(f"yaml: at most {worst:.2f}x CSafeLoader; the bar is {BAR:.0f}x")
    return int(worst > BAR)


def row(lines: int) -> float:
    """Measure and print one size; return the YAML ratio."""
    text = document(lines).encode()
    value = yaml.load(text, yaml.CSafeLoader)
    as_json = json.dumps(value, indent=1).encode()
    for data, syntax in ((text, "yaml"), (as_json, "json")):
        assert read(data, source="bench", family="policy", syntax=syntax).value == value  # type: ignore[arg-type]
    theirs, ours, their_json, our_json = fastest(
        lambda: yaml.load(text, yaml.CSafeLoader),
        lambda: read(text, source="bench", family="policy", syntax="yaml"),
        lambda: json.loads(as_json),
        lambda: read(as_json, source="bench", family="policy", syntax="json"),
    )
    print(
        f"{lines:>6} {len(text):>7} {theirs:>9.0f} us {ours:>6.0f} us {ours / theirs:>6.2f}"
        f"   {their_json:>7.0f} us {our_json:>6.0f} us {our_json / their_json:>6.2f}"
    )
    return ours / theirs


def document(lines: int) -> str:
    """Return a document of so many lines, cut at the end of a line."""
    text = "".join(UNIT.format(n=n) for n in range(lines // UNIT.count("\n") + 1))
    return "\n".join(text.split("\n")[:lines]) + "\n"


def fastest(*functions: Callable[[], object], seconds: float = 2.0) -> list[float]:
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
    return [seconds * 1e6 for seconds in best]


if __name__ == "__main__":
    sys.exit(main())
