"""The decision itself: declaration, policy and facts in, verdict out.

1. The blockers of the ``check`` pass are asked; all of them, whatever the first one said, and those that the adapter
   adds. An adapter's blocker is never asked without the adapter, and none can silence a core one.
2. The claims are appraised from what they found, and the claims give the level: none, while anything is unknown.
3. The level's own blockers are asked: too little evidence, too much claimed, something nobody could look at.
4. For the later passes, the approval is compared with the digests of all that (``execute``), and what was looked at
   again with what was checked (``launch``); what an operator accepted of the unknown stops blocking, and nothing else.
5. Where a run of it is held already, the claims are appraised again on what was seen of it, and so is the level.

``check`` never raises: whatever goes wrong inside is the blocker ``internal-error``. Same inputs, same bytes. What
would make a check hollow is refused before the first one: see ``Checker``.
"""

from __future__ import annotations

from prespawn.blockers.rule import PHASES
from prespawn.policy.canonical import digest
from prespawn.policy.errors import InputError
from prespawn.policy.known import ABSENT, Absent

from .claims import STAGES, appraise, appraise_held, boundaries_not_claimed, level_of, scale
from .evaluate import View, evaluate, internal_error, ordered
from .functions import FUNCTIONS
from .functions.level import FUNCTIONS as LEVEL_FUNCTIONS
from .selection import adapter_of, profile_of, workspace_name
from .verdict import Blocker, LevelResult, Verdict, blocker_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prespawn.blockers.rule import Rule
    from prespawn.policy.bundle import Policy

    from .approval import Approval
    from .declaration import Declaration
    from .facts import Facts, WorkspaceFact
    from .verdict import ClaimResult

LEVEL_RULES = frozenset(function.__name__.replace("_", "-") for function in LEVEL_FUNCTIONS)
BEFORE, HELD, _ = STAGES
LEVEL_UNKNOWN = "isolation-level-unknown"


class Checker:
    """One policy with its rules, compiled and sorted by pass; nothing in it changes.

    ``InputError`` (``policy-value``) for rules with which a verdict would say less than it seems to: a rule that
    nothing answers, an adapter's blocker that is not there, a claim about a boundary that no rule asks about.
    """

    __slots__ = ("_added", "_by_pass", "_level_rules", "_not_claimed", "_scale", "_unknown_rules", "policy")

    def __init__(self, policy: Policy, rules: Sequence[Rule]) -> None:
        for fault in _faults(policy, rules):
            raise InputError("policy-value", fault)
        self.policy = policy
        self._scale = scale(policy.levels)
        self._not_claimed = {
            level.id: boundaries_not_claimed(policy.levels, level.id) for level in policy.levels.levels
        }
        self._level_rules = tuple(rule for rule in rules if rule.id in LEVEL_RULES - {LEVEL_UNKNOWN})
        self._unknown_rules = tuple(rule for rule in rules if rule.id == LEVEL_UNKNOWN)
        core = [rule for rule in rules if rule.adapter is None and rule.id not in LEVEL_RULES]
        self._by_pass = {phase: tuple(rule for rule in core if rule.phase == phase) for phase in PHASES}
        self._added: Mapping[str, Rule] = {rule.id: rule for rule in rules if rule.adapter is not None}

    def check(
        self,
        declaration: Declaration,
        facts: Facts,
        *,
        phase: str = "check",
        approval: Approval | Absent = ABSENT,
        checked: WorkspaceFact | Absent = ABSENT,
    ) -> Verdict:
        """Return the verdict of one pass; ``checked`` is the workspace as an earlier pass saw it."""
        policy = self.policy
        try:
            view = View(
                declaration=declaration, facts=facts, profile=profile_of(declaration, policy), site=policy.site,
                adapter=adapter_of(declaration, policy), approval=approval, levels=policy.levels, lists=policy.lists,
                checked=checked,
            )  # fmt: skip
            return self._decided(view, phase)
        except Exception as crash:  # noqa: BLE001  # total: a verdict for every input, invariant 1
            return refused(policy, internal_error("check", crash), phase)

    def _decided(self, view: View, phase: str) -> Verdict:
        failed: set[tuple[str, str]] = set()
        blockers = evaluate(self._rules("check", view), view, failed)
        claims = appraise(self._scale, view, blockers)
        self._level(view, claims, _unknown(blockers))
        blockers += evaluate(self._level_rules, view, failed)
        if (unknown := _unknown(blockers)) != view.unknown:
            self._level(view, claims, unknown)
        blockers += evaluate(self._unknown_rules, view, failed)
        digests = {
            "declaration": view.declaration.digest,
            "policy": self.policy.digest,
            "blockers": blocker_digest(ordered(blockers)),
        }
        accepted: tuple[str, ...] = ()
        if phase != "check":
            view.expected = {**_run_id(view.declaration), **digests}
            blockers, accepted = _accepting(blockers, view)
            blockers = self._later(phase, view, failed, claims, blockers)
        if phase == PHASES[-1] and not isinstance(view.facts.attestation, Absent):
            claims = appraise_held(self._scale, claims, view)
            view.level = level_of(self._scale, claims, view, HELD)
            blockers += [one for one in evaluate(self._level_rules, view, failed) if one not in blockers]
        digests["facts"] = digest(view.facts)
        return _verdict(view, phase, claims, ordered(blockers), accepted, digests, self._not_claimed)

    def _later(
        self, phase: str, view: View, failed: set[tuple[str, str]], claims: tuple[ClaimResult, ...],
        standing: list[Blocker],
    ) -> list[Blocker]:  # fmt: skip
        """Return what stands after the later passes; what is unknown there has been accepted by nobody."""
        found: list[Blocker] = []
        for later in PHASES[1 : PHASES.index(phase) + 1]:
            found += evaluate(self._rules(later, view), view, failed)
        if unknown := _unknown(found):
            lists = [one for one in standing if one.id == LEVEL_UNKNOWN and one.because == "unknown"]
            self._level(view, claims, tuple(sorted({*unknown, *(view.unknown if lists else ())})))
            standing = [one for one in standing if one not in lists]
            found += (one for one in evaluate(self._unknown_rules, view, failed) if one not in standing)
        return standing + found

    def _level(self, view: View, claims: tuple[ClaimResult, ...], unknown: tuple[str, ...]) -> None:
        view.unknown = unknown
        view.level = level_of(self._scale, claims, view, BEFORE)

    def _rules(self, phase: str, view: View) -> Sequence[Rule]:
        """Return the core rules of a pass, and those that this run's adapter adds to it."""
        added = () if isinstance(view.adapter, Absent) else (self._added[id] for id in view.adapter.blockers)
        return (*self._by_pass[phase], *(rule for rule in added if rule.phase == phase))


