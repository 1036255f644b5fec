"""From strictly read documents to records: trusted policy as values.

1. The first key says which format it is (``policy.format``).
2. The shape is judged and normalised by the fast table (``policy.shape``), and judged once more by the schema's own
   engine (``policy.structure``): trusted files come rarely, and two engines must err alike for a fault to pass.
3. What one field alone cannot show is judged here: ``extends``, namespaces, references inside a document.

A profile that extends another one states only what it changes, and the result may only be narrower: every widening is
an error that names the field and both values. Nobody overrides a core blocker: its id, as a key or a word anywhere in
an adapter, or as a key of a profile or a site, is refused.

It leaves to others: opening files and whose they are (``prespawn``), bytes and syntax (``policy.reader``), and the
shipped policy, which has been through here when ``prespawn.compile`` wrote it down (``policy.catalogue``).

Every function takes a document, returns a record and raises ``ReadError``, whose ``others`` are further faults of it.
"""

from __future__ import annotations

from . import wording
from .adapter import Adapter
from .authority import NARROWED, compare
from .codec import decode, encode
from .format import FIRST_KEY, format_of
from .levels import Levels
from .lists import NamedList
from .nearest import nearest
from .profile import Profile
from .record import Record
from .shape import errors, examine
from .site import Site, site_of
from .units import MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from .errors import ReadError
    from .format import Format
    from .reader import Document
    from .wording import Pointer

    Plain = dict[str, Any]

_NAMERS = ("adapter/v1", "profile/v1", "site/v1")  # an approval may name a core blocker, a list any word
_PARENTS = ("registry.db", "receipts", "canaries")  # what the parent itself keeps in the state directory
_OWN = ("id", "title", "extends")  # what a profile never takes from the one that it extends


