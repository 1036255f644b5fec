"""Every operator of the vocabulary: true, false, unknown, and nothing to judge."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.conditions import written

from prespawn.blockers.answers import is_inside
from prespawn.blockers.conditions import OPERATORS, ConditionError, Template, compile_condition
from prespawn.checker.facts import Place
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.lists import NamedList

LISTS = {"colours": NamedList(id="colours", title="colours", names=("red",), prefixes=("dark-",))}
NOWHERE = Unknown(reason="nobody looked")


def place(inode: Any) -> Place:
    return Place(given="x", path="/x", kind="directory", device=1, inode=inode, owner=0, filesystem="ext4")


def answer(condition: object, **values: Any) -> object:
    """Return what both forms of a condition answer, the compiled function and the written code."""
    view = SimpleNamespace(facts=SimpleNamespace(**values), declaration=SimpleNamespace(), lists=LISTS)
    compiled = compile_condition(condition, LISTS)(view)
    assert written(condition, LISTS)(view) == compiled
    return compiled


ONE = {
    "given": ({"given": "facts.a"}, "x", None),
    "is": ({"is": {"value": "facts.a", "a": "string"}}, "x", 5),
    "equals": ({"equals": {"value": "facts.a", "to": 1}}, 1, True),
    "one_of": ({"one_of": {"value": "facts.a", "of": ["x", "y"]}}, "x", "z"),
    "listed": ({"listed": {"value": "facts.a", "in": "colours"}}, "dark-red", "green"),
    "spelled": ({"spelled": {"value": "facts.a", "as": "absolute"}}, "/a", "a"),
    "empty": ({"empty": "facts.a"}, (), ("x",)),
}
TWO = {
    "same": ({"same": {"value": "facts.a", "as": "facts.b"}}, ("x", "x"), (1, True)),
    "member": ({"member": {"value": "facts.a", "of": "facts.b"}}, ("x", ("x", "y")), ("z", ("x", "y"))),
    "inside": ({"inside": {"path": "facts.a", "root": "facts.b"}}, ("/ws/a", "/ws"), ("/ws-evil/a", "/ws")),
    "same_file": ({"same_file": {"left": "facts.a", "right": "facts.b"}}, (place(1), place(1)), (place(1), place(2))),
    "more_than": ({"more_than": {"value": "facts.a", "limit": "facts.b"}}, (2, 1), (True, 0)),
    "longer_than": ({"longer_than": {"value": "facts.a", "limit": "facts.b"}}, ("ab", 1), ("a", 1)),
}


def test_every_operator_is_tried_here() -> None:
    assert sorted([*ONE, *TWO, "all", "any", "not"]) == sorted(OPERATORS)


@pytest.mark.parametrize("name", ONE)
def test_operator_of_one_reference(name: str) -> None:
    condition, yes, no = ONE[name]
    assert answer(condition, a=yes) is True
    assert answer(condition, a=NOWHERE) == NOWHERE
    if name == "given":
        assert answer(condition, a=ABSENT) is False
    else:
        assert answer(condition, a=no) is False
        assert answer(condition, a=ABSENT) is ABSENT


@pytest.mark.parametrize("name", TWO)
def test_operator_of_two_references(name: str) -> None:
    condition, yes, no = TWO[name]
    assert answer(condition, a=yes[0], b=yes[1]) is True
    assert answer(condition, a=no[0], b=no[1]) is False
    assert answer(condition, a=NOWHERE, b=yes[1]) == NOWHERE
    assert answer(condition, a=yes[0], b=NOWHERE) == NOWHERE
    assert answer(condition, a=yes[0], b=ABSENT) is ABSENT
    assert answer(condition, a=ABSENT, b=NOWHERE) == NOWHERE


YES, NO = {"given": "facts.yes"}, {"equals": {"value": "facts.yes", "to": "no"}}
PERHAPS, NOTHING = {"given": "facts.unknown"}, {"equals": {"value": "facts.absent", "to": 1}}
VALUES = {"yes": "yes", "unknown": NOWHERE, "absent": ABSENT}


@pytest.mark.parametrize(
    ("parts", "every", "some"),
    [
        ([YES, YES], True, True),
        ([YES, NO], False, True),
        ([YES, PERHAPS], NOWHERE, True),
        ([NO, PERHAPS], False, NOWHERE),
        ([YES, NOTHING], ABSENT, True),
        ([NO, NOTHING], False, False),
        ([NOTHING, NOTHING], ABSENT, ABSENT),
        ([NOTHING, PERHAPS], NOWHERE, NOWHERE),
        ([PERHAPS, NOTHING], NOWHERE, NOWHERE),
    ],
)
def test_connectives(parts: list[object], every: object, some: object) -> None:
    assert answer({"all": parts}, **VALUES) == every
    assert answer({"any": parts}, **VALUES) == some


@pytest.mark.parametrize(("part", "expected"), [(YES, False), (NO, True), (PERHAPS, NOWHERE), (NOTHING, ABSENT)])
def test_not_leaves_what_is_unknown_or_absent(part: object, expected: object) -> None:
    assert answer({"not": part}, **VALUES) == expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({}, "a condition is a mapping with one operator"),
        ({"all": []}, "not empty"),
        ({"any": [], "all": []}, "one operator"),
        ({"matches": "x"}, "no operator `matches`"),
        ({"given": "secrets.key"}, "is no reference"),
        ({"given": "facts.__class__()"}, "is no reference"),
        ({"listed": {"value": "facts.a", "in": "nope"}}, "no list `nope`; allowed: colours"),
        ({"spelled": {"value": "facts.a", "as": "nice"}}, "`nice` is not one of"),
        ({"equals": {"value": "facts.a"}}, "takes exactly value and to"),
        ({"one_of": {"value": "facts.a", "of": []}}, "not empty"),
    ],
)
def test_condition_outside_the_vocabulary_is_refused(condition: object, message: str) -> None:
    with pytest.raises(ConditionError, match=message.replace("(", r"\(")):
        compile_condition(condition, LISTS)


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/srv/ws/a", "/srv/ws", True),
        ("/srv/ws/a", "/srv/ws/", True),
        ("/srv/ws", "/srv/ws", False),
        ("/srv/ws-evil/a", "/srv/ws", False),
        ("/srv/ws/../x", "/srv/ws", False),
        ("/a", "/", True),
        (5, "/", False),
    ],
)
def test_inside_compares_components(path: object, root: object, expected: bool) -> None:
    assert is_inside(path, root) is expected


def test_template_of_one_hole_is_the_value_itself() -> None:
    view = SimpleNamespace(facts=SimpleNamespace(a=("x", "y"), b=NOWHERE, c=ABSENT))
    assert Template("{facts.a}").fill(view) == ("x", "y")
    assert Template("at most {facts.a}").fill(view) == "at most x, y"
    assert Template("{facts.b} and {facts.c}").fill(view) == "unknown and nothing"
    assert Template("").fill(view) == ""
