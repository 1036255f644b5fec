"""The gate: what a driver calls.

``check`` looks at the host once and asks the pure checker; ``preview`` shows what an allowed verdict would start;
``launch`` looks again with every descriptor held, takes the approval into account, and starts the run or says what
stands in its way. Being blocked is an answer; an exception says that the input is wrong (``InputError``) or that the
host failed after the approval (``HostError``).

Example::

    gate = Gate.load(site="site.yaml")
    verdict = gate.check(declaration)
    if verdict.allowed:
        approval = gate.approve(verdict, reason="reviewed")
        run = gate.launch(verdict, approval=approval)
"""

from __future__ import annotations

import time

from prespawn.checker.admission import Refused, admit
from prespawn.checker.approval import Approval
from prespawn.checker.check import Checker, declaration_invalid
from prespawn.checker.declaration import Declaration
from prespawn.checker.selection import profile_of
from prespawn.checker.verdict import Verdict
from prespawn.policy.errors import HostError
from prespawn.policy.filters import NO_FILTER, shipped_filter
from prespawn.policy.known import ABSENT, Absent
from prespawn.policy.record import Record

from .approving import typed
from .enforcers import ALWAYS, LAUNCHERS, LOCAL
from .facts import gather
from .facts.environment import values
from .registry import generated_run_id, standing
from .words import blocker_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from prespawn.checker.contract import ContractResult
    from prespawn.checker.facts import AttestationFact, Facts, ReplayedFacts, WorkspaceFact
    from prespawn.checker.verdict import Blocker
    from prespawn.policy.bundle import Policy
    from prespawn.policy.filters import Filter

    from .facts import Held
    from .follow import Progress
    from .outcome import Outcome
    from .pumps import Streams
    from .recover import Recovered
    from .registry import Standing
    from .trusted import Trusted

TAKEN = ("approval-used", "run-id-reused")  # what the registry alone decides, in the transaction that takes it


class Checked(Verdict):
    """A verdict with what it was reached on, so that it can be launched; None for what was no declaration at all.

    ``document`` holds neither.
    """

    declaration: Declaration | None
    facts: Facts | None


class Run(Record):
    """What became of a launch: ``outcome`` is None where something stood in its way, and ``verdict`` says what.

    Of a run that was released it is the verdict on the held process, with the strength of what was seen of it.
    ``contract`` is what came of its file contract, None where nothing of its work ran; how it exited says nothing of
    that. ``unrecorded`` is the id of the error because of which the end could not be written down: it is known to the
    caller alone then, and to nobody who asks later.
    """

    run_id: str | None
    verdict: Verdict
    outcome: Outcome | None
    contract: ContractResult | None = None
    unrecorded: str | None = None


