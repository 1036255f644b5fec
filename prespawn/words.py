"""From results to sentences: the value found, then the values allowed, then the remedy.

Whatever came from outside is escaped and cut here, once, so that no name can write to a terminal and no message grows
with its input.
"""

from __future__ import annotations

from prespawn.policy.spelling import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prespawn.checker.verdict import Blocker, Verdict

LONGEST = 200  # characters of one value in a message


def value_text(value: object) -> str:
    """Return a value as a message shows it: in backticks, escaped, cut."""
    if isinstance(value, (list, tuple)):
        return ", ".join(value_text(item) for item in value) if value else "none"
    words = {type(None): "null", bool: "true" if value else "false"}
    text = shown(words.get(type(value), str(value))).replace("`", "'")  # or a value could end its own backticks
    return f"`{text if len(text) <= LONGEST else text[:LONGEST] + '…'}`"


def allowed_text(values: Iterable[object]) -> str:
    """Return what may stand somewhere: words in backticks, descriptions as they are."""
    texts = (shown(value) if isinstance(value, str) and " " in value else value_text(value) for value in values)
    return ", or ".join(texts)


def blocker_text(blocker: Blocker, remedy: str) -> str:
    """Return the line of one blocker that a person can act on."""
    return f"{blocker.id}: {blocker_sentence(blocker, remedy)}"


def blocker_sentence(blocker: Blocker, remedy: str) -> str:
    """Return the same without the id."""
    return f"{blocker_difference(blocker)}; {remedy}"


def blocker_difference(blocker: Blocker) -> str:
    """Return the value found and the values allowed; of these, what nobody could look at is left out."""
    field = f"`{shown(blocker.field)}`" if blocker.field else "the declaration"
    if blocker.because == "unknown":
        start = f"{field} could not be judged: {shown(blocker.reason)}"
    else:
        start = f"{field} is {value_text(blocker.found)}"
    words = [value for value in blocker.allowed if value is not None]
    allowed = f"; allowed here: {allowed_text(words)}" if words else ""
    return f"{start}{allowed}"


def verdict_lines(name: str, verdict: Verdict, remedies: Mapping[str, str]) -> Iterator[str]:
    """Yield the verdict on one declaration: the decision, its blockers, and what its level leaves open."""
    level = verdict.level
    if verdict.allowed:
        reach = f"{level.requested} needed, {level.attainable} attainable"
        yield f"{shown(name)}: allowed at level {level.earned} ({reach})"
    else:
        word = "undecided" if verdict.undecided else "blocked"
        count = len(verdict.blockers)
        yield f"{shown(name)}: {word} by {count} blocker{'' if count == 1 else 's'}"
    for blocker in verdict.blockers:
        yield f"  {blocker_text(blocker, remedies[blocker.id])}"
    if verdict.allowed and verdict.not_claimed:
        yield f"  not claimed at this level: {', '.join(verdict.not_claimed)}"
