"""What the differences of a held run leave of a claim: its result, and the strength of what it rests on. Pure.

The fields of a claim are data (``policy/levels.yaml``): a claim holds where all that lies below its fields agrees, at
the weakest strength among them, and a field below which nothing was compared supports nothing.
"""

from __future__ import annotations

from prespawn.policy.known import Unknown
from prespawn.policy.levels import STRENGTHS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .facts import AttestationFact, Difference


def support(fact: AttestationFact, fields: Iterable[str]) -> tuple[str, str]:
    """Return result and strength for a claim that rests on some fields."""
    results, strengths = ["pass"], [STRENGTHS[-1]]
    for field in fields:
        found = _strengths(fact, field)
        strengths += found or [STRENGTHS[0]]
        if not found:
            results.append("unknown")
        results += _answers(fact, field)
    result = next(word for word in ("fail", "unknown", "pass") if word in results)
    return result, min(strengths, key=STRENGTHS.index)


def _answers(fact: AttestationFact, field: str) -> list[str]:
    if isinstance(fact.differences, Unknown):
        return ["unknown"]
    return [because(one) for one in fact.differences if touches(one.field, field)]


def because(difference: Difference) -> str:
    """Return ``fail`` for what was looked at, ``unknown`` for what could not be."""
    return "unknown" if difference.reason else "fail"


def touches(field: str, other: str) -> bool:
    """Say whether one of two fields is the other, or lies below it."""
    return field == other or field.startswith(f"{other}.") or other.startswith(f"{field}.")


def _strengths(fact: AttestationFact, field: str) -> list[str]:
    return [
        strength
        for strength, fields in (("attested", fact.attested), ("observed", fact.observed), ("declared", fact.declared))
        if not isinstance(fields, Unknown) and any(touches(one, field) for one in fields)
    ]
