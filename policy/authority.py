"""The order of authority: does one trusted document grant more than another?

Each field of a trusted format says in its schema in which direction it is narrower, in one of these words:

=================== =================================================================================================
``lower``           a smaller number; null is no bound, so it is the widest
``higher``          a larger number; null is no bound, so it is the widest
``subset``          a list with fewer entries
``superset``        a list with more entries
``ordered: [...]``  a word that stands earlier in this list, narrowest first
``entries``         a free-keyed mapping with fewer keys, each value compared by its own direction (``equal`` if unsaid)
``named``           the same, where naming none means the only entry: from one to several, or back, is incomparable
``fields``          field by field; ``absent`` says whether null in its place is ``narrowest``, ``widest`` or
                    ``incomparable``
``equal``           no other value is narrower or wider: every change is incomparable
``free``            no authority in it: titles, reasons
=================== =================================================================================================

Entries of a list that are mappings are compared without their ``free`` fields. Everything here works on normalised
values, is pure and needs no schema at run time: a table (an *entry*) is made of it once by ``policy.direction`` and
shipped as literals.

``compare`` is reflexive (a document does not differ from itself) and antisymmetric (what widens from A to B narrows
from B to A; what is incomparable stays so).
"""

from __future__ import annotations

from . import wording
from .canonical import canonical
from .record import Record
from .units import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from .wording import Pointer

    Entry = tuple[Any, ...]

WIDENED, NARROWED, INCOMPARABLE = "widened", "narrowed", "incomparable"
HIDDEN = "(not shown)"  # instead of values that no message may hold

_OPPOSITE = {WIDENED: NARROWED, NARROWED: WIDENED, INCOMPARABLE: INCOMPARABLE}


class Change(Record):
    """One field that differs, and what that means for authority; ``unit`` is that of a size or time."""

    at: Pointer
    verdict: str
    old: object
    new: object
    unit: str | None = None

    def shown(self) -> tuple[str, str]:
        """Return the old and the new value as a person would have written them, in backticks."""
        return _shown(self.old, self.unit), _shown(self.new, self.unit)


def compare(old: Mapping[str, object], new: Mapping[str, object], entry: Entry) -> list[Change]:
    """Return every field whose change has a meaning for authority, in the order of the schema; empty if none has."""
    return list(_compared(old, new, entry, ()))


def _shown(value: object, unit: str | None) -> str:
    return wording.value(written(value, unit) if unit and isinstance(value, int) else value)


def _compared(old: Any, new: Any, entry: Entry, at: Pointer) -> Iterator[Change]:
    if canonical(old) == canonical(new):  # not `==`, to which true and 1 are the same
        return iter(())
    return _COMPARERS[entry[0]](old, new, entry, at)


def _free(old: object, new: object, entry: Entry, at: Pointer) -> Iterator[Change]:
    return iter(())


def _equal(old: object, new: object, entry: Entry, at: Pointer) -> Iterator[Change]:
    hidden = len(entry) > 1 and entry[1]
    yield Change(at=at, verdict=INCOMPARABLE, old=HIDDEN if hidden else old, new=HIDDEN if hidden else new)


def _lower(old: int | None, new: int | None, entry: Entry, at: Pointer) -> Iterator[Change]:
    narrower = old is None or (new is not None and (new < old) == (entry[0] == "lower"))
    yield Change(at=at, verdict=NARROWED if narrower else WIDENED, old=old, new=new, unit=entry[1])


def _subset(old: list[Any], new: list[Any], entry: Entry, at: Pointer) -> Iterator[Change]:
    before, after = (_identities(items, entry[1]) for items in (old, new))
    if before != after:
        verdict = NARROWED if after < before else WIDENED if after > before else INCOMPARABLE
        yield Change(at=at, verdict=verdict if entry[0] == "subset" else _OPPOSITE[verdict], old=old, new=new)


def _ordered(old: object, new: object, entry: Entry, at: Pointer) -> Iterator[Change]:
    order = entry[1]
    verdict = NARROWED if order.index(new) < order.index(old) else WIDENED
    yield Change(at=at, verdict=verdict, old=old, new=new)


def _entries(old: dict[str, Any], new: dict[str, Any], entry: Entry, at: Pointer) -> Iterator[Change]:
    hidden = entry[1][0] == "equal" and len(entry[1]) > 1 and entry[1][1]
    another = entry[0] == "named" and 1 in (len(old), len(new)) and min(len(old), len(new)) > 0 and len(old) != len(new)
    for name in {**old, **new}:
        if name in old and name in new:
            yield from _compared(old[name], new[name], entry[1], (*at, name))
        else:
            values = (HIDDEN if hidden and name in side else side.get(name) for side in (old, new))
            verdict = INCOMPARABLE if another else NARROWED if name in old else WIDENED
            yield Change(at=(*at, name), verdict=verdict, old=next(values), new=next(values))


def _fields(old: Any, new: Any, entry: Entry, at: Pointer) -> Iterator[Change]:
    if old is None or new is None:
        verdict = WIDENED if (old is None) == (entry[2] == "narrowest") else NARROWED
        yield Change(at=at, verdict=INCOMPARABLE if entry[2] == INCOMPARABLE else verdict, old=old, new=new)
        return
    for name, below in entry[1].items():
        yield from _compared(old.get(name), new.get(name), below, (*at, name))


_COMPARERS: Mapping[str, Callable[[Any, Any, Entry, Pointer], Iterator[Change]]] = {
    "free": _free, "equal": _equal, "lower": _lower, "higher": _lower, "subset": _subset, "superset": _subset,
    "ordered": _ordered, "entries": _entries, "named": _entries, "fields": _fields,
}  # fmt: skip


def _identities(items: list[Any], free: tuple[str, ...]) -> set[str]:
    """Return what makes each entry itself: its canonical form without what has no authority."""
    return {
        canonical({name: value for name, value in item.items() if name not in free} if isinstance(item, dict) else item)
        for item in items
    }
