"""From Cerberus rules to the fast table of ``policy.shape``; needed only where schemas are read from YAML.

The bounds that every number has, stated or not, come in here: integers lie within what any JSON reader holds exactly.
"""

from __future__ import annotations

from .units import MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .shape import Node, Rule

    Rules = Mapping[str, Any]

_ANYTHING: Node = (("json",), ("null",))


def types(rules: Rules) -> tuple[str, ...]:
    """Return the type names of a rule set, also where only one is written."""
    named = rules.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


def node(rules: Rules) -> Node:
    """Return the alternatives of a rule set, null last."""
    alternatives: Node = ()
    for rule in rules.get("anyof", (rules,)):
        alternatives += tuple(_rule(type, rule) for type in types(rule))
    return (*alternatives, ("null",)) if rules.get("nullable") else alternatives


def record(fields: Mapping[str, Rules]) -> Rule:
    """Return the rule of a mapping with named fields."""
    return ("dict", {name: _field(rules) for name, rules in fields.items()})


def _field(rules: Rules) -> tuple[Any, ...]:
    if rules.get("required"):
        return (True, node(rules))
    return (False, node(rules), rules["default"]) if "default" in rules else (False, node(rules))


def _rule(type: str, rules: Rules) -> Rule:
    lengths = (rules.get("minlength", 0), rules.get("maxlength"))
    if type == "integer":
        return ("integer", rules.get("min", -MOST), rules.get("max", MOST))
    if type == "string":
        words = tuple(rules["allowed"]) if "allowed" in rules else None
        return ("string", rules.get("regex"), words, *lengths, rules.get("meta", {}).get("form"))
    if type == "list":
        items = node(rules["schema"]) if "schema" in rules else _ANYTHING
        return ("list", items, *lengths, rules.get("unique", False))
    if type == "dict" and "schema" in rules:
        return record(rules["schema"])
    if type == "dict":
        keys = node(rules["keysrules"]) if "keysrules" in rules else (("string", None, None, 0, None, None),)
        return ("map", keys, node(rules["valuesrules"]) if "valuesrules" in rules else _ANYTHING, *lengths)
    return (type,)
