"""The filter of system calls that a profile names: what the runtimes' JSON form may say here, and what it means.

It owns what is read out of ``seccomp/*.json`` and what is refused, so that one text means the same to a container
runtime and to our own compiler (``launchers.seccomp``): a list of what is allowed, with conditions on arguments.
Narrower than the runtimes, which take more and warn of nothing:

1. What is not listed is refused; no default that allows, no action that only logs or traces.
2. Every name is a call of a known architecture. A runtime passes over names that it does not know, so a rule with a
   misspelt one would silently not be there.
3. Conditions are ``==`` and ``& mask ==``, never ``!=`` or an order: they compare 64 bits where the kernel may read 32,
   so set high bits walk past "all but this one".
4. One condition an argument in one rule: runtimes make *alternatives* of two, a wider rule than what is written.
5. One action a call. Rules of one call are alternatives, and then each has a condition.
6. Nothing is empty, nothing stands twice, and architectures stand alone: no calls of 32-bit programs come along.

It leaves to others: JSON's syntax (``policy.reader``), the steps of the walk (``policy.walk``), the numbers of calls
(``policy.syscalls``).
"""

from __future__ import annotations

from . import wording
from .nearest import nearest
from .record import Record
from .walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from .errors import InputError
    from .reader import Document
    from .syscalls import Syscalls
    from .wording import Pointer

    Outcome = tuple[str, int]
    """``ALLOW``, ``ERRNO`` or ``KILL``, and the errno with which a call fails, else 0."""
    Condition = tuple[int, int, int]
    """Index of an argument, mask, value: ``argument & mask == value``, on all 64 bits."""
    Alternative = tuple[Condition, ...]
    """What has to hold together."""

WIDE = (1 << 64) - 1
_MOST_ERRNO = 4095  # the kernel's MAX_ERRNO; above, a result is no error
_MOST_VALUE = (1 << 63) - 1  # the strict reader's
_LAST_ARGUMENT = 5

ALLOW, ERRNO, KILL = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL_PROCESS"
EQUAL, MASKED = "SCMP_CMP_EQ", "SCMP_CMP_MASKED_EQ"

_ROOT = {"defaultAction": True, "defaultErrnoRet": False, "archMap": True, "syscalls": True}  # True: required
_ARCHITECTURE = {"architecture": True, "subArchitectures": True}
_RULE = {"names": True, "action": True, "errnoRet": False, "args": False, "comment": False}
_CONDITION = {"index": True, "value": True, "valueTwo": False, "op": True}


class Rule(Record):
    """What becomes of one call if any of the alternatives holds, or always if there are none."""

    outcome: Outcome
    alternatives: tuple[Alternative, ...] = ()


class Seccomp(Record):
    """A filter; ``default`` is for known calls without a rule and for those whose rule does not hold."""

    default: Outcome
    rules: Mapping[str, Rule]


def read_seccomp(document: Document | object, syscalls: Syscalls) -> Seccomp:
    """Return the filter that a document means for one architecture, with rules for calls of others as they stand.

    ``document`` is a ``Document`` or the value of one. Raises ``ReadError`` with the place for the former,
    ``InputError`` for the latter; causes as in ``policy.walk`` and ``unknown-call``, ``unknown-action``,
    ``unknown-operator``, ``one-condition``, ``never-true``, ``ambiguous``, ``architecture``.
    """
    return _Reader(document, syscalls).read()


