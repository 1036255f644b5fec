"""Reading ``schemas/*.yaml``: the one source of each format.

A schema file is a ``schema/v1`` document whose ``fields`` are Cerberus rules, each field with ``meta``:

* ``doc``: one sentence, with the unit;
* ``narrower``: the direction in which the field gives less authority, from the closed set of ``policy.authority``;
  every field of a format with ``authority: true`` has one. ``absent`` says on which end null stands where it could be
  either, or that it is another kind of thing, ``hidden: true`` that values are never shown;
* ``form``: what a pattern asks for, in words, where the pattern itself would not be read.

Of Cerberus' rules a subset is accepted, in which three engines can agree: ``_RULES`` says which ones each type takes.
A rule that one of them would read otherwise is refused here, as is a pattern that means different texts in Python and
in ECMAScript. It leaves what the rules mean to ``policy.table``, ``policy.structure`` and ``policy.json_schema``.
"""

from __future__ import annotations

from . import direction, table
from .format import FIRST_KEY, Format, format_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .reader import Document

NAME = "schema/v1"

_EVERY = {"type", "required", "nullable", "default", "meta"}
_RULES: Mapping[str, set[str]] = {
    "string": {"regex", "allowed", "minlength", "maxlength"},
    "integer": {"min", "max"},
    "boolean": set(), "bytes": set(), "duration": set(), "none": set(), "json": set(),
    "list": {"schema", "minlength", "maxlength", "unique"},
    "dict": {"schema", "keysrules", "valuesrules", "minlength", "maxlength"},
}  # fmt: skip
_SHORTHANDS = ("\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\b", "\\B", "\\A", "\\Z")  # other letters in each language
_SIGNS = ("$", "^", ".")  # mean a line's end or any character but some, and which ones differs
_META = {"doc", "form", "narrower", "absent", "hidden"}


def read_schema(document: Document) -> Format:
    """Return the format that a schema document describes; raises ``ReadError`` (cause ``value`` or ``missing-key``)."""
    format_of(document, (NAME,))
    root: Any = document.value
    _Checker(document, trusted=bool(root.get("authority"))).root(root)
    name = root["format"]
    first = {"type": "string", "required": True, "allowed": [name]}
    first["meta"] = {"doc": "What this document is; always its first key.", "narrower": "free"}
    fields = {FIRST_KEY: first, **root["fields"]}
    return Format(
        name=name,
        title=root["title"],
        fields=fields,
        table=(table.record(fields),),
        authority=direction.entries(fields) if root["authority"] else None,
    )


class _Checker:
    """One walk through the rules; the first fault is raised."""

    def __init__(self, document: Document, *, trusted: bool) -> None:
        self.document, self.trusted = document, trusted

    def root(self, root: Any) -> None:
        kinds = {FIRST_KEY: str, "format": str, "title": str, "authority": bool, "fields": dict}
        self.keys(root, set(kinds), ())
        for key, kind in kinds.items():
            if not isinstance(root.get(key), kind):
                raise self.document.error("missing-key", f"a schema needs `{key}`, of type {kind.__name__}")
        self.fields(root["fields"], ("fields",))

    def fields(self, fields: Any, at: tuple[str, ...]) -> None:
        self.demand(isinstance(fields, dict) and fields, "a mapping of fields that is not empty", at)
        for name, rules in fields.items():
            self.rules(rules, (*at, name))
            meta = rules.get("meta", {})
            self.demand(isinstance(meta.get("doc"), str), "a field with `meta.doc`", (*at, name))
            if self.trusted:
                problem = direction.problem(rules)
                self.demand(not problem, problem, (*at, name))

    def rules(self, rules: Any, at: tuple[str, ...]) -> None:
        self.demand(isinstance(rules, dict), "a mapping of rules", at)
        if "anyof" in rules:
            self.keys(rules, (_EVERY - {"type"}) | {"anyof"}, at)
            for rule in rules["anyof"]:
                self.rules(rule, (*at, "anyof"))
                self.demand(not rule.keys() & (_EVERY - {"type"}), "alternatives without `nullable` and the like", at)
            return
        types = table.types(rules)
        self.demand(types and set(types) <= set(_RULES), f"`type` among {', '.join(_RULES)}", at)
        self.keys(rules, _EVERY.union(*(_RULES[type] for type in types)), at)
        self.keys(rules.get("meta", {}), _META, (*at, "meta"))
        self.nested(rules, types, at)

    def nested(self, rules: Mapping[str, Any], types: tuple[str, ...], at: tuple[str, ...]) -> None:
        if "schema" in rules:
            self.demand(not {"list", "dict"} <= set(types), "`schema` for a list or a mapping, not both", at)
            self.demand("keysrules" not in rules, "`schema` or `keysrules`, not both", at)
            below = self.fields if "dict" in types else self.rules
            below(rules["schema"], (*at, "schema"))
            lengths = rules.keys() & {"minlength", "maxlength"}
            self.demand("dict" not in types or not lengths, "no length beside named fields", at)
        for name in ("keysrules", "valuesrules"):
            if name in rules:
                self.rules(rules[name], (*at, name))
        pattern = rules.get("regex", "")
        for unlike in (*_SHORTHANDS, *_SIGNS):
            found = pattern if unlike in _SHORTHANDS else _without_classes(pattern)
            self.demand(unlike not in found, f"a pattern without `{unlike}`, which differs between languages", at)

    def keys(self, mapping: Mapping[str, Any], allowed: set[str], at: tuple[str, ...]) -> None:
        for key in mapping:
            self.demand(key in allowed, ", ".join(sorted(allowed)), (*at, key))

    def demand(self, holds: object, wanted: str, at: tuple[str, ...]) -> None:
        if not holds:
            raise self.document.error("value", f"`{'.'.join(at)}` is no rule here; allowed here: {wanted}", *at)


def _without_classes(pattern: str) -> str:
    """Return a pattern without escaped characters and character classes, in which signs stand for themselves."""
    import re

    return re.sub(r"\\.|\[\^?(?:\\.|[^]\\])*\]", "", pattern)
