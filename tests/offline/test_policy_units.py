"""Sizes and times: one meaning each, or none."""

from __future__ import annotations

import re

import pytest

from prespawn.policy.units import MOST, UNITS, amount, pattern, written

GOOD = [
    ("512MiB", "bytes", 536870912),
    ("4KiB", "bytes", 4096),
    ("1GiB", "bytes", 1073741824),
    ("999999GiB", "bytes", 999999 << 30),
    ("500ms", "duration", 500),
    ("30s", "duration", 30_000),
    ("30m", "duration", 1_800_000),
    ("1h", "duration", 3_600_000),
    ("7d", "duration", 604_800_000),
]
NONE = [
    *(
        ("bytes", text)
        for text in ("", "5", "MiB", "5 MiB", "5MB", "5mib", "5M", "5B", "05MiB", "00MiB", "+5MiB", "-5MiB")
    ),
    *(
        ("bytes", text)
        for text in ("5MiB\n", "\n5MiB", "5.5MiB", "5_0MiB", "0x5MiB", "5MiBMiB", "\u0665MiB", "\u00b2MiB")
    ),
    *(
        ("duration", text)
        for text in ("", "5", "m", "5 m", "5min", "5M", "1h30m", "05m", "-5m", "5m\n", "1e3s", "5ms5")
    ),
]
BEYOND = [
    ("bytes", "0KiB"),
    ("bytes", "1000000GiB"),
    ("duration", "0s"),
    ("duration", "1000000ms"),
    ("bytes", "9" * 5000 + "KiB"),
]


@pytest.mark.parametrize(("text", "kind", "units"), GOOD)
def test_amount_is_in_base_units_and_written_back_alike(text: str, kind: str, units: int) -> None:
    assert amount(text, kind) == units <= MOST
    assert amount(written(units, kind), kind) == units


@pytest.mark.parametrize(("kind", "text"), NONE)
def test_no_amount(kind: str, text: str) -> None:
    assert amount(text, kind) is None


@pytest.mark.parametrize(("kind", "text"), BEYOND)
def test_amount_out_of_range(kind: str, text: str) -> None:
    assert amount(text, kind) == -1


@pytest.mark.parametrize("kind", UNITS)
def test_pattern_matches_exactly_what_is_an_amount(kind: str) -> None:
    texts = {text for text, *_ in GOOD} | {text for _, text in (*NONE, *BEYOND)}
    for text in texts:
        assert (re.fullmatch(pattern(kind), text) is not None) == ((amount(text, kind) or -1) > 0), text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [(1, "bytes", "1"), (1025, "bytes", "1025"), (90_000, "duration", "90s"), (86_400_000, "duration", "1d")],
)
def test_written_takes_the_largest_unit_that_divides(value: int, kind: str, text: str) -> None:
    assert written(value, kind) == text
