"""Does a blocker's file speak of what there is? Each reference in it, against the records that it is read from.

A condition is compiled without them: ``blockers`` knows no declaration and no fact. A name that no record has would
crash the rule on its first run, which blocks and tells nobody why; whoever writes the file hears it here, with the
names that there are. What a condition's operators mean is left to ``blockers.conditions``.
"""

from __future__ import annotations

from prespawn.blockers.conditions import ROOTS
from prespawn.policy.adapter import Adapter
from prespawn.policy.profile import Profile
from prespawn.policy.record import Record
from prespawn.policy.site import Site

from .approval import Approval
from .declaration import Declaration
from .facts import Facts, WorkspaceFact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Place = tuple[str | int, ...]

_KINDS: Mapping[str, type[Record]] = {
    "declaration": Declaration, "facts": Facts, "profile": Profile, "site": Site, "adapter": Adapter,
    "approval": Approval, "checked": WorkspaceFact,
}  # fmt: skip


def reference_faults(content: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield for each reference of a ``blocker/v1`` that leads nowhere its place, and what is wrong with it."""
    each = content["each"]
    item = None if each is None else _element(each)
    for place, reference in _references(content):
        fault = _fault(reference, item)
        if fault is not None:
            yield place, fault


def _references(content: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    if content["each"] is not None:
        yield ("each",), content["each"]
    yield from _in_condition(content["when"], ("when",))
    report = content["report"]
    texts: list[tuple[Place, str]] = [(("report", name), report[name]) for name in ("field", "found")]
    texts += [(("report", "allowed", index), text) for index, text in enumerate(report["allowed"])]
    for place, text in texts:
        yield from ((place, piece.partition("}")[0]) for piece in text.split("{")[1:])


def _in_condition(node: object, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield the references of a condition; what ``to`` says is a literal."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key != "to":
                yield from _in_condition(value, (*place, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _in_condition(value, (*place, index))
    elif isinstance(node, str) and "." in node and node.split(".")[0] in ROOTS:
        yield place, node


def _fault(reference: str, item: type[Record] | None) -> str | None:
    """Walk a reference through the records, as far as they say of what kind the next one is."""
    root, *names = reference.split(".")
    kind = item if root == "item" else _KINDS.get(root)
    for depth, name in enumerate(names):
        if kind is None or not hasattr(kind, name):
            known = "nothing below it" if kind is None else ", ".join(f"`{field}`" for field in kind._fields)
            return f"`{reference}`: `{'.'.join((root, *names[:depth]))}` has no `{name}`; allowed: {known}"
        below = kind.nested.get(name)
        kind = below if isinstance(below, type) else None
    return None


def _element(each: str) -> type[Record] | None:
    """Return the kind of the elements that a list of records holds, or None for plain values."""
    root, *names = each.split(".")
    kind = _KINDS.get(root)
    for name in names:
        below = None if kind is None else kind.nested.get(name)
        kind = below[0] if isinstance(below, tuple) else below if isinstance(below, type) else None
    return kind
