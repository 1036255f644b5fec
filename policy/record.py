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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_options):  # the name at run time, where `typing` is not worth its import
        return lambda decorated: decorated


class RecordType(type):
    """Makes ``__slots__`` from annotations, base fields first."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RecordType:
        own = tuple(
            n for n, kind in namespace.get("__annotations__", {}).items() if not str(kind).startswith("ClassVar")
        )
        defaults = {n: namespace.pop(n) for n in own if n in namespace}
        inherited: tuple[str, ...] = ()
        for base in bases:
            inherited += getattr(base, "_fields", ())
            defaults = {**getattr(base, "_defaults", {}), **defaults}
        namespace |= {"__slots__": own, "_fields": inherited + own, "_defaults": defaults}
        return super().__new__(mcls, name, bases, namespace)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record(metaclass=RecordType):
    """The base of every value; see the module's text."""

    if TYPE_CHECKING:
        _fields: ClassVar[tuple[str, ...]]
        _defaults: ClassVar[dict[str, Any]]

    nested: ClassVar[dict[str, type[Record] | tuple[type[Record]] | dict[str, type[Record]]]] = {}
    """Which fields hold records: see ``policy.codec``."""

    def __init__(self, **values: Any) -> None:
        given = len(values)
        for name in self._fields:
            if name in values:
                value = values[name]
                given -= 1
            elif name in self._defaults:
                value = self._defaults[name]
            else:
                raise TypeError(f"{type(self).__name__} needs `{name}`")
            object.__setattr__(self, name, value)
        if given:
            raise TypeError(f"{type(self).__name__} has no field {sorted(set(values) - set(self._fields))}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    __delattr__ = __setattr__  # type: ignore[assignment]  # same refusal, one argument fewer

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in self._fields)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((type(self), *(value for _, value in self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self)})"

    def replace(self, **changes: Any) -> Self:
        """Return the same value with some fields changed."""
        return type(self)(**{**{name: value for name, value in self}, **changes})
