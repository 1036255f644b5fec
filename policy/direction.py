"""From the ``meta`` of schema fields to the table of authority; needed only where schemas are read from YAML.

It owns which direction fits which type, so that no schema says ``lower`` of a list; what the directions mean is
``policy.authority``'s.
"""

from __future__ import annotations

from .table import types
from .units import UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .authority import Entry

WORDS = ("lower", "higher", "subset", "superset", "ordered", "entries", "named", "fields", "equal", "free")

_NUMBERS = {"integer", *UNITS}
_ABSENT = ("incomparable", "narrowest", "widest")


def entries(fields: Mapping[str, Any]) -> Entry:
    """Return the entry of a mapping with named fields; each has passed ``problem``."""
    return ("fields", {name: _entry(rules) for name, rules in fields.items()}, None)


def problem(rules: Mapping[str, Any]) -> str:
    """Return what the ``meta`` of a field lacks, or nothing."""
    meta = rules.get("meta", {})
    narrower, kinds = meta.get("narrower"), set(types(rules))
    if isinstance(narrower, dict):
        fitting = narrower.keys() == {"ordered"} and set(narrower["ordered"]) == _words(rules)
        return "" if fitting else "`narrower: {ordered: [...]}` with every word that the field may have"
    if narrower not in WORDS or narrower == "ordered":
        return f"`meta.narrower`, one of {', '.join(WORDS)}"
    if narrower in ("lower", "higher") and not kinds <= _NUMBERS:
        return "`lower` and `higher` for numbers"
    if narrower in ("subset", "superset") and kinds != {"list"}:
        return "`subset` and `superset` for lists"
    if narrower in ("entries", "named") and ("dict" not in kinds or "schema" in rules):
        return "`entries` and `named` for free-keyed mappings"
    return _problem_of_fields(rules, kinds) if narrower == "fields" else ""


def _problem_of_fields(rules: Mapping[str, Any], kinds: set[str]) -> str:
    if not kinds <= {"dict", "none"} or "schema" not in rules:
        return "`fields` for mappings with named fields"
    optional = rules.get("nullable", False) or "none" in kinds
    said = rules["meta"].get("absent") in _ABSENT
    return "" if optional == said else f"`absent`, one of {', '.join(_ABSENT)}, where null may stand, and nowhere else"


def _entry(rules: Mapping[str, Any]) -> Entry:
    meta = rules.get("meta", {})
    narrower = meta.get("narrower", "equal")
    if isinstance(narrower, dict):
        return ("ordered", tuple(narrower["ordered"]))
    if narrower in ("lower", "higher"):
        return (narrower, next((type for type in types(rules) if type in UNITS), None))
    if narrower in ("subset", "superset"):
        return (narrower, _free_fields(rules.get("schema", {})))
    if narrower in ("entries", "named"):
        return (narrower, _entry(rules.get("valuesrules", {})))
    if narrower == "fields":
        return ("fields", entries(rules["schema"])[1], meta.get("absent"))
    return ("equal", True) if meta.get("hidden") else (narrower,)


def _free_fields(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of a list's items that have no authority; none where the items are not mappings."""
    fields = item.get("schema", {}) if types(item) == ("dict",) else {}
    return tuple(name for name, rules in fields.items() if rules["meta"]["narrower"] == "free")


def _words(rules: Mapping[str, Any]) -> set[object]:
    """Return every value of a field that has few of them."""
    return {False, True} if rules.get("type") == "boolean" else set(rules.get("allowed", ()))
