"""What a decision costs, in process: ``python tests/bench/bench_decide.py``.

``Checker.check`` stands beside ``handwritten``, which asks the same questions in straight-line Python; both must first
give the same verdict documents, on the base of the blockers' cases and on declarations that several of them stop. And
300 declarations with recorded facts, read, admitted and checked, stand beside reading them alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from handwritten import HandWritten
from support.measure import Row, compared, main, milliseconds, ratio, timed
from support.world import FORBIDDEN, KEYS, World, plain

from prespawn.checker.admission import Refused, admit
from prespawn.policy.reader import read

if TYPE_CHECKING:
    from prespawn.checker.check import Checker
    from prespawn.checker.facts import Facts

HAND_BAR, PARSE_BAR = 2.5, 3.0
DECLARATIONS = 300
CASES: tuple[dict[str, Any], ...] = (
    {},
    {"set": {"facts.cwd.inode": 7}},
    {"set": {"facts.declared_files[0].present": False}},
    {"set": {"facts.declared_files[0].linked": True, "facts.log.exists": True}},
    {"set": {"declaration.env_keys": ["LD_PRELOAD"], "facts.environment[0].key": "LD_PRELOAD"}},
    {"set": {"declaration.execution": {"argv": ["pytest", "&&", "true"]}}},
    {"set": {"declaration.level": "container"}},
    {"set": {"declaration.file_contract": {"mode": "mutation", "allowed_paths": [".git/**", "src/*.py"]}}},
    {"set": {"facts.run_id_used": True, "facts.runtime.found": False}},
    {"forget": "facts.log.leaves"},
    {"forget": "facts.workspace"},
)
"""What each changes of the base; the first is the base itself, which nothing stops."""
TEXT = """\
# Asked for by the driver that fixes the login; reviewed in the pull request that names this run.
prespawn: declaration/v1
run_id: fix-login-{n}                 # never reusable
workspace: main
profile: sandbox-v1
adapter: exec@1
level: logical                        # what the driver requires at least
cwd: .
declared_files:                       # what the run inspects: existing files, no link on the way
{files}
env_keys: [TZ, TERM]                  # keys only; values come from the site
log_path: reports/fix-login-{n}.log
registry_path: registry.db
execution:
  argv: [pytest, -q, --maxfail=1, -p, no:cacheprovider, tests/test_login_{n}.py]
file_contract:
  mode: mutation
  allowed_paths: ["src/**", "tests/**", docs/login.md, CHANGELOG.md]
execute: true
"""


def measure(rounds: int) -> list[Row]:
    """Return the rows of both comparisons."""
    return [against_hand(rounds), against_parsing(rounds)]


def against_hand(rounds: int) -> Row:
    """Set one decision beside the same decision without rules as data."""
    worlds = [World(plain(case)) for case in CASES]
    for number, world in enumerate(worlds):
        ours = world.checker.check(world.admitted, world.facts).document()
        theirs = HandWritten(world.policy).verdict(world.admitted, world.facts)
        assert ours == theirs, f"case {number}: {[name for name in ours if ours[name] != theirs[name]]} differ"
        assert ours["allowed"] is (number == 0)
    checker, hand = worlds[0].checker, HandWritten(worlds[0].policy)
    declaration, facts = worlds[0].admitted, worlds[0].facts
    acts = {
        "ours": timed(lambda: checker.check(declaration, facts).document(), 100),
        "hand": timed(lambda: hand.verdict(declaration, facts), 100),
    }
    times = compared(acts, rounds)
    told = {name: f"{milliseconds(times, name) * 1e3:.0f} µs" for name in acts}
    note = f"{told['ours']} against {told['hand']} by hand, verdict documents equal in {len(CASES)} cases"
    return Row("one decision", ratio(times, "ours", "hand"), HAND_BAR, note=note)


def against_parsing(rounds: int) -> Row:
    """Set reading, admitting and checking many declarations beside reading them alone."""
    world = World(plain())
    texts, replayed = [], []
    for number in range(DECLARATIONS):
        files = [f"src/login_{part}.py" for part in range(1 + number % 5)]
        texts.append(TEXT.format(n=number, files="\n".join(f"  - {file}" for file in files)).encode())
        replayed.append(recorded(world, texts[-1], files))
    verdicts = decided(world.checker, texts, replayed)
    assert verdicts == [True] * DECLARATIONS, "a declaration was blocked: that is another path than what is measured"
    acts = {
        "decided": timed(lambda: decided(world.checker, texts, replayed)),
        "parsed": timed(lambda: [parsed(text) for text in texts]),
    }
    times = compared(acts, max(5, rounds // 2))
    told = {name: f"{milliseconds(times, name):.0f} ms" for name in acts}
    note = f"{told['decided']} against {told['parsed']} for parsing alone"
    return Row(f"{DECLARATIONS} declarations, facts replayed", ratio(times, "decided", "parsed"), PARSE_BAR, note=note)


def decided(checker: Checker, texts: list[bytes], replayed: list[Facts]) -> list[bool]:
    """Return whether each declaration is allowed, from its bytes on."""
    answers = []
    for text, facts in zip(texts, replayed, strict=True):
        admitted = admit(parsed(text), KEYS, FORBIDDEN)
        assert not isinstance(admitted, Refused)
        answers.append(checker.check(admitted, facts).allowed)
    return answers


def parsed(text: bytes) -> object:
    """Return what the strict reader makes of a declaration."""
    return read(text, source="bench", family="input", syntax="yaml").value


def recorded(world: World, text: bytes, files: list[str]) -> Facts:
    """Return the facts of one declaration, as if they had been recorded for it."""
    admitted = admit(parsed(text), KEYS, FORBIDDEN)
    assert not isinstance(admitted, Refused)
    (file,) = world.facts.declared_files
    return world.facts.replace(
        declaration=admitted.digest, declared_files=tuple(file.replace(path=path) for path in files)
    )


if __name__ == "__main__":
    sys.exit(main(measure, rounds=30))
