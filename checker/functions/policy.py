"""Does trusted configuration offer what the declaration asks for, and does an approval cover it?"""

from __future__ import annotations

from prespawn.policy.canonical import digest
from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT, Absent, Unknown

from ..approval import DRIVER, OPERATOR, SAME_USER, approver
from ..selection import workspace_name
from .finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..evaluate import View


def workspace_unknown(view: View) -> Iterator[Finding]:
    """No workspace of that name, or none named where the site knows several."""
    if isinstance(view.profile, Absent) or isinstance(view.profile.workspace, Absent):
        return
    if workspace_name(view.declaration, view.site) is None:
        found = view.declaration.workspace
        allowed = tuple(sorted(view.site.workspaces))
        yield Finding(field="workspace", found="nothing" if isinstance(found, Absent) else found, allowed=allowed)


def profile_not_activated(view: View) -> Iterator[Finding]:
    """A profile that this site has not switched on, or has pinned to another digest."""
    if isinstance(view.profile, Absent) or view.profile.id in view.site.activated:
        return
    id = view.profile.id
    pinned = any(entry.partition("@")[0] == id for entry in view.site.activated)
    found = f"{id}@{digest(encode(view.profile))}" if pinned else id
    if found not in view.site.activated:
        yield Finding(field="profile", found=found, allowed=view.site.activated)


def adapter_profile_not_allowed(view: View) -> Iterator[Finding]:
    """A pair that the site does not list, or that the adapter itself does not support."""
    if isinstance(view.profile, Absent) or isinstance(view.adapter, Absent):
        return
    pairs = [(pair.adapter, pair.profile) for pair in view.site.pairs]
    if (view.adapter.id, view.profile.id) not in pairs or view.profile.id not in view.adapter.profiles:
        allowed = tuple(f"{adapter} with {profile}" for adapter, profile in pairs)
        yield Finding(field="profile", found=f"{view.adapter.id} with {view.profile.id}", allowed=allowed)


def profile_not_activatable(view: View) -> Iterable[Finding] | Unknown:
    """A profile whose required evidence is not on this host, or with claims that no launcher can prove yet."""
    if isinstance(view.profile, Absent):
        return ()
    evidence = view.facts.evidence
    if isinstance(evidence, Unknown):
        return evidence
    missing = [
        f"no evidence `{kind}` on this host" for kind in view.profile.activation.requires if kind not in evidence
    ]
    if view.profile.proves:
        missing.append(f"claims that no launcher here proves: {', '.join(view.profile.proves)}")
    return tuple(Finding(field="profile", found=found, allowed=()) for found in missing)


def caller_profile_mismatch(view: View) -> Iterator[Finding | Unknown]:
    """A driver of a kind that the site binds to another profile, or that it does not know."""
    caller, callers = view.facts.caller, view.site.callers
    if isinstance(caller, Absent) or isinstance(view.profile, Absent):
        return
    if isinstance(caller, Unknown):
        yield caller
    elif caller not in callers:
        yield Finding(field="caller", found=caller, allowed=tuple(sorted(callers)))
    elif callers[caller] != view.profile.id:
        yield Finding(field="profile", found=f"{view.profile.id} for {caller}", allowed=(callers[caller],))


def request_field_not_taken(view: View) -> Iterator[Finding]:
    """A part of the declaration that the adapter would silently ignore."""
    if isinstance(view.adapter, Absent):
        return
    for name, part in (("argv", "execution"), ("input", "input"), ("model", "model"), ("session", "session")):
        if getattr(view.declaration, part) is not ABSENT and name not in view.adapter.takes:
            yield Finding(field=part, found=f"a field that {view.adapter.id} does not take", allowed=view.adapter.takes)


def approval_mismatch(view: View) -> Iterator[Finding]:
    """An approval of another run, another declaration, another policy or another set of blockers."""
    approval = view.approval
    if isinstance(approval, Absent):
        return
    for name, now in view.expected.items():
        approved = approval.run_id if name == "run_id" else approval.digests.get(name, "nothing")
        if approved != now:
            allowed = now if name == "run_id" else "the digest that the present verdict shows"
            yield Finding(field=f"approval.{name}", found=approved, allowed=(allowed,))


def approver_not_allowed(view: View) -> Iterator[Finding | Unknown]:
    """The driver in the operator's place, where the site has not put it there; the run's own user, where it may not."""
    approval, rule = view.approval, view.site.approvals
    if isinstance(approval, Absent):
        return
    if approval.origin == DRIVER and rule.driver_may_approve != "blocker-free":
        yield Finding(field="approval.origin", found=approval.origin, allowed=(OPERATOR,))
    elif approval.origin == DRIVER and approval.accepts:
        yield Finding(field="approval.accepts", found=approval.accepts, allowed=("nothing that is unknown",))
    if not rule.require_separate_approver:
        return
    for uid in (view.facts.host.uid, view.facts.host.worker_uid):
        if isinstance(uid, Unknown):
            yield uid
            return
    if approver(approval, view.facts.host) == SAME_USER:
        yield Finding(field="approval.uid", found=approval.uid, allowed=("a user that the run does not have",))


def approval_expired(view: View) -> Iterable[Finding] | Unknown:
    """An approval whose time is over, or has not come."""
    approval, now = view.approval, view.facts.now
    if isinstance(approval, Absent):
        return ()
    if isinstance(now, Unknown):
        return now
    if approval.approved_at <= now < approval.expires_at:
        return ()
    span = f"from {approval.approved_at} to before {approval.expires_at}"
    return (Finding(field="approval.expires_at", found=now, allowed=(span,)),)


FUNCTIONS = (
    workspace_unknown,
    profile_not_activated,
    adapter_profile_not_allowed,
    profile_not_activatable,
    caller_profile_mismatch,
    request_field_not_taken,
    approval_mismatch,
    approver_not_allowed,
    approval_expired,
)
