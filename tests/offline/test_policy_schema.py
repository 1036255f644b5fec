"""Schema files: what the three engines could read differently is refused when the schema is read."""

from __future__ import annotations

import re

import pytest

from prespawn.policy import shipped, shipped_schemas
from prespawn.policy.catalogue import loader
from prespawn.policy.errors import ReadError
from prespawn.policy.json_schema import json_schema
from prespawn.policy.reader import read
from prespawn.policy.schema import read_schema

HEAD = "prespawn: schema/v1\nformat: x/v1\ntitle: x\nauthority: {}\nfields:\n"


def refusal(field: str, *, authority: str = "false") -> str:
    text = HEAD.format(authority) + f"  a: {field}\n"
    with pytest.raises(ReadError) as refused:
        read_schema(read(text.encode(), source="x.yaml", family="policy", syntax="yaml"))
    assert refused.value.id == "policy-value"
    return refused.value.message


TYPES = "`type` among string, integer, boolean, bytes, duration, none, json, list, dict"
TEXT = "allowed, default, maxlength, meta, minlength, nullable, regex, required, type"
UNLIKE = "a pattern without `{}`, which differs between languages"
DOC = "meta: {doc: x}"


@pytest.mark.parametrize(
    ("field", "at", "allowed"),
    [
        ("{type: string}", "", "a field with `meta.doc`"),
        (f"{{type: number, {DOC}}}", "", TYPES),
        (f"{{type: [], {DOC}}}", "", TYPES),
        (f"{{type: list, schema: {{type: widget}}, {DOC}}}", ".schema", TYPES),
        (f"{{type: string, min: 5, {DOC}}}", ".min", TEXT),
        (f"{{type: string, coerce: int, {DOC}}}", ".coerce", TEXT),
        (f"{{type: bytes, max: 5, {DOC}}}", ".max", "default, meta, nullable, required, type"),
        (f"{{type: string, regex: '[a-z]+$', {DOC}}}", "", UNLIKE.format("$")),
        (f"{{type: string, regex: 'a.b', {DOC}}}", "", UNLIKE.format(".")),
        (f"{{type: string, regex: '\\d+', {DOC}}}", "", UNLIKE.format("\\d")),
        (f"{{type: string, regex: '[\\w]', {DOC}}}", "", UNLIKE.format("\\w")),
        (f"{{type: dict, schema: {{b: {{type: string}}}}, {DOC}}}", ".schema.b", "a field with `meta.doc`"),
        (
            f"{{type: dict, schema: {{b: {{type: string, {DOC}}}}}, maxlength: 3, {DOC}}}",
            "",
            "no length beside named fields",
        ),
        (
            f"{{type: [dict, list], schema: {{type: string}}, {DOC}}}",
            "",
            "`schema` for a list or a mapping, not both",
        ),
        ("{type: string, meta: {doc: x, dok: z}}", ".meta.dok", "absent, doc, form, hidden, narrower"),
    ],
)
def test_schema_rule_outside_the_subset_is_refused(field: str, at: str, allowed: str) -> None:
    assert refusal(field) == f"`fields.a{at}` is no rule here; allowed here: {allowed}"


WORDS = "`meta.narrower`, one of lower, higher, subset, superset, ordered, entries, named, fields, equal, free"
EVERY_WORD = "`narrower: {ordered: [...]}` with every word that the field may have"
ABSENT = "`absent`, one of incomparable, narrowest, widest, where null may stand, and nowhere else"
NAMED = "schema: {b: {type: json, meta: {doc: x, narrower: equal}}}"


@pytest.mark.parametrize(
    ("rules", "narrower", "wanted"),
    [
        ("type: string", "", WORDS),
        ("type: string", ", narrower: smaller", WORDS),
        ("type: string", ", narrower: ordered", WORDS),
        ("type: dict, schema: {b: {type: json, meta: {doc: x}}}", ", narrower: equal", WORDS),
        ("type: string", ", narrower: lower", "`lower` and `higher` for numbers"),
        ("type: string", ", narrower: subset", "`subset` and `superset` for lists"),
        ("type: list", ", narrower: entries", "`entries` and `named` for free-keyed mappings"),
        ("type: dict", ", narrower: fields", "`fields` for mappings with named fields"),
        ("type: string, allowed: [a, b]", ", narrower: {ordered: [a]}", EVERY_WORD),
        ("type: boolean", ", narrower: {ordered: [true]}", EVERY_WORD),
        (f"type: dict, nullable: true, {NAMED}", ", narrower: fields", ABSENT),
        (f"type: dict, {NAMED}", ", narrower: fields, absent: widest", ABSENT),
    ],
)
def test_trusted_field_without_a_fitting_direction_is_refused(rules: str, narrower: str, wanted: str) -> None:
    message = refusal(f"{{{rules}, meta: {{doc: x{narrower}}}}}", authority="true")
    assert message.partition("; allowed here: ")[2] == wanted


@pytest.mark.parametrize("key", ["format", "title", "authority", "fields"])
def test_schema_without_its_head_is_refused(key: str) -> None:
    text = "".join(line + "\n" for line in HEAD.format("true").splitlines() if not line.startswith(key))
    text += "" if key == "fields" else "  a: {type: json, meta: {doc: x, narrower: equal}}\n"
    with pytest.raises(ReadError) as refused:
        read_schema(read(text.encode(), source="x.yaml", family="policy", syntax="yaml"))
    assert refused.value.id == "policy-missing-key"


def test_every_trusted_format_has_an_authority_and_no_other_has() -> None:
    assert set(shipped.AUTHORITY) == {"adapter/v1", "approval/v1", "levels/v1", "list/v1", "profile/v1", "site/v1"}
    assert set(shipped.TABLES) >= {*shipped.AUTHORITY, "declaration/v1"}


def test_every_field_is_explained() -> None:
    for name, fields in shipped_schemas.FIELDS.items():
        for at, rules in _fields(fields):
            assert len(rules["meta"]["doc"]) > 5, f"{name}: {at}"


def _fields(fields: object, at: str = "") -> list[tuple[str, dict[str, dict[str, str]]]]:
    assert isinstance(fields, dict)
    found = []
    for name, rules in fields.items():
        found.append((f"{at}.{name}", rules))
        if "schema" in rules and "type" not in rules["schema"]:
            found += _fields(rules["schema"], f"{at}.{name}")
    return found


def test_published_patterns_match_no_trailing_newline_in_any_engine() -> None:
    formats = loader(frozenset()).formats
    seen = 0
    for of in formats.values():
        for pattern in _patterns(json_schema(of)):
            seen += 1
            assert pattern.startswith("^")
            assert pattern.endswith(r"(?![\s\S])")
            assert "$" not in pattern.replace(r"\$", "")
            assert re.search(pattern, "x\n") is None
    assert seen > 50


def _patterns(schema: object) -> list[str]:
    if isinstance(schema, dict):
        own = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
        return own + [pattern for part in schema.values() for pattern in _patterns(part)]
    return [pattern for part in schema for pattern in _patterns(part)] if isinstance(schema, list) else []