def refused(policy: Policy, blocker: Blocker, phase: str = "check", run_id: str | None = None) -> Verdict:
    """Return the verdict on something that could not be evaluated at all: one blocker, nothing claimed."""
    lowest = policy.levels.levels[0].id
    return Verdict(
        phase=phase, allowed=False, undecided=False, run_id=run_id, workspace=None, profile=None, adapter=None,
        level=LevelResult(requested=lowest, earned=lowest, attainable=lowest), claims=(), blockers=(blocker,),
        accepted=(), not_claimed=tuple(sorted(policy.levels.boundaries)), digests={"policy": policy.digest},
    )  # fmt: skip


def declaration_invalid(policy: Policy, found: str, field: str = "") -> Verdict:
    """Return the verdict on what is no declaration: not a mapping, or with unknown or missing keys."""
    allowed = ("a `declaration/v1` mapping of JSON values with the keys that it lists",)
    blocker = Blocker(
        id="declaration-invalid", boundary="policy", field=field, found=found, allowed=allowed,
        because="fail", reason="", operator="never",
    )  # fmt: skip
    return refused(policy, blocker)


def _faults(policy: Policy, rules: Sequence[Rule]) -> Iterator[str]:
    """Yield what these rules leave unasked, although the policy relies on it."""
    known = {rule.id for rule in rules}
    for rule in rules:
        if rule.condition is None and rule.id not in FUNCTIONS:
            yield f"blocker `{rule.id}` asks a function that the checker does not have"
    for adapter in policy.adapters.values():
        for id in adapter.blockers:
            if id not in known:
                yield f"adapter `{adapter.id}` adds the blocker `{id}`, which does not exist"
    asked = {rule.boundary for rule in rules if rule.phase == "check" and rule.adapter is None}
    for claim in (claim for level in policy.levels.levels for claim in level.claims):
        if claim.declared is None and claim.boundary not in asked:
            yield f"claim `{claim.id}` would pass unasked: no blocker is about the boundary `{claim.boundary}`"


def _unknown(blockers: Iterable[Blocker]) -> tuple[str, ...]:
    """Return the ids of what nobody could look at, sorted."""
    return tuple(sorted({blocker.id for blocker in blockers if blocker.because == "unknown"}))


def _run_id(declaration: Declaration) -> dict[str, object]:
    """Return what an approval must say of the run id: nothing where the parent will assign one."""
    return {} if isinstance(declaration.run_id, Absent) else {"run_id": declaration.run_id}


def _accepting(blockers: Iterable[Blocker], view: View) -> tuple[list[Blocker], tuple[str, ...]]:
    """Set aside what an operator accepted: only what is unknown, only ids that may be accepted once."""
    accepts = () if isinstance(view.approval, Absent) else view.approval.accepts
    standing, accepted = [], set()
    for blocker in blockers:
        if blocker.because == "unknown" and blocker.operator == "once" and blocker.id in accepts:
            accepted.add(blocker.id)
        else:
            standing.append(blocker)
    return standing, tuple(sorted(accepted))


def _verdict(
    view: View, phase: str, claims: tuple[ClaimResult, ...], blockers: tuple[Blocker, ...], accepted: tuple[str, ...],
    digests: dict[str, str], not_claimed: Mapping[str, tuple[str, ...]],
) -> Verdict:  # fmt: skip
    run_id = view.declaration.run_id
    return Verdict(
        phase=phase,
        allowed=not blockers,
        undecided=bool(blockers) and all(blocker.because == "unknown" for blocker in blockers),
        run_id=run_id if isinstance(run_id, str) else None,
        workspace=workspace_name(view.declaration, view.site),
        profile=None if isinstance(view.profile, Absent) else view.profile.id,
        adapter=None if isinstance(view.adapter, Absent) else view.adapter.id,
        level=view.level,
        claims=claims,
        blockers=blockers,
        accepted=accepted,
        not_claimed=not_claimed[view.level.earned],
        digests=digests,
    )
