"""Who approves, and which approval is meant: between a verdict, the operator's words and the directory of approvals.

An approval is written only if it would be believed now: the checker is asked with it, on the facts of the verdict, and
whatever then stands is what no approval removes. Naming the unknown blockers that are accepted also accepts the one
that only lists them (``isolation-level-unknown``); naming that one alone accepts exactly those that it lists.
"""

from __future__ import annotations

import os
import time

from prespawn.checker.approval import DRIVER, OPERATOR, TYPED, Approval
from prespawn.policy.errors import InputError, NotApprovableError
from prespawn.policy.units import MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from prespawn.checker.check import Checker
    from prespawn.checker.declaration import Declaration
    from prespawn.checker.facts import Facts
    from prespawn.checker.verdict import Verdict

    from .trusted import Trusted

LEVEL_UNKNOWN = "isolation-level-unknown"
_LONGEST_REASON = 1000  # characters, as the format has it
_BOUND = ("declaration", "policy", "blockers")


def approve(
    trusted: Trusted, checker: Checker, checked: Verdict, reason: str, operator: str | None,
    accepts: tuple[str, ...], seconds: int | None, declaration: Declaration | None, facts: Facts | None,
) -> Approval:  # fmt: skip
    """Write an approval and return it; see ``Gate.approve``."""
    from .approvals import Approvals, approval_id

    declaration = getattr(checked, "declaration", declaration)
    facts = getattr(checked, "facts", facts)
    if declaration is None or facts is None:
        raise NotApprovableError(checked.blockers[0].id, "there is nothing that could be approved", checked)
    now = int(time.time())
    approval = _given(trusted, checked, now, os.geteuid(), seconds).replace(
        id=approval_id(checked.digests["declaration"]), origin=DRIVER if operator == DRIVER else OPERATOR,
        operator=_name(os.geteuid()) if operator is None else _word("operator", operator, 200),
        reason=_word("reason", reason, _LONGEST_REASON), accepts=_accepted(checked, accepts),
    )  # fmt: skip
    verdict = checker.check(declaration, facts.replace(now=now), phase="execute", approval=approval)
    if not verdict.allowed:
        ids = ", ".join(f"`{id}`" for id in sorted({blocker.id for blocker in verdict.blockers}))
        message = f"an approval would not let this run start: {ids}"
        raise NotApprovableError(verdict.blockers[0].id, message, verdict)
    directory = Approvals.open(trusted, create=True)
    if directory is None:
        owner = trusted.policy.site.approvals.owner
        message = f"the site's approvals are those of uid {owner}, who has made no directory for them"
        raise InputError("usage", f"{message}; allowed: approvals by that user")
    with directory:
        directory.write(approval)
    return approval


def typed(trusted: Trusted, checked: Verdict, now: int, operator: str) -> Approval:
    """Return the approval that consists in having typed the command; it is of the moment that was looked at."""
    return _given(trusted, checked, now, os.geteuid(), None).replace(operator=operator, origin=TYPED)


def believed(trusted: Trusted, wanted: Approval | str) -> Approval | None:
    """Return what stands in the site's directory under an approval's id, None if nothing."""
    from .approvals import Approvals

    if not isinstance(wanted, (Approval, str)):
        raise TypeError(f"an approval, its id or its path is wanted, not {type(wanted).__name__}")
    id = wanted.id if isinstance(wanted, Approval) else wanted
    if id is None:
        return None
    directory = Approvals.open(trusted)
    if directory is None:
        return None
    with directory:
        return directory.read(id)


def given_for(trusted: Trusted, checked: Verdict, now: int) -> Approval | None:
    """Return the approval of a verdict that fits best; see ``Gate.approval_for``."""
    from .approvals import Approvals
    from .registry import standing

    if "declaration" not in checked.digests:
        return None
    directory = Approvals.open(trusted)
    if directory is None:
        return None
    with directory:
        found = list(directory.of(checked.digests["declaration"]))
    nearest = [one for one in found if _fits(one, checked)] or found
    for one in nearest:
        if one.approved_at <= now < one.expires_at and standing(trusted.state_dir, None, one.id).approval_used is False:
            return one
    return nearest[0] if nearest else None


def _given(trusted: Trusted, checked: Verdict, now: int, uid: int, seconds: int | None) -> Approval:
    lasting = trusted.policy.site.approvals.lifetime // 1000 if seconds is None else _seconds(seconds, MOST - now)
    bound = {name: checked.digests[name] for name in _BOUND if name in checked.digests}
    return Approval(
        run_id=checked.run_id, digests=bound, operator="", uid=uid, reason="typed", approved_at=now,
        expires_at=now + lasting,
    )  # fmt: skip


def _fits(approval: Approval, checked: Verdict) -> bool:
    return approval.run_id == checked.run_id and all(approval.digests[name] == checked.digests[name] for name in _BOUND)


def _accepted(checked: Verdict, accepts: Iterable[str]) -> tuple[str, ...]:
    """Return the ids that are accepted, sorted; a word among them that accepts nothing is a mistake."""
    named = set(accepts)
    unknown = {blocker.id for blocker in checked.blockers if blocker.because == "unknown"}
    open_to = {
        blocker.id for blocker in checked.blockers if blocker.because == "unknown" and blocker.operator == "once"
    }
    for word in sorted(named - open_to):
        failed = any(blocker.id == word for blocker in checked.blockers) and word not in unknown
        why = "failed" if failed else "is never accepted" if word in unknown else "is no blocker of this verdict"
        allowed = ", ".join(f"`{id}`" for id in sorted(open_to)) or "nothing, for nothing here is unknown"
        raise InputError("usage", f"`{word}` {why}; allowed here: {allowed}")
    if named == {LEVEL_UNKNOWN}:
        return tuple(sorted(open_to))
    if named and unknown - named == {LEVEL_UNKNOWN}:
        named.add(LEVEL_UNKNOWN)
    return tuple(sorted(named))


def _seconds(seconds: object, most: int) -> int:
    if type(seconds) is int and 1 <= seconds <= most:
        return seconds
    if type(seconds) is int and seconds < 1:
        raise InputError("usage", "an approval that is over at once approves nothing; allowed here: a second or more")
    raise InputError("usage", f"`seconds` is no number of seconds; allowed here: a whole number from 1 to {most}")


def _word(field: str, text: object, longest: int) -> str:
    if isinstance(text, str) and text.strip() and len(text) <= longest and text.isprintable():
        return text
    raise InputError("usage", f"`{field}` is no line of 1 to {longest} printable characters; say it in one")


def _name(uid: int) -> str:
    """Return the name of a user, from the password database alone: the environment says what its owner likes."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
