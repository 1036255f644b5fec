"""A blocker file as the checker uses it: compiled once, evaluated for every run.

The file's page (``why``, ``reference``, ``cases``) is not needed to decide and stays on disk. A file that is wrong in
itself is refused when it is compiled: an unknown operator or list, a reference that begins nowhere, a blocker that is
silent for an id that does not exist.
"""

from __future__ import annotations

from prespawn.policy.errors import InputError
from prespawn.policy.record import Record

from .conditions import ConditionError, Template, compile_condition, compile_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from prespawn.policy.lists import NamedList

    from .conditions import Condition, Getter

PHASES = ("check", "execute", "launch")  # a later pass evaluates the earlier ones as well


class Rule(Record):
    """One compiled blocker.

    ``adapter`` is the one that adds it, by the first part of its id, or None for a core one. ``raised`` marks the ones
    that the checker itself reports and that nothing evaluates. ``each`` yields the elements that ``condition`` is asked
    about one by one (as ``item``); ``condition`` is None where a checker function of the same name answers. ``unless``
    lists more special ids: where one of them failed for the same element, or for the run as a whole, this one is
    silent.
    """

    id: str
    adapter: str | None
    boundary: str
    title: str
    remedy: str
    portable: bool
    status: str
    raised: bool
    phase: str
    operator: str
    unless: tuple[str, ...]
    each: Getter | None
    condition: Condition | None
    field: Template
    found: Template
    allowed: tuple[Template, ...]


def shipped_rules(lists: Mapping[str, NamedList]) -> tuple[Rule, ...]:
    """Return the rules of this installation; their conditions were made into code when it was built."""
    from .shipped import RULES
    from .shipped_conditions import CONDITIONS

    return _ordered([_compiled(file, lists, CONDITIONS.get(id)) for id, file in RULES.items()])


def compile_rules(files: Iterable[Mapping[str, Any]], lists: Mapping[str, NamedList]) -> tuple[Rule, ...]:
    """Return the active rules of checked blocker files, each after the ones that can silence it.

    What the checker raises itself has no rule; ``explain`` knows it from its page.
    """
    return _ordered([_compiled(file, lists) for file in files])


def _ordered(compiled: Iterable[Rule]) -> tuple[Rule, ...]:
    rules = {rule.id: rule for rule in compiled}
    ordered: dict[str, Rule] = {}
    for id in sorted(rules):
        _place(id, rules, ordered, ())
    return tuple(rule for rule in ordered.values() if rule.status == "active" and not rule.raised)


def _place(id: str, rules: Mapping[str, Rule], ordered: dict[str, Rule], above: tuple[str, ...]) -> None:
    if id in ordered:
        return
    if id not in rules or id in above:
        raise InputError(
            "policy-value", f"blocker `{above[-1]}` is silent for `{id}`, which does not exist or leads back to it"
        )
    for other in rules[id].unless:
        if rules[id].adapter is None and "/" in other:
            raise InputError(
                "policy-value", f"blocker `{id}` is silent for `{other}`, which an adapter adds; allowed: core blockers"
            )
        _place(other, rules, ordered, (*above, id))
    ordered[id] = rules[id]


def _compiled(file: Mapping[str, Any], lists: Mapping[str, NamedList], made: Condition | None = None) -> Rule:
    """Return the rule of a file; ``made`` is its condition where that is code already."""
    report, when = file["report"], file["when"]
    names = ("id", "boundary", "title", "remedy", "portable", "status", "phase", "operator")
    try:
        return Rule(
            **{name: file[name] for name in names},
            adapter=file["id"].partition("/")[0] if "/" in file["id"] else None,
            raised=when == "raised",
            unless=tuple(file["unless"]),
            each=compile_reference(file["each"]) if file["each"] is not None else None,
            condition=made or (None if when in ("function", "raised") else compile_condition(when, lists)),
            field=Template(report["field"]),
            found=Template(report["found"]),
            allowed=tuple(Template(text) for text in report["allowed"]),
        )
    except ConditionError as wrong:
        raise InputError("policy-value", f"blocker `{file['id']}`: {wrong}") from wrong
