"""From bytes to checked blocker files.

It owns what a blocker's file must be beside its shape: named after its id, with cases that block and a near miss that
passes, and one that forgets a fact where the condition reads one. What a condition may say is ``conditions``' business,
what the checker makes of it ``rule``'s.
"""

from __future__ import annotations

from prespawn.policy.reader import read
from prespawn.policy.shape import check, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from prespawn.policy.errors import ReadError
    from prespawn.policy.reader import Document
    from prespawn.policy.shape import Node

FORMAT = "blocker/v1"
DECIDING = (
    "id", "boundary", "title", "portable", "status", "phase", "operator", "each", "unless", "when", "report", "remedy",
)  # fmt: skip


def load(data: bytes, source: str, name: str, table: Node) -> Mapping[str, Any]:
    """Return the normalised content of a blocker's file; errors are those of ``judged``."""
    return judged(read(data, source=source, family="policy", syntax="yaml"), name, table)


def judged(document: Document, name: str, table: Node) -> Mapping[str, Any]:
    """Return the normalised content of a blocker's document; ``ReadError``, whose ``others`` are further faults of it.

    ``name`` is the file's name without its ending, ``table`` the fast table of ``blocker/v1``.
    """
    wrong = check(document, table)
    if not wrong:
        content: Mapping[str, Any] = normalise(document.value, table)
        wrong = list(_faults(document, content, name))
    if wrong:
        wrong[0].others = tuple(wrong[1:])
        raise wrong[0]
    return content


def deciding(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a file that a decision needs: the page and the cases are left on disk."""
    return {key: content[key] for key in DECIDING}


def _faults(document: Document, content: Mapping[str, Any], name: str) -> Iterator[ReadError]:
    if content["id"] != name:
        yield document.error("value", f"`id` is `{content['id']}`; allowed here: `{name}`, the name of the file", "id")
    for index, case in enumerate(content["cases"]):
        if ("blocks" in case) == ("passes" in case):
            yield document.error("value", f"`cases[{index}]` must say either `blocks` or `passes`", "cases", index)
    kinds = {_kind(case) for case in content["cases"]}
    for kind in sorted(_needed(content) - kinds):
        yield document.error("value", f"`cases` has none that {kind}; allowed here: at least one", "cases")


def _needed(content: Mapping[str, Any]) -> set[str]:
    """Return the kinds of cases that a file must have: what the checker raises itself may have no near miss."""
    if content["when"] == "raised":
        return set()
    reads_facts = "facts." in repr(content["when"]) or str(content["each"]).startswith("facts.")
    return {"blocks", "passes"} | ({"forgets a fact"} if reads_facts and content["each"] is None else set())


def _kind(case: Mapping[str, Any]) -> str:
    if "passes" in case:
        return "passes"
    return "forgets a fact" if case["blocks"]["because"] == "unknown" else "blocks"
