"""The filter of system calls that a profile names: what the container runtimes' JSON form may say here, and its meaning.

It owns what is read out of ``seccomp/*.json`` and what is refused, so that one text means the same to a container
runtime and to our own compiler (``launchers.seccomp``): a list of what is allowed, with conditions on arguments.
Narrower than the runtimes, which take more and warn of nothing:

1. Everything that is not listed is refused; no default that allows, no action that only logs or traces.
2. Every name is a call of a known architecture. A runtime passes over names that it does not know, so a misspelt one
   would be silently allowed or silently refused.
3. Conditions are ``==`` and ``& mask ==``, never ``!=`` or an order: they compare 64 bits where the kernel reads 32, so
   set high bits walk past "all but this one".
4. One condition an argument in one rule: runtimes make *alternatives* of two, that is, a wider rule than is written.
5. One action a call; rules of one call are alternatives and each has a condition.
6. Nothing is empty, nothing stands twice, and only architectures that are named alone, so no 32-bit calls come along.

It leaves to others: JSON's syntax (``policy.reader``) and numbers of calls (``policy.syscalls``).
"""

from __future__ import annotations

from . import wording
from .errors import InputError
from .nearest import nearest
from .reader import Document
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from .syscalls import Syscalls
    from .wording import Pointer

    Condition = tuple[int, int, int]
    """Index of an argument, mask, value: ``argument & mask == value``, on all 64 bits."""
    Alternative = tuple[Condition, ...]
    """What has to hold together."""

WIDE = (1 << 64) - 1
_MOST_ERRNO = 4095  # the kernel's MAX_ERRNO; above, a result is no error
_MOST_VALUE = (1 << 63) - 1  # the strict reader's

ALLOW, ERRNO, KILL = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL_PROCESS"
EQUAL, MASKED = "SCMP_CMP_EQ", "SCMP_CMP_MASKED_EQ"

_ROOT = {"defaultAction": True, "defaultErrnoRet": False, "archMap": True, "syscalls": True}  # True: required
_ARCHITECTURE = {"architecture": True, "subArchitectures": True}
_RULE = {"names": True, "action": True, "errnoRet": False, "args": False, "comment": False}
_CONDITION = {"index": True, "value": True, "valueTwo": False, "op": True}


class Outcome(Record):
    """What becomes of a call: one of ``ALLOW``, ``ERRNO`` (it fails with ``errno``) and ``KILL``."""

    action: str
    errno: int = 0


class Rule(Record):
    """What becomes of one call if any of the alternatives holds, or always if there are none."""

    outcome: Outcome
    alternatives: tuple[Alternative, ...]


class Seccomp(Record):
    """A filter; ``default`` is for calls without a rule and for those whose rule does not hold."""

    default: Outcome
    rules: Mapping[str, Rule]


def read_seccomp(document: Document | object, syscalls: Syscalls) -> Seccomp:
    """Return the filter that a document means on one architecture, with rules for calls of others as they stand.

    ``document`` is a ``Document`` or the value of one. Raises ``ReadError`` with the place for the former, for the
    latter ``InputError``; the id is ``policy-<cause>``, causes as in ``policy.shape`` and ``unknown-call``,
    ``unknown-action``, ``unknown-operator``, ``one-condition``, ``never-true``, ``ambiguous``, ``architecture``.
    """
    return _Reader(document, syscalls).root()