class Gate:
    """One site's gate; safe to share between threads, as nothing in it changes."""

    def __init__(self, trusted: Trusted, caller: str | None = None) -> None:
        self._trusted, self._caller = trusted, caller
        self._checker = Checker(trusted.policy, trusted.rules)

    @classmethod
    def load(
        cls, site: str | None = None, *, workspaces: Mapping[str, str] | None = None, caller: str | None = None
    ) -> Self:
        """Return the gate of a site file, of the one found in the usual places, or of the built-in site.

        ``workspaces`` sets the root of named workspaces for this process, as a driver does for a fresh checkout;
        ``caller`` is the kind of driver that asks, of those for which the site has one profile each.
        ``ReadError`` if a trusted file is wrong or could have been written by somebody else.
        """
        from .trusted import load

        return cls(load(site, {} if workspaces is None else workspaces), caller)

    @property
    def policy(self) -> Policy:
        """All trusted data of this gate."""
        return self._trusted.policy

    @property
    def trusted(self) -> Trusted:
        """What the gate was made from."""
        return self._trusted

    def reviewing(self, profile: str, vector: tuple[str, ...], *, toolchains: tuple[str, ...] = ()) -> Gate:
        """Return a gate for what a person typed and so reviewed: ``exec``'s vector, and directories that it may see."""
        return Gate(self._trusted.reviewing(profile, vector, toolchains), self._caller)

    def check(
        self,
        declared: object,
        *,
        caller_env: Mapping[str, str] | None = None,
        extra_path: tuple[str, ...] = (),
    ) -> Checked:
        """Return the verdict on a declaration, a model or any Python value, on freshly gathered facts.

        ``caller_env`` are variables that the operator passes on by name, ``extra_path`` directories (relative ones
        below the workspace) in which programs are looked for first.
        """
        declaration = self._admitted(declared)
        if isinstance(declaration, Verdict):
            return _checked(declaration, None, None)
        with self._gathered(declaration, caller_env, extra_path) as held:
            return _checked(self._checker.check(declaration, held.facts), declaration, held.facts)

    def check_replayed(self, declared: object, facts: ReplayedFacts) -> Verdict:
        """Return the verdict on recorded facts: the same bytes as where they were recorded, and never a plan.

        What facts of this declaration would hold and these do not is unknown.
        """
        from prespawn.checker.fitting import fitted

        declaration = self._admitted(declared)
        if isinstance(declaration, Verdict):
            return declaration
        return self._checker.check(declaration, fitted(facts, declaration, self.policy))

    def preview(self, checked: Checked, *, run_id: str = "preview") -> tuple[str, ...]:
        """Return the command line that an approved run would amount to, environment values left out."""
        from prespawn.checker.approve import draft
        from prespawn.launchers import bwrap, local

        declaration = checked.declaration
        if declaration is None:
            raise ValueError("only a declaration has a preview")
        with self._gathered(declaration, None, ()) as held:
            plan = draft(
                declaration, self.policy, held.facts, checked,
                run_id=run_id, values=self._values(declaration, {}), search_path=held.search_path,
                filter=self._filter(declaration, held.facts),
            )  # fmt: skip
        if plan.launcher == LOCAL:
            return local.described(local.invocation(plan))
        return bwrap.described(bwrap.invocation(plan))

    def approve(
        self, checked: Verdict, *, reason: str, operator: str | None = None,
        accepts: tuple[str, ...] = (), seconds: int | None = None,
        declaration: Declaration | None = None, facts: Facts | None = None,
    ) -> Approval:  # fmt: skip
        """Approve one run of exactly what this verdict is about: written down where the site has its approvals.

        ``operator`` is the name of who decides, the caller's by the password database if None; the word ``driver``
        says that nobody did but the driver, for verdicts without blockers where the site lets it. ``accepts`` are ids
        of blockers that are unknown, to be accepted this once; ``seconds`` is how long the approval lasts, the
        site's time if None. ``declaration`` and ``facts`` are those of the verdict where it is no ``Checked`` one.

        ``NotApprovableError`` if something stands in the way that no approval removes, ``InputError`` for a word in
        ``accepts`` that is none of the unknown blockers, ``HostError`` if it cannot be written.
        """
        from .approving import approve

        return approve(self._trusted, self._checker, checked, reason, operator, accepts, seconds, declaration, facts)

    def approval_for(self, checked: Verdict) -> Approval | None:
        """Return the approval that was given for this verdict, the latest that is in time and was not used.

        Where there is none such, the one that comes nearest, so that what is wrong with it can be said; None if
        nobody approved this declaration. ``ReadError`` if what stands there is not to be believed.
        """
        from .approving import given_for

        return given_for(self._trusted, checked, int(time.time()))

    def launch(
        self,
        checked: Checked,
        *,
        approval: Approval | str | None = None,
        streams: Streams | None = None,
        cancel: int | None = None,
        caller_env: Mapping[str, str] | None = None,
        extra_path: tuple[str, ...] = (),
    ) -> Run:
        """Look again, and start the run if nothing stands in its way; return when no process of it is left.

        ``approval`` is one that ``approve`` returned, an id, or a path; believed is what stands in the site's
        directory under that id, and nothing else. It starts one run, whoever else has it. ``streams`` are the caller's
        side of the worker's standard streams, ``cancel`` a descriptor that becomes readable when the run is to end.

        ``ShortfallError`` if the held run is not what its plan means, any other ``HostError`` if the host fails before
        the worker's first instruction; the registry says then that the run never started. ``ReadError`` for an approval
        that is not to be believed, ``TypeError`` for what is none.
        """
        from .approving import believed

        declaration, facts = checked.declaration, checked.facts
        if declaration is None or facts is None:
            return Run(run_id=None, verdict=checked, outcome=None)
        given = None if approval is None else believed(self._trusted, approval)
        registry = standing(self._trusted.state_dir, declaration.run_id, None if given is None else given.id)
        if given is not None:
            given = given.replace(used=registry.approval_used)
        with self._gathered(declaration, caller_env, extra_path, registry) as held:
            return self._launched(held, declaration, given, facts.workspace, streams, cancel, caller_env)

    def launch_typed(
        self,
        declared: object,
        *,
        operator: str,
        streams: Streams | None = None,
        cancel: int | None = None,
        caller_env: Mapping[str, str] | None = None,
        extra_path: tuple[str, ...] = (),
    ) -> Run:
        """Check and start what a person typed, on one look at the host: typing it was the approval.

        Arguments and errors are those of ``check`` and ``launch``; the run's verdict is a ``Checked`` one.
        """
        declaration = self._admitted(declared)
        if isinstance(declaration, Verdict):
            return Run(run_id=None, verdict=_checked(declaration, None, None), outcome=None)
        with self._gathered(declaration, caller_env, extra_path) as held:
            checked = self._checker.check(declaration, held.facts)
            now: int = held.facts.now  # a second may have begun since, and nothing is approved before it is looked at
            approval = typed(self._trusted, checked, now, operator)
            run = self._launched(held, declaration, approval, held.facts.workspace, streams, cancel, caller_env)
            return run.replace(verdict=_checked(run.verdict, declaration, held.facts))

    def _launched(
        self, held: Held, declaration: Declaration, approval: Approval | None, workspace: WorkspaceFact | Absent,
        streams: Streams | None, cancel: int | None, caller_env: Mapping[str, str] | None,
    ) -> Run:  # fmt: skip
        given = ABSENT if approval is None else approval
        verdict = self._checker.check(declaration, held.facts, phase="launch", approval=given, checked=workspace)
        if not verdict.allowed or approval is None:
            return Run(run_id=verdict.run_id, verdict=verdict, outcome=None)
        try:
            return self._started(held, declaration, approval, verdict, workspace, streams, cancel, caller_env)
        except HostError as failed:
            # somebody was faster, between the look and the registry's own word: nothing was begun
            if failed.id not in TAKEN or (failed.id == "run-id-reused" and verdict.run_id is None):
                raise
            if failed.id == "approval-used":
                given = approval.replace(used=True)
                facts = held.facts
            else:
                facts = held.facts.replace(run_id_used=True)
        verdict = self._checker.check(declaration, facts, phase="launch", approval=given, checked=workspace)
        return Run(run_id=verdict.run_id, verdict=verdict, outcome=None)

    def _started(
        self, held: Held, declaration: Declaration, approval: Approval, verdict: Verdict,
        workspace: WorkspaceFact | Absent, streams: Streams | None, cancel: int | None,
        caller_env: Mapping[str, str] | None,
    ) -> Run:  # fmt: skip
        from prespawn.checker.approve import approve

        from .launch import started

        run_id = verdict.run_id or generated_run_id(int(time.time()))
        values = self._values(declaration, {} if caller_env is None else caller_env)
        plan = approve(
            declaration, self.policy, held.facts, verdict, approval,
            run_id=run_id, values=values, search_path=held.search_path, filter=self._filter(declaration, held.facts),
        )  # fmt: skip

        def judge(seen: AttestationFact) -> Verdict:
            facts = held.facts.replace(attestation=seen)
            return self._checker.check(declaration, facts, phase="launch", approval=approval, checked=workspace)

        ended = started(plan, self._trusted.state_dir, held, streams, cancel, judge)
        return Run(
            run_id=run_id, verdict=ended.verdict or verdict, outcome=ended.outcome, contract=ended.contract,
            unrecorded=ended.unrecorded,
        )  # fmt: skip

    def follow(self, run_id: str) -> Iterator[Progress]:
        """Yield state and bytes of one of this site's runs, now and at every change, until it has ended.

        Any process of the site's owner may follow; nothing of the run waits for it. ``InputError`` ``run-unknown``.
        """
        from .follow import follow

        return follow(self._trusted.state_dir, run_id)

    def recover(self) -> Recovered:
        """Settle every run whose parent was killed before it could: each gets one true end, and nothing is left of it.

        ``HostError`` if that cannot be done; runs whose parent still runs are that parent's, and stay as they are.
        """
        from .approvals import Approvals
        from .recover import recover

        done = recover(self._trusted.state_dir)
        approvals = Approvals.open(self._trusted)
        if approvals is None:
            return done
        with approvals:
            return done.replace(swept=(*done.swept, *approvals.sweep()))

    @property
    def remedies(self) -> Mapping[str, str]:
        """What the author can change, by blocker id."""
        return self._trusted.remedies

    def explain(self, blocker: Blocker) -> str:
        """Return the line of one blocker: the value found, the values allowed, the remedy."""
        return blocker_text(blocker, self.remedies[blocker.id])

    def _values(self, declaration: Declaration, caller_env: Mapping[str, str]) -> dict[str, str]:
        profile = profile_of(declaration, self.policy)
        fixed = {} if isinstance(profile, Absent) else profile.environment.fixed
        return values(declaration.env_keys, fixed, self.policy.site.env, caller_env)

    def _filter(self, declaration: Declaration, facts: Facts) -> Filter | None:
        """Return the filter of system calls for an allowed run; on a machine without a table none is allowed."""
        profile = profile_of(declaration, self.policy)
        if isinstance(profile, Absent) or profile.process.seccomp == NO_FILTER:
            return None
        return shipped_filter(profile.process.seccomp, facts.host.machine)

    def _admitted(self, declared: object) -> Declaration | Verdict:
        if isinstance(declared, Declaration):
            return declared
        admitted = admit(declared, self._trusted.declaration_keys, self._trusted.forbidden)
        if isinstance(admitted, Refused):
            return declaration_invalid(self.policy, admitted.found, admitted.field)
        return admitted

    def _gathered(
        self, declaration: Declaration, caller_env: Mapping[str, str] | None, extra_path: tuple[str, ...],
        registry: Standing | None = None,
    ) -> Held:  # fmt: skip
        registry = registry or standing(self._trusted.state_dir, declaration.run_id)
        profile = profile_of(declaration, self.policy)
        return gather(
            declaration,
            self.policy,
            now=int(time.time()),
            run_id_used=registry.run_id_used,
            registry=registry.registry,
            most_entries=0 if isinstance(profile, Absent) else profile.limits.tree_entries,
            launchers=LAUNCHERS,
            always=ALWAYS,
            caller_env=caller_env,
            extra_path=extra_path,
            site_file=self._trusted.site_file,
            caller=self._caller,
        )


def _checked(verdict: Verdict, declaration: Declaration | None, facts: Facts | None) -> Checked:
    return Checked(declaration=declaration, facts=facts, **dict(verdict))
