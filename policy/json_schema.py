"""Cerberus rules as JSON Schema (draft 2020-12), for editors and other languages.

The generated files stand in ``schemas/json/``; they say exactly what ``policy.shape`` says (a property test holds
that). A pattern ends with ``(?![\\s\\S])`` instead of ``$``, before which some engines let a newline pass. Documents
that extend another one may leave out everything that they do not change.
"""

from __future__ import annotations

from .table import types
from .units import MOST, UNITS, pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .format import Format

    Rules = Mapping[str, Any]
    Json = dict[str, Any]

_END = r"(?![\s\S])"


def json_schema(of: Format) -> Json:
    """Return the JSON Schema of a format, ready to be written as JSON."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:prespawn:{of.name.replace('/', ':')}",
        "title": of.name,
        "description": of.title,
    }
    if "extends" not in of.fields:
        return {**head, **_record(of.fields)}
    extending = {"properties": {"extends": {"type": "string"}}, "required": ["extends"]}
    kept = {name: {**rules, "required": name in ("prespawn", "id")} for name, rules in of.fields.items()}
    return {
        **head,
        "if": extending,
        "then": {"$ref": "#/$defs/extending"},
        "else": {"$ref": "#/$defs/whole"},
        "$defs": {"whole": _record(of.fields), "extending": _record(kept, partial=True)},
    }


def _record(fields: Mapping[str, Rules], partial: bool = False, top: bool = True) -> Json:
    required = [name for name, rules in fields.items() if rules.get("required") and (top or not partial)]
    schema: Json = {
        "type": "object",
        "properties": {name: _field(rules, partial) for name, rules in fields.items()},
        "additionalProperties": False,
    }
    return {**schema, "required": required} if required else schema


def _field(rules: Rules, partial: bool) -> Json:
    schema = _any(rules, partial)
    if "doc" in rules.get("meta", {}):
        schema = {"description": rules["meta"]["doc"], **schema}
    return {**schema, "default": rules["default"]} if "default" in rules and not partial else schema


def _any(rules: Rules, partial: bool = False) -> Json:
    alternatives = [_typed(type, rule, partial) for rule in rules.get("anyof", (rules,)) for type in types(rule)]
    if rules.get("nullable"):
        alternatives.append({"type": "null"})
    return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}


def _typed(type: str, rules: Rules, partial: bool) -> Json:
    if type in UNITS:
        text = {"type": "string", "pattern": f"^{pattern(type)}{_END}"}
        number = {"type": "integer", "minimum": 1, "maximum": MOST}
        return {"anyOf": [number, text]} if type == "bytes" else text
    if type == "dict" and "schema" in rules:
        return _record(rules["schema"], partial, top=False)
    return _SIMPLE[type](rules)


def _string(rules: Rules) -> Json:
    schema: Json = {"type": "string"}
    if "allowed" in rules:
        schema["enum"] = list(rules["allowed"])
    if "regex" in rules:
        schema["pattern"] = f"^(?:{rules['regex']}){_END}"
    return schema | _lengths(rules, "minLength", "maxLength")


def _list(rules: Rules) -> Json:
    schema: Json = {"type": "array"}
    if "schema" in rules:
        schema["items"] = _any(rules["schema"])
    if rules.get("unique"):
        schema["uniqueItems"] = True
    return schema | _lengths(rules, "minItems", "maxItems")


def _map(rules: Rules) -> Json:
    schema: Json = {"type": "object"}
    if "keysrules" in rules:
        schema["propertyNames"] = _any(rules["keysrules"])
    if "valuesrules" in rules:
        schema["additionalProperties"] = _any(rules["valuesrules"])
    return schema | _lengths(rules, "minProperties", "maxProperties")


def _lengths(rules: Rules, shortest: str, longest: str) -> Json:
    named = {"minlength": shortest, "maxlength": longest}
    return {named[rule]: rules[rule] for rule in named if rule in rules}


_SIMPLE = {
    "boolean": lambda rules: {"type": "boolean"},
    "integer": lambda rules: {"type": "integer", "minimum": rules.get("min", -MOST), "maximum": rules.get("max", MOST)},
    "none": lambda rules: {"const": "none"},
    "json": lambda rules: {"type": ["boolean", "integer", "string", "array", "object"]},
    "string": _string,
    "list": _list,
    "dict": _map,
}
