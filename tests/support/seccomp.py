"""The shipped filter and tables as the product reads them, and what a filter means, told a second time.

``Meaning`` is the oracle: it reads the JSON text and the YAML tables with other readers than the product's and shares
no code with it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from prespawn.policy.reader import read
from prespawn.policy.syscalls import tables

from .bpf import ALLOW, ERRNO, KILL_PROCESS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from prespawn.policy.reader import Document, Syntax

FOLDER = Path(__file__).parents[2] / "policy" / "seccomp"
ARCHITECTURES = ("x86_64", "aarch64")
ENOSYS = 38
WIDE = (1 << 64) - 1
EDGES = (0, 512, 547, 0x40000000, 0x40000000 + 600, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFD)


def document(data: str | bytes, syntax: Syntax = "json", source: str = "filter.json") -> Document:
    """Return a text as the product reads trusted files."""
    data = data.encode() if isinstance(data, str) else data
    return read(data, source=source, family="policy", syntax=syntax)


TEXT = (FOLDER / "default.json").read_text("ascii")
DEFAULT = document(TEXT, source="default.json")
VALUE: Any = json.loads(TEXT)
TABLES = tables(document((FOLDER / f"{id}.yaml").read_bytes(), "yaml", f"{id}.yaml") for id in ARCHITECTURES)
RAW: dict[str, Any] = {id: yaml.safe_load((FOLDER / f"{id}.yaml").read_bytes()) for id in ARCHITECTURES}

DROP = object()
EQ: dict[str, Any] = {"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}
MASKED: dict[str, Any] = {"index": 0, "value": 6, "valueTwo": 2, "op": "SCMP_CMP_MASKED_EQ"}
SMALL: dict[str, Any] = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "defaultErrnoRet": 1,
    "archMap": [
        {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
        {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
    ],
    "syscalls": [
        {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [EQ]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "comment": "behind a pointer"},
    ],
}


def changed(*pointer: str | int, to: Any) -> dict[str, Any]:
    """Return a small filter with the value at a pointer replaced; ``DROP`` takes it out."""
    value = copy.deepcopy(SMALL)
    here: Any = value
    for part in pointer[:-1]:
        here = here[part]
    if to is DROP:
        del here[pointer[-1]]
    elif isinstance(here, list) and pointer[-1] == len(here):
        here.append(to)
    else:
        here[pointer[-1]] = to
    return value


class Meaning:
    """What a filter's JSON says of a call on one architecture."""

    def __init__(self, value: Any, architecture: str) -> None:
        self.table = RAW[architecture]
        self.names: dict[int, str] = {number: name for name, number in self.table["numbers"].items()}
        self.default = _result(value["defaultAction"], value.get("defaultErrnoRet"))
        self.rules: dict[str, list[tuple[int, list[Any]]]] = {name: [] for name in self.table["numbers"]}
        for rule in value["syscalls"]:
            for name in rule["names"]:
                if name in self.rules:
                    self.rules[name].append((_result(rule["action"], rule.get("errnoRet")), rule.get("args", [])))
        self.asked = [name for name in self.rules if self.conditions(name)] or list(self.rules)

    def of(self, number: int, arguments: Sequence[int], architecture: int) -> int:
        """Return what the kernel should be told."""
        killed = self.table["killed"]
        if architecture != self.table["audit"] or (killed and killed["first"] <= number <= killed["last"]):
            return KILL_PROCESS
        if number not in self.names:
            return ERRNO | ENOSYS
        for result, conditions in self.rules[self.names[number]]:
            if all(holds(condition, arguments[condition["index"]]) for condition in conditions):
                return result
        return self.default

    def conditions(self, name: str) -> list[Any]:
        """Return every condition that any rule has on a call."""
        return [condition for _, conditions in self.rules[name] for condition in conditions]

    def call(self, random: Random) -> tuple[int, list[int], int]:
        """Return a random call near what the filter looks at: number, arguments and architecture."""
        number = self._number(random)
        asked = self.conditions(self.names[number]) if number in self.names else []
        near = [value for condition in asked for value in _edges(condition)] or [0]
        arguments = [_argument(random, near) for _ in range(6)]
        other = random.choice([0x40000003, 0xC00000B7, 0xC000003E, 0x40000028, self.table["audit"] ^ 1, 0])
        return number, arguments, other if random.random() < 0.02 else self.table["audit"]

    def _number(self, random: Random) -> int:
        kind = random.random()
        if kind < 0.6:
            return int(self.table["numbers"][random.choice(self.asked)])
        if kind < 0.9:
            return max(0, random.choice(list(self.names)) + random.choice([-1, 0, 1]))
        if kind < 0.95:
            return max(0, random.choice([*EDGES, max(self.names)]) + random.choice([-1, 0, 1, 2]))
        return random.choice([random.getrandbits(32), random.getrandbits(10), 0x40000000 | random.getrandbits(9)])


def _result(action: str, errno: int | None) -> int:
    if action == "SCMP_ACT_ERRNO":
        assert errno is not None
        return ERRNO | errno
    return {"SCMP_ACT_ALLOW": ALLOW, "SCMP_ACT_KILL_PROCESS": KILL_PROCESS}[action]


def holds(condition: Any, argument: int) -> bool:
    """Say whether an argument fulfils a condition."""
    if condition["op"] == "SCMP_CMP_EQ":
        return bool(argument == condition["value"])
    assert condition["op"] == "SCMP_CMP_MASKED_EQ"
    return bool(argument & condition["value"] == condition["valueTwo"])


def _edges(condition: Any) -> list[int]:
    wanted = condition["valueTwo"] if condition["op"] == "SCMP_CMP_MASKED_EQ" else condition["value"]
    mask = condition["value"] if condition["op"] == "SCMP_CMP_MASKED_EQ" else WIDE
    return [wanted, mask, WIDE ^ mask, wanted | (WIDE ^ mask), wanted ^ mask]


def _argument(random: Random, near: list[int]) -> int:
    value = random.choice(near)
    changed = random.choice([
        value, value, value ^ (1 << random.randrange(64)), value ^ (1 << random.randrange(32)), value + 1, value - 1,
        value | random.getrandbits(32) << 32, value & 0xFFFFFFFF, value ^ value << 32, value | 0xFFFFFFFF << 32,
        random.getrandbits(64), random.getrandbits(16), 0,
    ])  # fmt: skip
    return changed & WIDE
