"""The checker's inputs for tests: the shipped policy and blockers, and the base that every case starts from.

Plain values come in (``support.cases`` makes them of a case), records and a verdict come out. Nothing here looks at the
host, and the admission is the gate's own.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from prespawn.blockers.rule import shipped_rules
from prespawn.checker.admission import Refused, admit
from prespawn.checker.approval import Approval
from prespawn.checker.check import Checker, declaration_invalid
from prespawn.checker.facts import Facts, WorkspaceFact
from prespawn.compile import BLOCKERS, blocker_files, document
from prespawn.policy import catalogue, shipped
from prespawn.policy.bundle import Policy
from prespawn.policy.canonical import digest
from prespawn.policy.codec import decode
from prespawn.policy.known import ABSENT
from prespawn.policy.profile import Profile
from prespawn.policy.shape import normalise
from prespawn.policy.site import site_of

from .cases import case_input

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from prespawn.blockers.rule import Rule
    from prespawn.checker.declaration import Declaration
    from prespawn.checker.verdict import Verdict
    from prespawn.policy.adapter import Adapter
    from prespawn.policy.known import Absent
    from prespawn.policy.levels import Levels
    from prespawn.policy.site import Site

    Plain = dict[str, Any]

LISTS = catalogue.named_lists()
LEVELS = catalogue.levels()
ADAPTERS = catalogue.adapters()
PROFILES = catalogue.profiles()
RULES = shipped_rules(LISTS)
KEYS = catalogue.table("declaration/v1")
FORBIDDEN = frozenset(LISTS["forbidden-fields"].names)
_SITE = catalogue.table("site/v1")
_BLOCKER = catalogue.table("blocker/v1")


@cache
def _base() -> Plain:
    base = document(BLOCKERS / "base.yaml").value
    assert isinstance(base, dict)
    return base


def base() -> Plain:
    """Return a copy of the base: an allowed declaration, a site, the facts of a host that shows everything."""
    return copy.deepcopy(_base())


def base_profile() -> Plain:
    """Return a copy of the shipped profile that the base declares, normalised."""
    plain: Plain = copy.deepcopy(shipped.PROFILES[_base()["declaration"]["profile"]])
    return plain


def plain(case: Mapping[str, Any] | None = None) -> Plain:
    """Return the plain values of a case, or of the base alone."""
    return case_input(_base(), base_profile(), {} if case is None else case)


def pages(paths: Sequence[Path] | None = None) -> dict[str, Plain]:
    """Return blocker files by id, the shipped ones or those of the paths; what a case leaves out is filled in."""
    read = (document(path).value for path in (blocker_files() if paths is None else paths))
    normal = (normalise(value, _BLOCKER) for value in read)
    return {page["id"]: page for page in normal}


class World:
    """One input, decoded; ``declaration`` says why it is none where the admission refuses it."""

    def __init__(
        self, values: Plain, *, rules: Sequence[Rule] = RULES, levels: Levels = LEVELS,
        adapters: Mapping[str, Adapter] | None = None,
    ) -> None:  # fmt: skip
        self.site = site(values["site"])
        self.profile = decode(Profile, values["profile"], unknowns=False)
        profiles = {**PROFILES, self.profile.id: self.profile}
        self.policy = Policy(
            site=self.site, profiles=profiles, adapters=ADAPTERS if adapters is None else adapters, levels=levels,
            lists=LISTS, digest=digest([self.site, self.profile]),
        )  # fmt: skip
        self.checker = Checker(self.policy, rules)
        self.declaration = admit(values["declaration"], KEYS, FORBIDDEN)
        self.facts = facts(values["facts"], self.declaration)
        self.checked = decode(WorkspaceFact, values["checked"]) if values.get("checked") else ABSENT
        self._approval = values["approval"]

    @property
    def admitted(self) -> Declaration:
        """The declaration of an input that is known to be one."""
        assert not isinstance(self.declaration, Refused)
        return self.declaration

    def check(self, phase: str = "check", *, approval: Approval | Absent | None = None) -> Verdict:
        """Return the verdict of one pass, as the gate comes to it; ``approval`` in place of the input's own."""
        if isinstance(self.declaration, Refused):
            return declaration_invalid(self.policy, self.declaration.found, self.declaration.field)
        given = self.approval() if approval is None else approval
        return self.checker.check(self.declaration, self.facts, phase=phase, approval=given, checked=self.checked)

    def approval(self) -> Approval | Absent:
        """Return the input's approval; what it does not say is bound to the verdict of the first pass."""
        if self._approval is None:
            return ABSENT
        seen = self.checker.check(self.admitted, self.facts).digests
        bound = {name: seen[name] for name in ("declaration", "policy", "blockers")}
        run_id = self.admitted.run_id
        fields: Plain = {"run_id": run_id if isinstance(run_id, str) else None, **self._approval}
        fields["digests"] = {**bound, **self._approval["digests"]}
        return decode(Approval, fields, unknowns=False)


def site(values: Plain) -> Site:
    """Return the site of a ``site/v1`` mapping."""
    normal: Plain = normalise(values, _SITE)
    return site_of({name: value for name, value in normal.items() if name != "prespawn"})


def facts(values: Plain, of: Declaration | Refused) -> Facts:
    """Return the facts of a ``facts/v1`` mapping; those that do not say so are about this declaration."""
    fields = {name: value for name, value in values.items() if name != "prespawn"}
    fields.setdefault("declaration", "" if isinstance(of, Refused) else of.digest)
    return decode(Facts, fields)


def verdict_of(case: Mapping[str, Any]) -> Verdict:
    """Return the verdict that a case of a blocker's file leads to."""
    return World(plain(case)).check(case["phase"])