class Loader(Record):
    """Formats by name, and the ids that are nobody's to override (empty only where blockers do not exist yet)."""

    formats: Mapping[str, Format]
    core: frozenset[str] = frozenset()

    def profile(self, document: Document, parents: Mapping[str, Profile]) -> Profile:
        """Return a profile; the one that it extends is among ``parents``."""
        named = self._extends(document)
        parent = None if named is None else _parent(document, named, parents)
        base = {} if parent is None else _plain(parent)
        plain = self._checked(document, "profile/v1", {name: base[name] for name in base if name not in _OWN})
        if parent is not None:
            _refuse(list(self._widenings(document, base, plain, parent.id)))
        return decode(Profile, plain, unknowns=False)

    def profiles(self, documents: Sequence[Document], known: Mapping[str, Profile]) -> dict[str, Profile]:
        """Return the profiles of documents in any order, by id; they may extend each other and the ``known`` ones.

        Causes beside those of ``profile``: ``duplicate-id`` for a second profile of a name, ``unknown-profile`` for
        one that extends itself, by whatever detour.
        """
        found: dict[str, Profile] = {}
        waiting = list(documents)
        while waiting:
            ready = [document for document in waiting if not self._waits(document, waiting)]
            if not ready:
                _refuse([_circular(document, self._extends(document)) for document in waiting])
            for document in ready:
                profile = self.profile(document, {**known, **found})
                if profile.id in found or profile.id in known:
                    raise document.error("duplicate-id", f"there is a profile `{profile.id}` already", "id")
                found[profile.id] = profile
            waiting = [document for document in waiting if not any(document is done for done in ready)]
        return found

    def adapter(self, document: Document) -> Adapter:
        """Return an adapter; each blocker that it adds is below its own name."""
        plain = self._checked(document, "adapter/v1")
        name = plain["id"].partition("@")[0]
        _refuse(
            [
                document.error("value", f"{wording.value(id)} is not below `{name}/`", "blockers", index)
                for index, id in enumerate(plain["blockers"])
                if not id.startswith(f"{name}/")
            ]
        )
        return decode(Adapter, plain, unknowns=False)

    def levels(self, document: Document) -> Levels:
        """Return the table of levels; every claim is about a boundary that it explains, and every id stands once."""
        plain = self._checked(document, "levels/v1")
        _refuse([document.error("value", message, *at) for message, at in _dangling(plain)])
        return decode(Levels, plain, unknowns=False)

    def site(self, document: Document) -> Site:
        """Return a site; each toolchain that a workspace names is one, and no reports lie where the parent writes."""
        plain = self._checked(document, "site/v1")
        _refuse([document.error("value", message, *at) for message, at in _misnamed(plain)])
        return site_of(plain)

    def named_list(self, document: Document) -> NamedList:
        """Return a list; it is not empty, its patterns compile, and its words are lower case where case is ignored."""
        plain = self._checked(document, "list/v1")
        _refuse([document.error(cause, message, *at) for cause, message, at in _misread(plain)])
        return decode(NamedList, plain, unknowns=False)

    def approval(self, document: Document) -> Plain:
        """Return the fields of an approval, which ends after it begins; a driver's accepts nothing."""
        plain = self._checked(document, "approval/v1")
        _refuse(list(approval_faults(document, plain)))
        return plain

    def _checked(self, document: Document, name: str, base: Plain | None = None) -> Plain:
        """Return the normalised fields of a document, without its first key."""
        from . import structure  # Cerberus: 40 ms, and only where a file is loaded

        form = self.formats[format_of(document, (name,))]
        if name in _NAMERS:
            _refuse(list(self._overrides(document, document.value, (), words=name == "adapter/v1")))
        plain, faults = examine(document.value, form.table, base)
        _refuse(errors(document, faults))
        _refuse(structure.check(document, form.fields, partial=bool(base)))
        return {key: value for key, value in plain.items() if key != FIRST_KEY}

    def _overrides(self, document: Document, value: object, at: Pointer, *, words: bool) -> Iterator[ReadError]:
        """Yield every key that is a core id, and with ``words`` every text that is one, in whatever namespace."""
        for part, item in _parts(value):
            below = (*at, part)
            named = item if words and isinstance(item, str) and item.rpartition("/")[2] in self.core else None
            if part in self.core or named is not None:
                core = wording.value(part if named is None else named)
                message = f"{wording.place(below)} names the core blocker {core}, which nobody overrides; leave it out"
                yield document.error("cannot-override-core", message, *below, key=named is None)
            yield from self._overrides(document, item, below, words=words)

    def _extends(self, document: Document) -> str | None:
        """Return the id that a profile extends, or None."""
        format_of(document, ("profile/v1",))
        named = _root(document).get("extends")
        if named is None or isinstance(named, str):
            return named
        raise document.error("type", wording.wrong_type(("extends",), named, ("string", "null")), "extends")

    def _waits(self, document: Document, others: Iterable[Document]) -> bool:
        """Say whether a document extends one that has not been read yet."""
        named = self._extends(document)
        return named is not None and any(_root(other).get("id") == named for other in others)

    def _widenings(self, document: Document, base: Plain, plain: Plain, parent: str) -> Iterator[ReadError]:
        entry = self.formats["profile/v1"].authority
        assert entry is not None
        for change in compare(base, plain, entry):
            if change.verdict != NARROWED:
                old, new = change.shown()
                message = (
                    f"{wording.place(change.at)} is {new} where `{parent}`, which it extends, has {old}; allowed here: "
                    "the same or narrower"
                )
                yield document.error("widened", message, *change.at)


def approval_faults(document: Document, plain: Plain) -> Iterator[ReadError]:
    """Yield what no field of a normalised approval shows alone."""
    if plain["expires_at"] <= plain["approved_at"]:
        message = wording.out_of_range(("expires_at",), plain["expires_at"], plain["approved_at"] + 1, MOST)
        yield document.error("range", message, "expires_at")
    if plain["origin"] != "operator" and plain["accepts"]:
        message = "`accepts` names blockers, and no operator decided; allowed here: nothing"
        yield document.error("value", message, "accepts")


