"""Environment values are judged and never kept."""

from __future__ import annotations

from typing import Any

import pytest
from support.facts_world import World, area, lists

from prespawn.facts.environment import environment, values
from prespawn.policy.known import ABSENT

SHAPES = lists()["credential-shapes"]
SECRET = "sk-a1B2a1B2a1B2a1B2a1B2"


def judged(key: object, **sources: dict[str, str]) -> tuple[Any, ...]:
    """Return the one fact without its key, from ``fixed``, ``site`` and ``caller``."""
    given = {"fixed": {}, "site": {}, "caller": {}, **sources}
    (fact,) = environment([key], given["fixed"], given["site"], given["caller"], SHAPES)
    assert fact.key is key
    return fact.source, fact.valid, fact.shape, fact.size


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({}, ("none", True, ABSENT, 0)),
        ({"site": {"A": "x"}}, ("site", True, ABSENT, 1)),
        ({"caller": {"A": "xy"}}, ("caller", True, ABSENT, 2)),
        ({"fixed": {"A": ""}}, ("fixed", True, ABSENT, 0)),
        ({"fixed": {"A": "f"}, "site": {"A": "si"}, "caller": {"A": "cal"}}, ("fixed", True, ABSENT, 1)),
        ({"site": {"A": "si"}, "caller": {"A": "cal"}}, ("site", True, ABSENT, 2)),
        ({"site": {"B": "x"}}, ("none", True, ABSENT, 0)),
        ({"site": {"a": "x"}}, ("none", True, ABSENT, 0)),
    ],
)
def test_source_of_a_value(sources: dict[str, dict[str, str]], expected: tuple[object, ...]) -> None:
    assert judged("A", **sources) == expected


@pytest.mark.parametrize(
    ("value", "valid", "size"),
    [("a\nb", True, 3), ("ä", True, 2), ("\udcff", True, 3), ("a\0b", False, 3), ("\ud800", False, 3)],
)
def test_value_that_an_environment_can_hold(value: str, valid: bool, size: int) -> None:
    assert judged("A", site={"A": value}) == ("site", valid, ABSENT, size)


@pytest.mark.parametrize("source", ["fixed", "site", "caller"])
def test_value_that_looks_like_a_credential_is_found_wherever_it_stands(source: str) -> None:
    sources = {"fixed": {"A": "plain"}, source: {"A": SECRET}}
    assert judged("A", **sources)[2] == "an api key"
    assert judged("A", **{source: {"A": "postgres://u:p@h/db"}})[2] == "a url"


@pytest.mark.parametrize("key", [3, None, True, ["A"], {"A": "x"}])
def test_key_of_any_type_gets_a_fact(key: object) -> None:
    assert judged(key, site={"A": "x"}) == ("none", True, ABSENT, 0)


@pytest.mark.parametrize("keys", [None, "A", {"A": "x"}, 3, ABSENT])
def test_keys_that_are_no_list_give_no_facts(keys: object) -> None:
    assert environment(keys, {}, {"A": "x"}, {}, SHAPES) == ()
    assert values(keys, {}, {"A": "x"}, {}) == {}


def test_values_for_the_plan_follow_the_same_order() -> None:
    given = values(["A", "B", "C", "D", 3, ["E"]], {"A": "f"}, {"A": "s", "B": "s"}, {"A": "c", "B": "c", "C": "c"})
    assert given == {"A": "f", "B": "s", "C": "c"}


def test_no_fact_holds_a_value() -> None:
    with area() as top:
        world = World(top)
        world.site = world.site.replace(env={"TZ": SECRET, "TERM": "xterm-sentinel"})
        look = {"caller_env": {"NO": "sentinel-too"}}
        facts = world.facts(env_keys=["TZ", "TERM", "NO", "LANG"], look=look)
    assert [fact.source for fact in facts.environment] == ["site", "site", "caller", "fixed"]
    for value in (SECRET, "sentinel"):
        assert value not in repr(facts)
