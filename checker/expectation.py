"""What may stand at one place of what was seen, where it is more than one value.

A plain value expects itself. These are for the places where the host has a say: a limit that was lower already, a
flag that a mount brought along, an identity that is only known beside it.
"""

from __future__ import annotations

from prespawn.policy.known import Unknown
from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Expectation(Record):
    """One place; ``admits`` gets the value there and the whole of what was seen, ``allowed`` is for a message."""

    def admits(self, value: object, seen: Mapping[str, object]) -> bool | Unknown:
        """Say whether a value may stand here, or why that cannot be said."""
        raise NotImplementedError

    @property
    def allowed(self) -> object:
        """What may stand here, as a JSON value."""
        raise NotImplementedError


class Anything(Expectation):
    """Whatever is there, or nothing at all: written down, and compared with nothing."""

    def admits(self, value: object, seen: Mapping[str, object]) -> bool:
        return True

    @property
    def allowed(self) -> object:
        return "anything"


class OneOf(Expectation):
    """One of some values."""

    values: tuple[object, ...]

    def admits(self, value: object, seen: Mapping[str, object]) -> bool:
        return value in self.values

    @property
    def allowed(self) -> object:
        return list(self.values)


class AtMost(Expectation):
    """A number up to a limit."""

    limit: int

    def admits(self, value: object, seen: Mapping[str, object]) -> bool:
        return isinstance(value, int) and value <= self.limit

    @property
    def allowed(self) -> object:
        return f"up to {self.limit}"


class Words(Expectation):
    """A list that holds all ``needed`` words, each once, and of others only the ``tolerated``; all if that is None."""

    needed: tuple[str, ...]
    tolerated: tuple[str, ...] | None

    def admits(self, value: object, seen: Mapping[str, object]) -> bool:
        if not isinstance(value, (list, tuple)):
            return False
        words = set(value)
        if len(words) != len(value) or not words.issuperset(self.needed):
            return False
        return self.tolerated is None or words <= {*self.needed, *self.tolerated}

    @property
    def allowed(self) -> object:
        return list(self.needed)


class Below(Expectation):
    """One of some paths, or a path below one."""

    paths: tuple[str, ...]

    def admits(self, value: object, seen: Mapping[str, object]) -> bool:
        return isinstance(value, str) and any(value == path or value.startswith(f"{path}/") for path in self.paths)

    @property
    def allowed(self) -> object:
        return list(self.paths)


class SameAs(Expectation):
    """What was seen at another place, one step below the top."""

    branch: str
    leaf: str

    def admits(self, value: object, seen: Mapping[str, object]) -> bool | Unknown:
        branch = seen.get(self.branch)
        other = branch.get(self.leaf) if isinstance(branch, dict) else branch
        return other if isinstance(other, Unknown) else other is not None and other == value

    @property
    def allowed(self) -> object:
        return f"the {self.branch} of {self.leaf}"


ANYTHING = Anything()