class _Reader(Walk):
    def __init__(self, document: Document | object, syscalls: Syscalls) -> None:
        super().__init__(document)
        self._native = syscalls.seccomp
        self._known = {*syscalls.numbers, *syscalls.elsewhere}
        self._always: dict[str, Rule] = {}
        self._sometimes: dict[str, tuple[Outcome, list[Alternative]]] = {}

    def read(self) -> Seccomp:
        root = self.mapping(self.root, _ROOT, ())
        default = self._outcome(root, "defaultAction", "defaultErrnoRet", (), (ERRNO, KILL))
        self._architectures(self.entries(root["archMap"], ("archMap",)))
        for index, rule in enumerate(self.entries(root["syscalls"], ("syscalls",))):
            self._rule(rule, ("syscalls", index))
        some = {name: Rule(outcome=of, alternatives=tuple(found)) for name, (of, found) in self._sometimes.items()}
        return Seccomp(default=default, rules={**self._always, **some})

    def _architectures(self, entries: list[Any]) -> None:
        seen: list[str] = []
        for index, entry in enumerate(entries):
            at: Pointer = ("archMap", index)
            self.mapping(entry, _ARCHITECTURE, at)
            seen.append(self.text(entry["architecture"], (*at, "architecture")))
            self.once(seen, index, (*at, "architecture"))
            if type(entry["subArchitectures"]) is not list or entry["subArchitectures"]:
                below = (*at, "subArchitectures")
                found = f"{wording.place(below)} is {wording.value(entry['subArchitectures'])}"
                raise self.wrong("architecture", f"{found}; allowed here: `[]`, as no rule is about them", below)
        if self._native not in seen:
            message = f"`archMap` does not name `{self._native}`, for which this filter is made; add it"
            raise self.wrong("architecture", message, ("archMap",))

    def _rule(self, value: object, at: Pointer) -> None:
        rule = self.mapping(value, _RULE, at)
        outcome = self._outcome(rule, "action", "errnoRet", at, (ALLOW, ERRNO, KILL))
        names = self.words(rule["names"], (*at, "names"))
        if not self._known.issuperset(names):
            raise self._unknown_call(names, (*at, "names"))
        if "comment" in rule:
            self.text(rule["comment"], (*at, "comment"))
        if "args" in rule:
            alternative = self._alternative(self.entries(rule["args"], (*at, "args")), (*at, "args"))
            for name in names:
                self._add_sometimes(name, outcome, alternative, at)
        else:
            self._add_always(names, Rule(outcome=outcome), at)

    def _outcome(self, of: dict[str, Any], key: str, errno: str, at: Pointer, allowed: Collection[str]) -> Outcome:
        action = self.text(of[key], (*at, key))
        if action not in allowed:
            raise self.wrong("unknown-action", wording.not_allowed((*at, key), action, allowed), (*at, key))
        if action == ERRNO:
            if errno not in of:  # runtimes take EPERM then, or the default's, by their version
                raise self.wrong("missing-key", wording.missing_key((*at, errno)), (*at, errno))
            return action, self.whole(of[errno], 1, _MOST_ERRNO, (*at, errno))
        if errno in of:
            raise self._beside(errno, action, ERRNO, at)
        return action, 0

    def _alternative(self, args: list[Any], at: Pointer) -> Alternative:
        found: dict[int, Condition] = {}
        for number, arg in enumerate(args):
            condition = self._condition(arg, (*at, number))
            if condition[0] in found:
                message = f"{wording.place((*at, number))} is a second condition on argument `{condition[0]}`"
                message += "; allowed here: one, as runtimes take two as alternatives; write two rules if that is meant"
                raise self.wrong("one-condition", message, (*at, number))
            found[condition[0]] = condition
        return tuple(sorted(found.values()))

    def _condition(self, value: object, at: Pointer) -> Condition:
        arg = self.mapping(value, _CONDITION, at)
        operator = self.text(arg["op"], (*at, "op"))
        if operator not in (EQUAL, MASKED):
            message = wording.not_allowed((*at, "op"), operator, (EQUAL, MASKED))
            message += "; list what is allowed: the others compare 64 bits where the kernel may read 32"
            raise self.wrong("unknown-operator", message, (*at, "op"))
        index = self.whole(arg["index"], 0, _LAST_ARGUMENT, (*at, "index"))
        if operator == EQUAL:
            if "valueTwo" in arg:
                raise self._beside("valueTwo", operator, MASKED, at)
            return index, WIDE, self.whole(arg["value"], 0, _MOST_VALUE, (*at, "value"))
        if "valueTwo" not in arg:
            raise self.wrong("missing-key", wording.missing_key((*at, "valueTwo")), (*at, "valueTwo"))
        mask = self.whole(arg["value"], 1, _MOST_VALUE, (*at, "value"))
        second = self.whole(arg["valueTwo"], 0, _MOST_VALUE, (*at, "valueTwo"))
        if second & ~mask:
            message = f"{wording.place((*at, 'valueTwo'))} is `{second}`, never what is left under the mask `{mask}`"
            raise self.wrong("never-true", f"{message}; allowed here: bits of the mask", (*at, "valueTwo"))
        return index, mask, second

    def _add_always(self, names: list[str], rule: Rule, at: Pointer) -> None:
        for name in names:
            if name in self._always or name in self._sometimes:
                raise self._second_rule(name, at)
            self._always[name] = rule

    def _add_sometimes(self, name: str, outcome: Outcome, alternative: Alternative, at: Pointer) -> None:
        before, alternatives = self._sometimes.setdefault(name, (outcome, []))
        if name in self._always or before != outcome:
            raise self._second_rule(name, at)
        if alternative in alternatives:
            message = f"{wording.place(at)} says again what a rule before says of `{name}`; keep one"
            raise self.wrong("duplicate-item", message, at)
        alternatives.append(alternative)

    def _second_rule(self, name: str, at: Pointer) -> InputError:
        allowed = "one rule without conditions, or rules with conditions and one action"
        return self.wrong("ambiguous", f"{wording.place(at)} is another rule for `{name}`; allowed here: {allowed}", at)

    def _beside(self, key: str, word: str, allowed: str, at: Pointer) -> InputError:
        message = f"{wording.place((*at, key))} stands beside `{word}`; allowed here: beside `{allowed}`"
        return self.wrong("unknown-key", message, (*at, key), key=True)

    def _unknown_call(self, names: list[str], at: Pointer) -> InputError:
        index = next(index for index, name in enumerate(names) if name not in self._known)
        found = f"{wording.place((*at, index))} is {wording.value(names[index])}, a call of no known architecture"
        meant = nearest(names[index], self._known)
        hint = f"did you mean `{meant}`" if meant else "allowed here: the names of the `syscalls/v1` tables"
        return self.wrong("unknown-call", f"{found}; {hint}", (*at, index))
