"""What was seen against what the plan means: a table of differences. Pure.

Every place that is expected is looked for, every place that was seen is expected, and each that does not agree is one
``Difference`` with its field. What nobody could look at is one as well, and says why: it is no agreement.
What follows for the claims is ``support``'s.
"""

from __future__ import annotations

from prespawn.policy.codec import encode
from prespawn.policy.known import Unknown

from .expectation import ANYTHING, Anything, Expectation, SameAs
from .expected import READ_ONLY, Expected, bound, expected
from .facts import AttestationFact, Difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .seen import Seen

__all__ = ["Expected", "agrees", "attestation", "compare", "expected"]

NOTHING = "nothing"
_PLAIN = frozenset((str, int, bool, tuple, type(None)))
ATTESTED = ("payload", "init")  # of these two the fields are named one step deeper


def compare(expected: Expected, seen: Seen) -> tuple[Difference, ...]:
    """Return where a held run differs from its plan, sorted by field."""
    whole = {**seen.attested, **seen.observed, **seen.declared}
    found = _differences(_with_the_hosts_own(expected, whole), whole, "", whole)
    return tuple(sorted(found, key=lambda difference: difference.field))


def agrees(expected: object, found: object) -> bool:
    """Say whether one branch, which refers to no other, is what is expected of it."""
    return not _differences(expected, found, "", {})


def attestation(expected: Expected, seen: Seen) -> AttestationFact:
    """Return what the checker has to know of the look at a held run."""
    return AttestationFact(
        attested=tuple(_fields(seen.attested, expected.tree)),
        observed=tuple(_fields(seen.observed, expected.tree)),
        declared=tuple(_fields(seen.declared, expected.tree)),
        differences=compare(expected, seen),
    )


def _fields(branch: Mapping[str, object], expected: Mapping[str, object]) -> Iterator[str]:
    """Yield the fields of one strength that are compared with something."""
    for name in branch:
        of = expected.get(name, ANYTHING)
        if name in ATTESTED and isinstance(of, dict):
            yield from (f"{name}.{leaf}" for leaf, value in of.items() if _is_compared(value))
        elif _is_compared(of):
            yield name


def _is_compared(expected: object) -> bool:
    """Say whether anything is asked of a branch; of an empty one it is that nothing be there."""
    if isinstance(expected, dict) and expected:
        return any(map(_is_compared, expected.values()))
    return not isinstance(expected, Anything)


def _with_the_hosts_own(expected: Expected, whole: Mapping[str, object]) -> Mapping[str, object]:
    """Return what is expected, with the mounts that the host itself has below a system directory.

    Binding a directory brings them along. Whether one is the host's own is what ``sources`` says of the same place.
    """
    mounts, planned = whole.get("mounts"), expected.tree["mounts"]
    if not isinstance(mounts, dict) or not isinstance(planned, dict):
        return expected.tree
    below = [
        place for place in mounts if place not in planned and any(place.startswith(f"{at}/") for at in expected.system)
    ]
    own = {place: bound(READ_ONLY, SameAs(branch="sources", leaf=place)) for place in below}
    return {**expected.tree, "mounts": {**planned, **own}}


def _differences(expected: object, found: object, field: str, whole: Mapping[str, object]) -> list[Difference]:
    """Return the differences below one field."""
    if isinstance(expected, Anything):
        return []
    if isinstance(expected, dict) and isinstance(found, dict):
        return _of_branch(expected, found, field, whole)
    if isinstance(found, Unknown):
        return [_difference(expected, None, field, found.reason)]
    answer = expected.admits(found, whole) if isinstance(expected, Expectation) else expected == found
    if answer is True:
        return []
    return [_difference(expected, found, field, answer.reason if isinstance(answer, Unknown) else "")]


def _of_branch(
    expected: Mapping[str, object], found: Mapping[str, object], field: str, whole: Mapping[str, object]
) -> list[Difference]:
    """Return the differences of a branch; most places agree, and of these the plain ones are left at once."""
    differences: list[Difference] = []
    start = f"{field}." if field else ""
    for name, of in expected.items():
        value = found.get(name, NOTHING)
        agrees = value == of if type(of) in _PLAIN else isinstance(of, Expectation) and of.admits(value, whole)
        if agrees is not True:
            differences += _differences(of, value, start + name, whole)
    if not found.keys() <= expected.keys():
        for name in found.keys() - expected.keys():
            differences += _differences(NOTHING, found[name], start + name, whole)
    return differences


def _difference(expected: object, found: object, field: str, reason: str = "") -> Difference:
    return Difference(field=field, expected=_plain(expected), seen=_plain(found), reason=reason)


def _plain(value: object) -> object:
    """Return a JSON value for a message; of a whole branch only that there is one, by its names."""
    if isinstance(value, Expectation):
        return value.allowed
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return encode(value)
