"""Random documents of a format, valid and a little wrong, made from its schema: for properties of all engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from prespawn.policy.canonical import canonical
from prespawn.policy.format import FIRST_KEY
from prespawn.policy.table import types
from prespawn.policy.units import UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    Rules = Mapping[str, Any]
    Strategy = st.SearchStrategy[Any]
    Path = tuple[str | int, ...]

_LETTERS = st.characters(codec="utf-8", exclude_categories=["Cs"])
SCALARS: Strategy = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from(
        [0, 1, -1, 2**53 - 1, 2**53, "", "none", "sandbox-v1\n", "0KiB", "1MiB", "1000000GiB", "30m", "5 m", "007d"]
    )
    | st.text(_LETTERS, max_size=6)
)
JSON: Strategy = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(_LETTERS, max_size=4), inner, max_size=3),
)


def documents(fields: Rules) -> Strategy:
    """Valid documents; the first key is the format's."""
    return _record(fields).map(lambda value: {FIRST_KEY: value[FIRST_KEY], **value})


def mutated(fields: Rules) -> Strategy:
    """Valid documents in which one or two things were changed, mostly for the worse; the root stays a mapping."""
    return _mutated(documents(fields))


@st.composite
def _mutated(draw: st.DrawFn, valid: Strategy) -> Any:
    document = draw(valid)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(list(_paths(document))))
        document = _changed(draw, document, path)
    return document


def values(rules: Rules, *, record: bool = False) -> Strategy:
    """Valid values of one rule set, or with ``record`` of a mapping with these named fields."""
    return _record(rules) if record else _values(rules)


def _values(rules: Rules) -> Strategy:
    typed = [_TYPED[type](rule) for rule in rules.get("anyof", (rules,)) for type in types(rule)]
    return st.one_of(*typed, st.none()) if rules.get("nullable") else st.one_of(*typed)


def _record(fields: Rules) -> Strategy:
    required = {name: _values(rules) for name, rules in fields.items() if rules.get("required")}
    optional = {name: _values(rules) for name, rules in fields.items() if not rules.get("required")}
    return st.fixed_dictionaries(required, optional=optional)


def _string(rules: Rules) -> Strategy:
    low, high = rules.get("minlength", 0), rules.get("maxlength", 1000)
    if "allowed" in rules:
        return st.sampled_from(rules["allowed"])
    if "regex" in rules:
        pattern = rules["regex"].replace("[0-9a-f]{64}", "0{60}[0-9a-f]{4}")  # 64 draws would tell no more
        return st.from_regex(pattern, fullmatch=True).filter(lambda text: low <= len(text) <= high)
    return st.text(_LETTERS, min_size=low, max_size=min(high, low + 8))


def _amount(kind: str) -> Strategy:
    return st.builds(
        lambda number, unit: f"{number}{unit}", st.integers(1, 999_999), st.sampled_from(list(UNITS[kind]))
    )


def _list(rules: Rules) -> Strategy:
    items = _values(rules["schema"]) if "schema" in rules else JSON
    low = rules.get("minlength", 0)
    high = min(low + 3, rules.get("maxlength", low + 3))
    return st.lists(items, min_size=low, max_size=high, unique_by=canonical if rules.get("unique") else None)


def _dict(rules: Rules) -> Strategy:
    if "schema" in rules:
        return _record(rules["schema"])
    keys = _values(rules["keysrules"]) if "keysrules" in rules else st.text(_LETTERS, max_size=4)
    values = _values(rules["valuesrules"]) if "valuesrules" in rules else JSON
    low = rules.get("minlength", 0)
    return st.dictionaries(keys, values, min_size=low, max_size=low + 2)


_TYPED = {
    "string": _string,
    "integer": lambda rules: st.integers(rules.get("min", -(2**53) + 1), rules.get("max", 2**53 - 1)),
    "boolean": lambda rules: st.booleans(),
    "bytes": lambda rules: st.integers(1, 2**53 - 1) | _amount("bytes"),
    "duration": lambda rules: _amount("duration"),
    "none": lambda rules: st.just("none"),
    "json": lambda rules: JSON.filter(lambda value: value is not None),
    "list": _list,
    "dict": _dict,
}


def _paths(value: Any, at: Path = ()) -> Any:
    yield at
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, item in parts:
        yield from _paths(item, (*at, part))


def _changed(draw: st.DrawFn, value: Any, path: Path) -> Any:
    if not path:
        return _worse(draw, value)
    parts: list[tuple[Any, Any]] = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    if len(path) == 1 and draw(st.integers(0, 3)) == 0:
        kept = [(part, item) for part, item in parts if part != path[0]]
    elif len(path) == 1 and draw(st.booleans()):
        kept = [(part, draw(JSON) if part == path[0] else item) for part, item in parts]
    else:
        kept = [(part, _changed(draw, item, path[1:]) if part == path[0] else item) for part, item in parts]
    return dict(kept) if isinstance(value, dict) else [item for _, item in kept]


def _worse(draw: st.DrawFn, value: Any) -> Any:
    """Return a value of the same type that is a little off."""
    if isinstance(value, bool) or value is None:
        return draw(SCALARS)
    if isinstance(value, int):
        return draw(st.sampled_from([-value, value + 1, 0, 2**53, value == 1]))
    if isinstance(value, str):
        return draw(
            st.sampled_from([f"{value}\n", f"{value} ", f" {value}", "", value.upper(), value + value, value * 400])
        )
    if isinstance(value, list):
        return draw(st.sampled_from([[], value + value[:1], [*value, None], value * 40]))
    return {**value, draw(st.text(_LETTERS, max_size=6)): draw(SCALARS)} if draw(st.booleans()) else {}
