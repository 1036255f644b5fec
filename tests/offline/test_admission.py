"""What no declaration may be, whatever it says: the bounds of the strict reader hold for a Python value as well."""

from __future__ import annotations

from typing import Any

from prespawn.checker.admission import Refused, admit
from prespawn.policy.reader import DEFAULT_BOUNDS


def _nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_vector_of_more_words_than_the_bound_is_told_the_bound() -> None:
    refused = admit({"execution": {"argv": ["echo", *["w"] * 60_000]}}, (), frozenset())
    assert refused == Refused(field="", found="a value of more than 50000 parts, each word of a vector being one")


def test_value_nested_too_deep_is_told_the_depth() -> None:
    refused = admit(_nested(DEFAULT_BOUNDS.depth + 1), (), frozenset())
    assert refused == Refused(field="", found="a value nested deeper than 32 levels")


def test_value_just_within_both_bounds_is_judged_by_what_it_is() -> None:
    assert admit(_nested(DEFAULT_BOUNDS.depth), (), frozenset()) == Refused(
        field="", found="a list in place of a mapping"
    )
    assert admit(["w"] * (DEFAULT_BOUNDS.nodes - 1), (), frozenset()) == Refused(
        field="", found="a list in place of a mapping"
    )
