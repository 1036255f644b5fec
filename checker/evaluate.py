"""Ask every rule about one run.

Nothing stops at the first reason: all rules are evaluated and what they found is sorted. A rule that crashes is the
blocker ``internal-error`` on the boundary that it was to guard, which nobody can accept.
"""

from __future__ import annotations

from prespawn.policy.canonical import canonical
from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT, Absent, Unknown
from prespawn.policy.record import Record

from .functions import FUNCTIONS
from .verdict import Blocker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prespawn.blockers.answers import Answer
    from prespawn.blockers.conditions import Condition
    from prespawn.blockers.rule import Rule
    from prespawn.policy.adapter import Adapter
    from prespawn.policy.levels import Levels
    from prespawn.policy.lists import NamedList
    from prespawn.policy.profile import Profile
    from prespawn.policy.site import Site

    from .approval import Approval
    from .declaration import Declaration
    from .facts import Facts, WorkspaceFact
    from .functions.finding import Finding
    from .verdict import LevelResult

INTERNAL_ERROR = "internal-error"


class View:
    """What conditions and functions read; ``item`` is the element that a rule with ``each`` is asked about."""

    __slots__ = (
        "adapter", "approval", "checked", "declaration", "expected", "facts", "index", "item", "level", "levels",
        "lists", "profile", "site", "unknown",
    )  # fmt: skip

    def __init__(
        self, *, declaration: Declaration, facts: Facts, profile: Profile | Absent, site: Site,
        adapter: Adapter | Absent, approval: Approval | Absent, levels: Levels, lists: Mapping[str, NamedList],
        checked: WorkspaceFact | Absent,
    ) -> None:  # fmt: skip
        self.declaration, self.facts, self.profile, self.site = declaration, facts, profile, site
        self.adapter, self.approval, self.levels, self.lists = adapter, approval, levels, lists
        self.checked = checked
        self.item: object = ABSENT
        self.index: int | None = None
        self.unknown: tuple[str, ...] = ()
        self.expected: Mapping[str, object] = {}
        self.level: LevelResult


def evaluate(rules: Iterable[Rule], view: View, failed: set[tuple[str, str]]) -> list[Blocker]:
    """Return what these rules found, unsorted.

    ``failed`` collects which of them failed for which element: see ``_element``.
    """
    blockers: list[Blocker] = []
    found: Iterable[Blocker]
    for rule in rules:
        try:
            condition = rule.condition
            if condition is None:
                found = _of_function(rule, FUNCTIONS[rule.id](view), view)
            elif rule.each is not None:
                found = _of_each(rule, condition, rule.each(view), view)
            elif (answer := condition(view)) is False:
                continue  # nearly always: half of a decision is this line
            else:
                found = _answered(rule, answer, view)
            for blocker in found:
                if _stands(rule, blocker, view, failed):
                    blockers.append(blocker)
        except Exception as crash:  # noqa: BLE001  # whatever it is, it must block and not escape: invariant 1
            blockers.append(internal_error(rule.id, crash, rule.boundary))
            view.item, view.index = ABSENT, None  # it may have crashed among its elements
    return blockers


def internal_error(where: str, crash: BaseException, boundary: str = "policy") -> Blocker:
    """Return the blocker for a crash; the exception's own words are left out, they may quote a value."""
    return Blocker(
        id=INTERNAL_ERROR, boundary=boundary, field=where, found=type(crash).__name__, allowed=(),
        because="fail", reason="", operator="never",
    )  # fmt: skip


def ordered(blockers: Iterable[Blocker]) -> tuple[Blocker, ...]:
    """Return blockers sorted by id and place, so that the order of keys and rules never shows."""
    return tuple(sorted(blockers, key=lambda blocker: (blocker.id, blocker.field, canonical(blocker))))


def _stands(rule: Rule, blocker: Blocker, view: View, failed: set[tuple[str, str]]) -> bool:
    """Say whether a finding stands: not where a more special rule failed for the same element.

    A rule that is silent has failed all the same and keeps the less special ones silent. Otherwise they would speak as
    long as something more special than both failed, and losing that evidence would remove them: invariant 4.
    """
    element = _element(blocker, view)
    if blocker.because == "fail":
        failed.add((rule.id, element))
    return not any((id, element) in failed or (id, element.partition("[")[0]) in failed for id in rule.unless)


def _element(blocker: Blocker, view: View) -> str:
    """Return what a blocker is about: the first part of its field, with its place in the list.

    The place alone tells elements apart: a name may hold a dot, and where it is unknown it is the same word for all.
    """
    element = blocker.field.partition(".")[0]
    place = "" if view.index is None else f"[{view.index}]"
    return element if element.endswith(place) else element + place


def _of_each(rule: Rule, condition: Condition, items: Iterable[object] | Unknown, view: View) -> Iterable[Blocker]:
    if isinstance(items, Unknown):
        return _answered(rule, items, view)
    return _of_elements(rule, condition, items, view) if items else ()


def _of_elements(rule: Rule, condition: Condition, items: Iterable[object], view: View) -> Iterator[Blocker]:
    for view.index, view.item in enumerate(items):
        answer = condition(view)
        if answer is not False:
            yield from _answered(rule, answer, view)
    view.item, view.index = ABSENT, None


def _answered(rule: Rule, answer: Answer, view: View) -> tuple[Blocker, ...]:
    if answer is True:
        return (_blocker(rule, view, "fail", ""),)
    if isinstance(answer, Unknown):
        return (_blocker(rule, view, "unknown", answer.reason),)
    return ()


def _of_function(rule: Rule, answer: Iterable[Finding | Unknown] | Unknown, view: View) -> Iterable[Blocker]:
    if not answer:
        return ()
    return [_found(rule, finding, view) for finding in ((answer,) if isinstance(answer, Unknown) else answer)]


def _found(rule: Rule, finding: Finding | Unknown, view: View) -> Blocker:
    if isinstance(finding, Unknown):
        return _blocker(rule, view, "unknown", finding.reason)
    return _blocker(rule, view, "fail", "").replace(**dict(finding))


def _blocker(rule: Rule, view: View, because: str, reason: str) -> Blocker:
    return Blocker(
        id=rule.id,
        boundary=rule.boundary,
        field=str(rule.field.fill(view)).replace("[]", "" if view.index is None else f"[{view.index}]"),
        found=_plain(rule.found.fill(view)) if because == "fail" else None,
        allowed=tuple(_plain(text.fill(view)) for text in rule.allowed),
        because=because,
        reason=reason,
        operator=rule.operator,
    )


def _plain(value: object) -> object:
    """Return what may stand in a verdict: JSON, with records that are no JSON value left out."""
    return None if isinstance(value, Record) else encode(value)
