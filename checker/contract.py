"""What a run changed, held against what its file contract lets it change: exit status and contract are two results.

Two trees go in, as they were before the run and when its last process was gone; how they are looked at is
``prespawn.tree``'s. What stands here is what a contract covers:

* an exact path: that file, to be changed, added or removed. ``dir/**``: everything below ``dir``. ``**``: everything.
* Directories that are missing on the way to a covered path may be added; ``dir`` of ``dir/**`` may also be removed.
* ``.git`` at any depth is never covered, nor is what lies below one: the host's git runs what stands there.
* Times are no part of a tree: ``touch`` alone changes nothing.

It is a comparison of trees and not of authors: what somebody else changed in the meantime is counted too.
"""

from __future__ import annotations

from prespawn.policy.record import Record
from prespawn.policy.spelling import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .declaration import Declaration

    Entry = tuple[int, int, int, bytes]  # st_mode; hard links and size of what is no directory; content
    Tree = Mapping[str, Entry]

GIT = ".git"
ROOT = "."  # the tree's own entry
ADDED, REMOVED, TYPE, CONTENT, MODE, LINKS = CHANGES = ("added", "removed", "type", "content", "mode", "links")
KEPT, VIOLATED, UNKNOWN = RESULTS = ("kept", "violated", "unknown")
KERNEL, COMPARED, NOBODY = ("kernel", "compared", "nobody")
SHOWN = 5  # paths in a message: enough to act on, and it stays readable
_TYPE_BITS, _DIRECTORY = 0o170000, 0o040000


class Contract(Record):
    """What a run may change: ``mode`` is read-only or mutation, ``allowed_paths`` are exact, ``dir/**`` or ``**``."""

    mode: str = "read-only"
    allowed_paths: tuple[str, ...] = ()


class Change(Record):
    """One path that is not what it was, relative to the root, and how (one of ``CHANGES``, the first that applies)."""

    path: str
    how: str


class ContractResult(Record):
    """What came of a contract, beside the exit status and never out of it.

    ``result`` is kept, violated or unknown (then ``reason`` says why, and nothing is taken to be kept); ``seen`` says
    how: ``kernel`` (nothing outside the contract could be written), ``compared``, or ``nobody``. ``violations`` are all
    changes that the contract does not cover, sorted by path.
    """

    result: str
    seen: str
    violations: tuple[Change, ...] = ()
    reason: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether it is known that nothing changed but what the contract covers."""
        return self.result == KEPT

    @property
    def sentence(self) -> str:
        """What came of it, in one line for a person; names are escaped, and of many only the first stand there."""
        if self.result == UNKNOWN:
            return f"whether the file contract was kept is not known: {shown(self.reason)}"
        if self.result == KEPT:
            return "the file contract was kept"
        named = [f"`{shown(change.path)}` ({change.how})" for change in self.violations[:SHOWN]]
        rest = len(self.violations) - len(named)
        return f"the file contract was violated: {', '.join(named)}{f', and {rest} more' if rest else ''}"


KEPT_BY_KERNEL = ContractResult(result=KEPT, seen=KERNEL)


def contract_of(declaration: Declaration) -> Contract:
    """Return the contract of a declaration that no blocker stands against; ``ValueError`` for one that has none."""
    mode, paths = declaration.mode, declaration.allowed_paths
    if mode == "read-only":
        return Contract(mode=mode)
    if mode != "mutation" or not isinstance(paths, list):
        raise ValueError("a file contract is read-only, or a mutation of stated paths")
    return Contract(mode=mode, allowed_paths=tuple(paths))


class Cover:
    """A contract made ready to be asked about many paths."""

    __slots__ = ("_above", "bases", "everything", "exact")

    def __init__(self, contract: Contract) -> None:
        stated = contract.allowed_paths if contract.mode == "mutation" else ()
        paths = [path for path in stated if GIT not in path.split("/")]
        self.everything = "**" in paths
        self.bases = frozenset(path.removesuffix("/**") for path in paths if path.endswith("/**"))
        self.exact = frozenset(path for path in paths if path != "**" and not path.endswith("/**"))
        self._above = frozenset(above for path in (*self.bases, *self.exact) for above in _parents(path))

    def covers(self, path: str) -> bool:
        """Say whether a path may be changed in any way."""
        parents = _parents(path)
        if GIT in path.split("/"):
            return False
        return self.everything or path in self.exact or not self.bases.isdisjoint(parents)

    def lets(self, path: str, how: str, before: Entry | None, after: Entry | None) -> bool:
        """Say whether one change is in order."""
        if self.covers(path):
            return True
        entry = after if before is None else before
        if GIT in path.split("/") or entry is None or entry[0] & _TYPE_BITS != _DIRECTORY:
            return False
        return (path in self.bases and how in (ADDED, REMOVED)) or (path in self._above and how == ADDED)


def compared(before: Tree, after: Tree, contract: Contract) -> ContractResult:
    """Return what came of a contract: every difference of two trees that it does not cover."""
    cover = Cover(contract)
    found = [
        Change(path=path, how=how)
        for path, how in differences(before, after)
        if not cover.lets(path, how, before.get(path), after.get(path))
    ]
    return ContractResult(result=VIOLATED if found else KEPT, seen=COMPARED, violations=tuple(found))


def unknown(reason: str) -> ContractResult:
    """Return the result where nobody could compare: it is not a pass."""
    return ContractResult(result=UNKNOWN, seen=NOBODY, reason=reason)


def differences(before: Tree, after: Tree) -> tuple[tuple[str, str], ...]:
    """Return every path that is not what it was, sorted, with how."""
    if before == after:
        return ()
    paths = sorted(before.keys() | after.keys())
    changes = ((path, _how(before.get(path), after.get(path))) for path in paths)
    return tuple((path, how) for path, how in changes if how is not None)


def _how(before: Entry | None, after: Entry | None) -> str | None:
    if before == after:
        return None
    if before is None:
        return ADDED
    if after is None:
        return REMOVED
    if (before[0] ^ after[0]) & _TYPE_BITS:
        return TYPE
    if before[2:] != after[2:]:
        return CONTENT
    return LINKS if before[0] == after[0] else MODE


def _parents(path: str) -> tuple[str, ...]:
    parts = path.split("/")
    return tuple("/".join(parts[:end]) for end in range(1, len(parts)))
