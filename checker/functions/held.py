"""Is the held run what its plan means? The look at it is a fact; here each difference becomes a reason to end it."""

from __future__ import annotations

from prespawn.policy.known import Absent, Unknown

from .finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..evaluate import View


def attestation_mismatch(view: View) -> Iterator[Finding | Unknown]:
    """The kernel's records of the held process are not what the plan means, or could not be read.

    Before anything is held there is nothing to ask. A look that saw nothing is no agreement.
    """
    fact = view.facts.attestation
    if isinstance(fact, Absent):
        return
    if isinstance(fact, Unknown):
        yield fact
        return
    if isinstance(fact.differences, Unknown):
        yield fact.differences
        return
    if isinstance(fact.attested, Unknown) or not fact.attested:
        yield Unknown(reason="nothing of the held process was compared with the plan")
    for one in fact.differences:
        if one.reason:
            yield Unknown(reason=f"{one.field}: {one.reason}")
        else:
            yield Finding(field=one.field, found=one.seen, allowed=(one.expected,))


FUNCTIONS = (attestation_mismatch,)
