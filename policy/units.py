"""Sizes and times as people write them: ``512MiB`` and ``30m``, parsed once into bytes and milliseconds.

An amount is a decimal number from 1 to 999,999 right before its unit; more is written in the next larger unit. So
every well-formed amount is a whole number of base units that any JSON reader holds exactly, and one short pattern
says the same in every language (``pattern``). Nothing here knows which field may hold which unit.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 2**53 - 1  # the largest integer that every JSON reader holds exactly

_DIGITS = 6

UNITS: Mapping[str, Mapping[str, int]] = {
    "bytes": {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
    "duration": {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000},
}
EXAMPLES: Mapping[str, str] = {"bytes": "512MiB", "duration": "30m"}


def amount(text: str, kind: str) -> int | None:
    """Return the base units of a text, ``None`` if it is no amount of this kind, and -1 if it is too small or large."""
    for unit, factor in UNITS[kind].items():
        digits = text.removesuffix(unit)
        if digits != text and digits.isascii() and digits.isdigit() and (digits[0] != "0" or digits == "0"):
            return int(digits) * factor if digits != "0" and len(digits) <= _DIGITS else -1
    return None


def pattern(kind: str) -> str:
    """Return the regular expression of exactly the texts for which ``amount`` returns a value."""
    return f"[1-9][0-9]{{0,{_DIGITS - 1}}}(?:{'|'.join(UNITS[kind])})"


def written(value: int, kind: str) -> str:
    """Return an amount in the largest unit that divides it: what a person would have written."""
    fitting = [(factor, unit) for unit, factor in UNITS[kind].items() if value % factor == 0 and value]
    factor, unit = max(fitting, default=(1, ""))
    return f"{value // factor}{unit}"
