"""Whether an adapter keeps both halves of each vector: the blocker is reported, and nothing was started.

What it says is held against what the vector expects; what it did is what was seen from outside. A wrong answer never
hides a start, nor the other way round: every finding is reported.
"""

from __future__ import annotations

import json
import shlex

from prespawn.policy.errors import ReadError
from prespawn.policy.reader import read
from prespawn.policy.record import Record

from .watched import watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from .watched import Answer


class Finding(Record):
    """One thing that is wrong with an adapter: ``id`` says what, ``vector`` on which, ``detail`` what was there.

    ``answer-invalid`` no answer, or none in this form · ``blocker-missing`` · ``blocker-unexpected`` a core id that is
    not due · ``start-allowed`` although blocked · ``start-refused`` although nothing stands in the way ·
    ``level-overclaimed`` · ``worker-started`` a program with the worker's words came of the adapter.
    """

    id: str
    vector: str
    detail: str

    def __str__(self) -> str:
        return f"{self.vector}: {self.detail} ({self.id})"


def conform(command: Sequence[str], vectors: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """Try an adapter on vectors; yield each one's name with what was found."""
    for vector in vectors:
        yield str(vector["name"]), tried(vector, command)


def tried(vector: Mapping[str, Any], command: Sequence[str]) -> tuple[Finding, ...]:
    """Return what is wrong with an adapter on one vector."""
    argv = _argv(vector)
    told = json.dumps(vector, sort_keys=True).encode("ascii") + b"\n"
    answer = watched(command, told, argv[0] if argv else None)
    found = [*_started(argv, answer), *_said(vector["expect"], answer)]
    return tuple(Finding(id=id, vector=str(vector["name"]), detail=detail) for id, detail in found)


def _argv(vector: Mapping[str, Any]) -> list[str]:
    declaration = vector["declaration"]
    execution = declaration.get("execution") if isinstance(declaration, dict) else None
    argv = execution.get("argv") if isinstance(execution, dict) else None
    return [word for word in argv if isinstance(word, str)] if isinstance(argv, list) else []


def _started(argv: list[str], answer: Answer) -> Iterator[tuple[str, str]]:
    """Yield what was started: the worker's words as they are, or as the text of a shell's command."""
    if not argv:
        return
    texts = {shlex.join(argv), " ".join(argv)}
    for words in answer.executed:
        whole = any(list(words[at : at + len(argv)]) == argv for at in range(len(words)))
        script = words[1:2] and words[1].rpartition("/")[2] == argv[0].rpartition("/")[2]
        if whole or script or any(text in word for text in texts for word in words[1:]):
            yield "worker-started", f"`{shlex.join(words)}` was executed; allowed: nothing is started by a check"


def _said(expect: Mapping[str, Any], answer: Answer) -> Iterator[tuple[str, str]]:
    said = _document(answer)
    if isinstance(said, str):
        yield "answer-invalid", said
        return
    wanted, got = set(expect["blockers"]), {id for id in said["blockers"] if "/" not in id}
    for id in sorted(wanted - got):
        yield "blocker-missing", f"`{id}` was not reported"
    for id in sorted(got - wanted):
        yield "blocker-unexpected", f"`{id}` was reported and is not due"
    if said["allowed"] and not expect["allowed"]:
        yield "start-allowed", "the run was allowed; allowed here: blocked"
    if not said["allowed"] and expect["allowed"] and not said["blockers"]:
        yield "start-refused", "the run was blocked and nothing stands in its way"
    levels = list(expect["levels"])
    if said["level"] not in levels:
        yield "answer-invalid", f"level is `{said['level']}`; allowed: {', '.join(f'`{level}`' for level in levels)}"
    elif levels.index(said["level"]) > levels.index(expect["level_at_most"]):
        yield "level-overclaimed", f"level is `{said['level']}`; the evidence supports `{expect['level_at_most']}`"


def _document(answer: Answer) -> dict[str, Any] | str:
    if answer.status is None:
        return "there was no answer in time"
    try:
        said = read(answer.said, source="answer", family="input", syntax="json").value
    except ReadError as wrong:  # a key that stands twice could be read as either
        return f"the answer is no JSON document, and the exit status {answer.status}: {wrong.message}"
    if not isinstance(said, dict) or type(said.get("allowed")) is not bool or not isinstance(said.get("level"), str):
        return "the answer has no `allowed` (boolean), `blockers` (ids) and `level`"
    blockers = said.get("blockers")
    if not isinstance(blockers, list) or not all(isinstance(id, str) for id in blockers):
        return "`blockers` is no list of ids"
    return said