class _Reader:
    """One walk through a document; the first fault is raised."""

    def __init__(self, document: Document | object, syscalls: Syscalls) -> None:
        self._document = document
        self._syscalls = syscalls
        self._known = frozenset(syscalls.numbers).union(syscalls.elsewhere)
        self._always: dict[str, Rule] = {}
        self._sometimes: dict[str, tuple[Outcome, list[Alternative]]] = {}

    def root(self) -> Seccomp:
        value = self._document.value if isinstance(self._document, Document) else self._document
        root = self._mapping(value, _ROOT, ())
        default = self._outcome(root, "defaultAction", "defaultErrnoRet", (), (ERRNO, KILL))
        self._architectures(self._entries(root["archMap"], ("archMap",)))
        for index, rule in enumerate(self._entries(root["syscalls"], ("syscalls",))):
            self._rule(rule, ("syscalls", index))
        some = {name: Rule(outcome=of, alternatives=tuple(found)) for name, (of, found) in self._sometimes.items()}
        return Seccomp(default=default, rules={**self._always, **some})

    def _architectures(self, entries: list[Any]) -> None:
        seen = []
        for index, entry in enumerate(entries):
            at = ("archMap", index)
            self._mapping(entry, _ARCHITECTURE, at)
            seen.append(self._text(entry["architecture"], (*at, "architecture")))
            below = entry["subArchitectures"]
            if below != [] or type(below) is not list:
                message = f"{wording.place((*at, 'subArchitectures'))} is {wording.value(below)}; allowed here: `[]`"
                message += "; another ABI has other numbers and no rule here"
                raise self._wrong("architecture", message, *at, "subArchitectures")
            self._once(seen, index, (*at, "architecture"))
        if self._syscalls.seccomp not in seen:
            message = f"`archMap` does not name `{self._syscalls.seccomp}`; a filter for it needs it; add it"
            raise self._wrong("architecture", message, "archMap")

    def _rule(self, value: object, at: Pointer) -> None:
        rule = self._mapping(value, _RULE, at)
        outcome = self._outcome(rule, "action", "errnoRet", at, (ALLOW, ERRNO, KILL))
        names = self._names(self._entries(rule["names"], (*at, "names")), (*at, "names"))
        if "comment" in rule:
            self._text(rule["comment"], (*at, "comment"))
        if "args" not in rule:
            self._add_always(names, Rule(outcome=outcome, alternatives=()), at)
            return
        alternative = self._alternative(self._entries(rule["args"], (*at, "args")), (*at, "args"))
        for name in names:
            self._add_sometimes(name, outcome, alternative, at)

    def _names(self, names: list[Any], at: Pointer) -> list[str]:
        if not all([type(name) is str for name in names]) or len(set(names)) < len(names):
            for index, name in enumerate(names):
                self._text(name, (*at, index))
                self._once(names, index, (*at, index))
        if not self._known.issuperset(names):
            index = next(index for index, name in enumerate(names) if name not in self._known)
            raise self._wrong("unknown-call", self._unknown_call(names[index], (*at, index)), *at, index)
        return names

    def _alternative(self, args: list[Any], at: Pointer) -> Alternative:
        found: dict[int, Condition] = {}
        for number, arg in enumerate(args):
            condition = self._condition(arg, (*at, number))
            if condition[0] in found:
                message = f"{wording.place((*at, number))} is a second condition on argument {condition[0]}"
                message += "; allowed here: one; runtimes take two as alternatives: write two rules if that is meant"
                raise self._wrong("one-condition", message, *at, number)
            found[condition[0]] = condition
        return tuple(found.values())

    def _condition(self, value: object, at: Pointer) -> Condition:
        arg = self._mapping(value, _CONDITION, at)
        if arg["op"] not in (EQUAL, MASKED):
            raise self._wrong("unknown-operator", self._unknown_operator(arg["op"], (*at, "op")), *at, "op")
        index = self._whole(arg["index"], 0, 5, (*at, "index"))
        first = self._whole(arg["value"], 0, _MOST_VALUE, (*at, "value"))
        second = self._whole(arg.get("valueTwo", 0), 0, _MOST_VALUE, (*at, "valueTwo"))
        if arg["op"] == EQUAL:
            if second:
                raise self._wrong("never-true", wording.out_of_range((*at, "valueTwo"), second, 0, 0), *at, "valueTwo")
            return index, WIDE, first
        if not first or second & ~first:
            message = f"{wording.place(at)} compares bits {second:#x} under mask {first:#x}"
            raise self._wrong("never-true", f"{message}; allowed here: a mask that is not 0 and has all of them", *at)
        return index, first, second

    def _add_always(self, names: list[str], rule: Rule, at: Pointer) -> None:
        for name in names:
            if name in self._always or name in self._sometimes:
                raise self._wrong("ambiguous", self._second_rule(name, at), *at)
            self._always[name] = rule

    def _add_sometimes(self, name: str, outcome: Outcome, alternative: Alternative, at: Pointer) -> None:
        before, alternatives = self._sometimes.setdefault(name, (outcome, []))
        if name in self._always or before != outcome:
            raise self._wrong("ambiguous", self._second_rule(name, at), *at)
        if alternative in alternatives:
            message = f"{wording.place(at)} says again what a rule before says of `{name}`; keep one"
            raise self._wrong("duplicate-item", message, *at)
        alternatives.append(alternative)

    def _outcome(self, of: dict[str, Any], key: str, errno: str, at: Pointer, allowed: Collection[str]) -> Outcome:
        action = of[key]
        if action not in allowed:
            message = wording.not_allowed((*at, key), self._text(action, (*at, key)), allowed)
            raise self._wrong("unknown-action", message, *at, key)
        if action != ERRNO and errno in of:
            raise self._wrong("unknown-key", f"{wording.place((*at, errno))} is for `{ERRNO}` alone", *at, errno)
        if action != ERRNO:
            return Outcome(action=action)
        if errno not in of:
            raise self._wrong("missing-key", wording.missing_key((*at, errno)), *at, errno)
        return Outcome(action=action, errno=self._whole(of[errno], 1, _MOST_ERRNO, (*at, errno)))

    def _mapping(self, value: object, fields: Mapping[str, bool], at: Pointer) -> dict[str, Any]:
        if type(value) is not dict:
            raise self._wrong("type", wording.wrong_type(at, value, ("dict",)), *at)
        for name in value:
            if name not in fields:
                raise self._wrong("unknown-key", wording.unknown_key((*at, name), fields), *at, name, key=True)
        for name, required in fields.items():
            if required and name not in value:
                raise self._wrong("missing-key", wording.missing_key((*at, name)), *at, name)
        return value

    def _entries(self, value: object, at: Pointer) -> list[Any]:
        if type(value) is not list:
            raise self._wrong("type", wording.wrong_type(at, value, ("list",)), *at)
        if not value:
            raise self._wrong("length", wording.wrong_length(at, value, 1, None), *at)
        return value

    def _text(self, value: object, at: Pointer) -> str:
        if type(value) is not str:
            raise self._wrong("type", wording.wrong_type(at, value, ("string",)), *at)
        return value

    def _whole(self, value: object, low: int, high: int, at: Pointer) -> int:
        if type(value) is not int:
            raise self._wrong("type", wording.wrong_type(at, value, ("integer",)), *at)
        if not low <= value <= high:
            raise self._wrong("range", wording.out_of_range(at, value, low, high), *at)
        return value

    def _once(self, entries: list[Any], index: int, at: Pointer) -> None:
        if entries[index] in entries[:index]:
            raise self._wrong("duplicate-item", wording.listed_twice(at, entries[index]), *at)

    def _unknown_call(self, name: str, at: Pointer) -> str:
        meant = nearest(name, self._known)
        hint = f"did you mean `{meant}`" if meant else "allowed here: names in the `syscalls/v1` tables"
        return f"{wording.place(at)} is {wording.value(name)}, a system call of no known architecture; {hint}"

    def _unknown_operator(self, operator: object, at: Pointer) -> str:
        message = wording.not_allowed(at, self._text(operator, at), (EQUAL, MASKED))
        return f"{message}; list what is allowed: others compare 64 bits where the kernel reads 32"

    def _second_rule(self, name: str, at: Pointer) -> str:
        allowed = "one rule without conditions, or rules with conditions and one action"
        return f"{wording.place(at)} is a second rule for `{name}`; allowed here: {allowed}"

    def _wrong(self, cause: str, message: str, *at: str | int, key: bool = False) -> InputError:
        if isinstance(self._document, Document):
            return self._document.error(cause, message, *at, key=key)
        return InputError(f"policy-{cause}", message)
