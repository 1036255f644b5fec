"""A process in which nothing outside can be touched unseen: ``python -P tests/support/guard.py WHAT``.

An audit hook cannot be taken away again, so this is a process of its own. While the guard is armed every audit event
is written down, whatever it is, and so is every call of a clock, of a source of randomness and of the system: their
functions are replaced, because reading a clock or the environment raises no event. All modules are there before; an
import is an event like any other.

``WHAT`` is ``cases`` (the whole checker, over every case and refusal) or one of ``REACHES``, each of which reaches for
something from inside a check: the guard must have seen it. The result is one line of JSON.
"""

from __future__ import annotations

import json
import os
import posix
import random
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from prespawn.blockers import shipped
from prespawn.blockers.rule import PHASES
from prespawn.checker import functions
from prespawn.checker.admission import Refused, admit
from prespawn.checker.approve import approve, draft
from prespawn.checker.check import declaration_invalid
from prespawn.checker.replay import facts_document, replayed
from prespawn.checker.unseen import unseen
from prespawn.policy.filters import shipped_filter
from support.world import FORBIDDEN, KEYS, World, pages, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prespawn.checker.verdict import Verdict

REFUSED: tuple[Any, ...] = (
    None,
    True,
    1.5,
    "x",
    b"x",
    [],
    {},
    {1: 2},
    {"prespawn": "declaration/v2"},
    object(),
    {"a": {1}},
)
MODULES = (time, random, secrets, posix, os)
KEPT = {"fspath"}  # what touches nothing


class Guard:
    """Writes down what is touched while it is armed; a context."""

    def __init__(self) -> None:
        self.touched: list[str] = []
        self._armed = False
        self._kept: list[tuple[Any, str, object]] = []
        sys.addaudithook(self._hook)

    def __enter__(self) -> Guard:
        for module in MODULES:
            for name in dir(module):
                value = getattr(module, name)
                if callable(value) and not isinstance(value, type) and not name.startswith("_") and name not in KEPT:
                    self._replace(module, name, self._trip(f"{module.__name__}.{name}"))
        self._replace(os, "environ", Environment(self.touched))
        self._armed = True
        return self

    def __exit__(self, *_: object) -> None:
        self._armed = False
        for module, name, value in self._kept:
            setattr(module, name, value)

    def _hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._armed:
            self.touched.append(event)

    def _replace(self, module: Any, name: str, value: object) -> None:
        self._kept.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    def _trip(self, name: str) -> Callable[..., object]:
        def tripped(*_: object, **__: object) -> object:
            self.touched.append(name)
            raise PermissionError(name)

        return tripped


class Environment(dict[str, str]):
    """An environment that says when it is read."""

    def __init__(self, touched: list[str]) -> None:
        self._touched = touched

    def __getitem__(self, key: str) -> str:
        self._touched.append("os.environ")
        return ""

    get = __getitem__  # type: ignore[assignment]


def worlds() -> list[tuple[World, Mapping[str, Any]]]:
    """Return the base and every blocker's case, ready to be checked."""
    cases = [case for page in pages().values() for case in page["cases"]]
    return [(World(values), values) for values in map(plain, [{}, *cases])]


def decide(world: World, values: Mapping[str, Any]) -> Iterator[Verdict]:
    """Yield every verdict that the checker has on one input, and make every plan that follows from one."""
    declaration = admit(values["declaration"], KEYS, FORBIDDEN)
    if isinstance(declaration, Refused):
        yield declaration_invalid(world.policy, declaration.found, declaration.field)
        return
    yield world.checker.check(declaration, unseen(declaration))
    yield world.checker.check(declaration, replayed(facts_document(world.facts)))
    for phase in PHASES:
        verdict = world.check(phase)
        rest: dict[str, Any] = {
            "run_id": "run-1", "values": {}, "search_path": ("/usr/bin",), "filter": FILTERS.get(_filter(values)),
        }  # fmt: skip
        if verdict.allowed:
            draft(declaration, world.policy, world.facts, verdict, **rest)
            if phase != PHASES[0]:
                approval: Any = world.approval()
                approve(declaration, world.policy, world.facts, verdict, approval, **rest)
        yield verdict


FILTERS = {("default", machine): shipped_filter("default", machine) for machine in ("x86_64", "aarch64")}


def _filter(values: Mapping[str, Any]) -> tuple[str, str]:
    return values["profile"]["process"]["seccomp"], str(values["facts"]["host"]["machine"])


def all_cases(guard: Guard) -> int:
    """Decide everything and return the number of verdicts."""
    ready, count = worlds(), 0
    policy = ready[0][0].policy
    with guard:
        for world, values in ready:
            for verdict in decide(world, values):
                count += len(verdict.canonical()) > 0
        for value in REFUSED:
            refused = admit(value, KEYS, FORBIDDEN)
            assert isinstance(refused, Refused)
            count += declaration_invalid(policy, refused.found, refused.field).allowed is False
    return count


REACHES: dict[str, Callable[[], object]] = {
    "open": lambda: open("/dev/null"),  # noqa: SIM115  # it never opens
    "socket.__new__": socket.socket,
    "subprocess.Popen": lambda: subprocess.Popen(["true"]),
    "import": lambda: __import__("this"),
    "exec": lambda: exec("1"),
    "os.listdir": lambda: os.listdir("/"),
    "os.environ": lambda: os.environ["HOME"],
    "os.getenv": lambda: os.getenv("HOME"),
    "os.stat": lambda: os.stat("/"),
    "posix.getpid": lambda: posix.getpid(),
    "time.time": lambda: time.time(),
    "time.monotonic": lambda: time.monotonic(),
    "random.random": lambda: random.random(),
    "os.urandom": lambda: os.urandom(1),
    "secrets.token_hex": lambda: secrets.token_hex(),
}


def reaching(guard: Guard, what: str) -> int:
    """Let one of the checker's functions reach outside, in the midst of a check."""
    world = World(plain())

    def reach(view: object) -> tuple[()]:
        REACHES[what]()
        return ()

    put: Any = functions.FUNCTIONS
    put["path-invalid"] = reach
    with guard:
        world.check()
    return 1


def main(what: str) -> None:
    """Print what was done, and what was touched by it."""
    assert shipped.RULES  # it is there before the guard is
    guard = Guard()
    count = all_cases(guard) if what == "cases" else reaching(guard, what)
    print(json.dumps({"verdicts": count, "touched": sorted(set(guard.touched))}))


if __name__ == "__main__":
    main(sys.argv[1])
