"""Frozen, slotted values.

``Record`` reads like a frozen dataclass and costs nothing to import: its metaclass turns the annotations of a
class into ``__slots__`` and keeps the defaults, so no code is generated when a module loads (a real
``dataclass`` generates and compiles its methods, which is most of a cold start once there are dozens of them).

Fields are keyword-only. Values are compared and hashed by content.

Example::

    class Point(Record):
        x: int
        y: int = 0

    Point(x=1).replace(y=2)
"""

from __future__ import annotations

from _operator import attrgetter  # what `operator` gives on, without executing it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_options):  # the name at run time, where `typing` is not worth its import
        return lambda decorated: decorated


class RecordType(type):
    """Makes ``__slots__`` from annotations, base fields first."""

    _setters: tuple[tuple[str, Callable[[object, object], None]], ...]
    _read: Callable[[object], tuple[Any, ...]]

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RecordType:
        own = tuple(
            n for n, kind in namespace.get("__annotations__", {}).items() if not str(kind).startswith("ClassVar")
        )
        defaults = {n: namespace.pop(n) for n in own if n in namespace}
        inherited: tuple[str, ...] = ()
        for base in bases:
            inherited += getattr(base, "_fields", ())
            defaults = {**getattr(base, "_defaults", {}), **defaults}
        fields = inherited + own
        slots = (*own, *namespace.get("__slots__", ()))
        namespace |= {"__slots__": slots, "_fields": fields, "_defaults": defaults, "_names": frozenset(fields)}
        made = super().__new__(mcls, name, bases, namespace)
        # a decision is made of records: the way to each slot is looked up once
        made._setters = tuple((field, getattr(made, field).__set__) for field in fields)
        made._read = attrgetter(*fields, "_fields", "_fields")  # two more, for of one name it returns no tuple
        return made


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record(metaclass=RecordType):
    """The base of every value; see the module's text."""

    if TYPE_CHECKING:
        _fields: ClassVar[tuple[str, ...]]
        _names: ClassVar[frozenset[str]]
        _defaults: ClassVar[dict[str, Any]]

    nested: ClassVar[dict[str, type[Record] | tuple[type[Record]] | dict[str, type[Record]]]] = {}
    """Which fields hold records: see ``policy.codec``."""

    def __init__(self, **values: Any) -> None:
        if values.keys() != self._names:
            values = self._completed(values)
        for name, put in type(self)._setters:
            put(self, values[name])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    __delattr__ = __setattr__  # type: ignore[assignment]  # same refusal, one argument fewer

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return zip(self._fields, type(self)._read(self), strict=False)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((type(self), *(value for _, value in self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self)})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Copy and pickle through the constructor: what it refuses to make is not made this way either."""
        return _made, (type(self), dict(iter(self)))

    def replace(self, **changes: Any) -> Self:
        """Return the same value with some fields changed."""
        return type(self)(**{**dict(iter(self)), **changes})

    def _completed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values with the defaults of those that are missing; ``TypeError`` for any other difference."""
        for name in self._fields:
            if name not in values and name not in self._defaults:
                raise TypeError(f"{type(self).__name__} needs `{name}`")
        if wrong := sorted(values.keys() - self._names):
            raise TypeError(f"{type(self).__name__} has no field {wrong}")
        return {**self._defaults, **values}


def _made(kind: type[Record], values: dict[str, Any]) -> Record:
    return kind(**values)
