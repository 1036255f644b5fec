"""The order of authority is an order, and a profile that extends another one can go down it and never up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from support.policy_documents import documents, values

from prespawn.policy import shipped
from prespawn.policy.authority import INCOMPARABLE, NARROWED, WIDENED, compare
from prespawn.policy.catalogue import loader, profiles
from prespawn.policy.codec import encode
from prespawn.policy.errors import ReadError
from prespawn.policy.json_schema import json_schema
from prespawn.policy.reader import read
from prespawn.policy.shape import normalise
from prespawn.policy.units import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.policy.profile import Profile

LOADER = loader(frozenset())
PROFILE = LOADER.formats["profile/v1"]
ORDERED = sorted(shipped.AUTHORITY)
VALID = {name: documents(LOADER.formats[name].fields) for name in ORDERED}
PUBLISHED = Draft202012Validator(json_schema(PROFILE))
OPPOSITE = {WIDENED: NARROWED, NARROWED: WIDENED, INCOMPARABLE: INCOMPARABLE}

each_format = pytest.mark.parametrize("name", ORDERED)


def normal(name: str, data: st.DataObject) -> Any:
    return normalise(data.draw(VALID[name]), LOADER.formats[name].table)


@each_format
@given(data=st.data())
def test_no_document_differs_from_itself(name: str, data: st.DataObject) -> None:
    document = normal(name, data)
    assert compare(document, json.loads(json.dumps(document)), shipped.AUTHORITY[name]) == []


@each_format
@given(data=st.data())
def test_what_widens_one_way_narrows_the_other(name: str, data: st.DataObject) -> None:
    old, new = normal(name, data), normal(name, data)
    there = {change.at: change.verdict for change in compare(old, new, shipped.AUTHORITY[name])}
    back = {change.at: change.verdict for change in compare(new, old, shipped.AUTHORITY[name])}
    assert back == {at: OPPOSITE[verdict] for at, verdict in there.items()}


Move = tuple[tuple[str, ...], str, Any]  # where, what it means, and the value to write there


def moves(rules: dict[str, Any], entry: tuple[Any, ...], value: Any, draw: Any, at: tuple[str, ...]) -> Iterator[Move]:
    """Yield changes of one field of a shipped profile, in source form, each with its meaning."""
    word = entry[0]
    if word == "fields" and isinstance(value, dict):
        for name, below in entry[1].items():
            yield from moves(rules["schema"][name], below, value[name], draw, (*at, name))
    if word == "fields" and len(at) == 1 and entry[2] is not None:
        beyond = {"narrowest": NARROWED, "widest": WIDENED, "incomparable": INCOMPARABLE}[entry[2]]
        yield (
            (at, beyond, None)
            if value is not None
            else (at, OPPOSITE[beyond], draw(values(rules["schema"], record=True)))
        )
    if word == "lower":
        yield from _numbers(entry[1], value, rules.get("nullable", False), at)
    if word == "ordered":
        place = entry[1].index(value)
        yield from ((at, NARROWED if i < place else WIDENED, other) for i, other in enumerate(entry[1]) if i != place)
    if word in ("subset", "superset"):
        meaning = WIDENED if word == "subset" else NARROWED
        more = [item for item in draw(st.lists(values(rules["schema"]), min_size=1, max_size=3)) if item not in value]
        yield at, meaning, [*value, *more[:1]]
        yield at, OPPOSITE[meaning], value[1:]
    if word == "entries":
        yield at, NARROWED, dict(list(value.items())[1:])
        yield at, WIDENED, {**value, "ANOTHER": "x"}
    if word == "equal":
        yield at, INCOMPARABLE, draw(values(rules))


def _numbers(unit: str | None, value: int | None, nullable: bool, at: tuple[str, ...]) -> Iterator[Move]:
    spelled = (lambda number: written(number, unit)) if unit == "duration" else (lambda number: number)
    if value is None:
        yield at, NARROWED, spelled(3000)
        return
    yield at, NARROWED, spelled(value // 2)
    yield at, WIDENED, spelled(value * 2)
    if nullable:
        yield at, WIDENED, None


def child(parent: str, at: tuple[str, ...], value: Any) -> dict[str, Any]:
    for name in reversed(at[1:]):
        value = {name: value}
    return {"prespawn": "profile/v1", "id": "child-v1", "extends": parent, at[0]: value}


def loaded(document: dict[str, Any]) -> Profile:
    data = json.dumps(document).encode()
    return LOADER.profile(read(data, source="child.json", family="policy", syntax="json"), profiles())


@pytest.mark.parametrize("parent", sorted(shipped.PROFILES))
@given(data=st.data())
def test_a_narrower_field_is_accepted_and_a_wider_one_refused_by_name(parent: str, data: st.DataObject) -> None:
    plain = shipped.PROFILES[parent]
    changes = list(
        moves({"schema": PROFILE.fields}, shipped.AUTHORITY["profile/v1"], {"prespawn": 0, **plain}, data.draw, ())
    )
    at, meaning, value = data.draw(st.sampled_from(changes))
    document = child(parent, at, value)
    assert PUBLISHED.is_valid(document)
    before, after = plain, normalise(document, _partial())
    for name in at:
        before, after = before[name], after[name]
    assume(before != after)
    if meaning == NARROWED:
        result: Any = encode(loaded(document))
        for name in at:
            result = result[name]
        assert result == after
        return
    with pytest.raises(ReadError) as refused:
        loaded(document)
    assert refused.value.id == "policy-widened"
    assert refused.value.others == ()
    assert refused.value.message.startswith(f"`{'.'.join(at)}")
    assert f"`{parent}`, which it extends, has" in refused.value.message


def _partial() -> Any:
    """Return the profile's table with nothing required."""

    def loose(node: Any) -> Any:
        return tuple(
            ("dict", {name: (False, loose(field[1])) for name, field in rule[1].items()}) if rule[0] == "dict" else rule
            for rule in node
        )

    return loose(PROFILE.table)
