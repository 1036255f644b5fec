"""Does the evidence reach the level that is asked for, or that somebody reports?

The functions read ``view.level``, which the claims have been appraised into before, and ``view.unknown``.
"""

from __future__ import annotations

from prespawn.policy.known import Absent, Unknown

from .finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..evaluate import View


def isolation_level_insufficient(view: View) -> Iterator[Finding]:
    """More is asked for than this profile can earn on this host."""
    level, levels = view.level, view.levels
    if isinstance(view.profile, Absent) or isinstance(view.adapter, Absent):
        return  # whose level it would be is another blocker's question
    if levels.rank(level.requested) > levels.rank(level.attainable):
        attainable = tuple(word.id for word in levels.levels[1 : levels.rank(level.attainable) + 1])
        yield Finding(field="level", found=level.requested, allowed=attainable)


def isolation_level_overclaimed(view: View) -> Iterable[Finding] | Unknown:
    """An adapter reports a level above the evidence: the lower one stands, and the report is refused."""
    reported = view.facts.reported
    if isinstance(reported, Absent):
        return ()
    if isinstance(reported.level, Unknown):
        return reported.level
    level, levels = view.level, view.levels
    claimed = reported.level
    if isinstance(claimed, str) and levels.knows(claimed) and levels.rank(claimed) > levels.rank(level.earned):
        return (Finding(field="reported.level", found=reported.level, allowed=(level.earned,)),)
    return ()


def isolation_level_unknown(view: View) -> Iterator[Finding | Unknown]:
    """A level word that names none, declared or reported, or blockers that nobody could decide."""
    asked, reported = view.declaration.level, view.facts.reported
    allowed = tuple(level.id for level in view.levels.levels[1:])
    if not isinstance(asked, Absent) and asked not in allowed:
        yield Finding(field="level", found=asked, allowed=allowed)
    if not isinstance(reported, (Absent, Unknown)) and not view.levels.knows(reported.level):
        word = reported.level
        if not isinstance(word, Unknown):
            yield Finding(field="reported.level", found=None if isinstance(word, Absent) else word, allowed=allowed)
    if view.unknown:
        yield Unknown(reason=", ".join(view.unknown))


FUNCTIONS = (isolation_level_insufficient, isolation_level_overclaimed, isolation_level_unknown)