def _refuse(found: Sequence[ReadError]) -> None:
    """Raise the first of the errors, if any, with the others behind it."""
    if found:
        first = found[0]
        first.others = tuple(found[1:])
        raise first


def _parent(document: Document, named: str, parents: Mapping[str, Profile]) -> Profile:
    if named in parents and named != _root(document).get("id"):
        return parents[named]
    raise _unknown_profile(document, named, (id for id in parents if id != _root(document).get("id")))


def _unknown_profile(document: Document, named: str, known: Iterable[str]) -> ReadError:
    names = sorted(known)
    meant = nearest(named, names)
    hint = f"did you mean `{meant}`" if meant else f"allowed here: {', '.join(f'`{name}`' for name in names) or 'none'}"
    message = f"`extends` is {wording.value(named)}, which is no other profile; {hint}"
    return document.error("unknown-profile", message, "extends")


def _circular(document: Document, named: str | None) -> ReadError:
    message = f"`extends` is {wording.value(named)}, which leads back to this profile; allowed here: one that does not"
    return document.error("unknown-profile", message, "extends")


def _plain(record: Record) -> Plain:
    fields = encode(record)
    assert isinstance(fields, dict)
    return fields


def _root(document: Document) -> Plain:
    assert isinstance(document.value, dict)
    return document.value


def _parts(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _dangling(plain: Plain) -> Iterator[tuple[str, Pointer]]:
    """Yield what a table of levels refers to and does not have, or has twice."""
    ids = [level["id"] for level in plain["levels"]]
    if plain["base"] not in ids:
        yield wording.not_allowed(("base",), plain["base"], ids), ("base",)
    seen: set[str] = set()
    for i, level in enumerate(plain["levels"]):
        if level["id"] in ids[:i]:
            at: Pointer = ("levels", i, "id")
            yield wording.listed_twice(at, level["id"]), at
        for j, claim in enumerate(level["claims"]):
            at = ("levels", i, "claims", j)
            if claim["boundary"] not in plain["boundaries"]:
                yield wording.not_allowed((*at, "boundary"), claim["boundary"], plain["boundaries"]), (*at, "boundary")
            if claim["id"] in seen:
                yield wording.listed_twice((*at, "id"), claim["id"]), (*at, "id")
            seen.add(claim["id"])


def _misnamed(plain: Plain) -> Iterator[tuple[str, Pointer]]:
    """Yield what the workspaces of a site name and must not."""
    taken = (*_PARENTS, plain["approvals"]["directory"])
    for name, workspace in plain["workspaces"].items():
        for index, toolchain in enumerate(workspace["toolchains"]):
            if toolchain not in plain["toolchains"]:
                at: Pointer = ("workspaces", name, "toolchains", index)
                yield wording.not_allowed(at, toolchain, plain["toolchains"]), at
        if workspace["reports"].partition("/")[0] in taken:
            at = ("workspaces", name, "reports")
            found = f"{wording.place(at)} is {wording.value(workspace['reports'])}, where the parent's own records lie"
            yield f"{found}; allowed here: another name, as `reports`", at


def _misread(plain: Plain) -> Iterator[tuple[str, str, Pointer]]:
    """Yield what makes a list mean something else than it says."""
    import re

    words = ("names", "prefixes", "suffixes")
    if not any(plain[kind] for kind in (*words, "shapes")):
        yield "length", "a list without words or shapes matches nothing; add some", ()
    for kind in words if plain["ignore_case"] else ():
        for index, word in enumerate(plain[kind]):
            if word != word.lower():
                at: Pointer = (kind, index)
                found = f"{wording.place(at)} is {wording.value(word)}"
                yield "value", f"{found}; allowed here: lower case, for case is ignored", at
    for index, shape in enumerate(plain["shapes"]):
        try:
            re.compile(shape["pattern"])
        except re.error as wrong:
            at = ("shapes", index, "pattern")
            yield "pattern", f"{wording.place(at)} is no regular expression: {wrong}", at
