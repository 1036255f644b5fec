"""Each direction by an example: what widens, what narrows, what is neither."""

from __future__ import annotations

from typing import Any

import pytest

from prespawn.policy.authority import HIDDEN, Change, compare

TABLE = (
    "fields",
    {
        "title": ("free",),
        "kind": ("equal",),
        "secret": ("equal", True),
        "least": ("higher", None),
        "most": ("lower", None),
        "size": ("lower", "bytes"),
        "may": ("subset", ("reason",)),
        "must": ("superset", ()),
        "mode": ("ordered", ("none", "broker", "host")),
        "safe": ("ordered", (True, False)),
        "env": ("entries", ("equal", True)),
        "roots": ("entries", ("fields", {"path": ("equal",), "paths": ("superset", ())}, None)),
        "desks": ("named", ("fields", {"path": ("equal",)}, None)),
        "desk": ("fields", {"wide": ("lower", None)}, "incomparable"),
        "lease": ("fields", {"bytes": ("lower", "bytes")}, "narrowest"),
        "quota": ("fields", {"bytes": ("lower", "bytes")}, "widest"),
    },
    None,
)
CASES: list[tuple[str, Any, Any, str, tuple[str, ...]]] = [
    ("kind", "a", "b", "incomparable", ("kind",)),
    ("kind", None, "b", "incomparable", ("kind",)),
    ("least", 1, 2, "narrowed", ("least",)),
    ("least", 5, None, "widened", ("least",)),
    ("most", 1, 2, "widened", ("most",)),
    ("most", 2, 1, "narrowed", ("most",)),
    ("most", 2, None, "widened", ("most",)),
    ("most", None, 2**53 - 1, "narrowed", ("most",)),
    ("may", ["a"], ["a", "b"], "widened", ("may",)),
    ("may", ["a", "b"], ["b"], "narrowed", ("may",)),
    ("may", ["a"], ["b"], "incomparable", ("may",)),
    ("may", [], ["a"], "widened", ("may",)),
    ("may", [{"act": "x", "reason": "r"}], [{"act": "y", "reason": "r"}], "incomparable", ("may",)),
    ("must", ["a"], ["a", "b"], "narrowed", ("must",)),
    ("must", ["a"], [], "widened", ("must",)),
    ("mode", "none", "host", "widened", ("mode",)),
    ("mode", "host", "broker", "narrowed", ("mode",)),
    ("safe", True, False, "widened", ("safe",)),
    ("env", {"A": "1"}, {}, "narrowed", ("env", "A")),
    ("env", {}, {"A": "1"}, "widened", ("env", "A")),
    ("env", {"A": "1"}, {"A": "2"}, "incomparable", ("env", "A")),
    (
        "roots",
        {"m": {"path": "/a", "paths": []}},
        {"m": {"path": "/a", "paths": ["x"]}},
        "narrowed",
        ("roots", "m", "paths"),
    ),
    (
        "roots",
        {"m": {"path": "/a", "paths": []}},
        {"m": {"path": "/b", "paths": []}},
        "incomparable",
        ("roots", "m", "path"),
    ),
    ("roots", {}, {"m": {"path": "/b", "paths": []}}, "widened", ("roots", "m")),
    ("desks", {"a": {"path": "/a"}}, {}, "narrowed", ("desks", "a")),
    ("desks", {}, {"a": {"path": "/a"}}, "widened", ("desks", "a")),
    ("desks", {"a": {"path": "/a"}, "b": {"path": "/b"}}, {"b": {"path": "/b"}}, "incomparable", ("desks", "a")),
    ("desks", {"b": {"path": "/b"}}, {"a": {"path": "/a"}, "b": {"path": "/b"}}, "incomparable", ("desks", "a")),
    ("desk", {"wide": 1}, None, "incomparable", ("desk",)),
    ("desk", None, {"wide": 1}, "incomparable", ("desk",)),
    ("desk", {"wide": 2}, {"wide": 1}, "narrowed", ("desk", "wide")),
    ("lease", None, {"bytes": 1}, "widened", ("lease",)),
    ("lease", {"bytes": 1}, None, "narrowed", ("lease",)),
    ("lease", {"bytes": 1}, {"bytes": 2}, "widened", ("lease", "bytes")),
    ("quota", None, {"bytes": 1}, "narrowed", ("quota",)),
    ("quota", {"bytes": 1}, None, "widened", ("quota",)),
]


@pytest.mark.parametrize(("name", "old", "new", "verdict", "at"), CASES)
def test_change_has_its_verdict(name: str, old: Any, new: Any, verdict: str, at: tuple[str, ...]) -> None:
    (change,) = compare({name: old}, {name: new}, TABLE)
    assert (change.verdict, change.at) == (verdict, at)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("title", "a", "b"),
        ("may", ["a", "b"], ["b", "a"]),
        ("may", [{"act": "x", "reason": "r"}], [{"act": "x", "reason": "another"}]),
        ("env", {"A": "1", "B": "2"}, {"B": "2", "A": "1"}),
    ],
)
def test_change_without_authority_is_none(name: str, old: Any, new: Any) -> None:
    assert compare({name: old}, {name: new}, TABLE) == []


def test_named_entries_that_stay_several_are_compared_one_by_one() -> None:
    a, b, c = ({name: {"path": f"/{name}"}} for name in "abc")
    (change,) = compare({"desks": {**a, **b, **c}}, {"desks": {**b, **c}}, TABLE)
    assert (change.verdict, change.at) == ("narrowed", ("desks", "a"))


def test_changes_come_in_the_order_of_the_schema() -> None:
    old = {"mode": "none", "most": 1, "kind": "a"}
    new = {"kind": "b", "most": 2, "mode": "host"}
    assert [change.at for change in compare(old, new, TABLE)] == [("kind",), ("most",), ("mode",)]


def test_hidden_values_are_in_no_change() -> None:
    changes = compare(
        {"secret": "s1", "env": {"A": "s2", "B": "s3"}}, {"secret": "s4", "env": {"A": "s5", "C": "s6"}}, TABLE
    )
    assert changes == [
        Change(at=("secret",), verdict="incomparable", old=HIDDEN, new=HIDDEN),
        Change(at=("env", "A"), verdict="incomparable", old=HIDDEN, new=HIDDEN),
        Change(at=("env", "B"), verdict="narrowed", old=HIDDEN, new=None),
        Change(at=("env", "C"), verdict="widened", old=None, new=HIDDEN),
    ]


def test_sizes_are_shown_as_they_were_written() -> None:
    (change,) = compare({"size": 1 << 30}, {"size": None}, TABLE)
    assert change.shown() == ("`1GiB`", "`null`")


def test_true_and_one_are_not_the_same() -> None:
    assert len(compare({"kind": True}, {"kind": 1}, TABLE)) == 1
