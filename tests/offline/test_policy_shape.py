"""The interpreter: every fault, by cause, place and words; every engine in the same terms."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from prespawn.policy import structure
from prespawn.policy.canonical import canonical
from prespawn.policy.catalogue import table
from prespawn.policy.errors import ReadError
from prespawn.policy.format import format_of
from prespawn.policy.json_schema import json_schema
from prespawn.policy.reader import Document, read
from prespawn.policy.schema import read_schema
from prespawn.policy.shape import check, check_keys, examine, key_faults, normalise

SCHEMA = """\
prespawn: schema/v1
format: sample/v1
title: a bit of everything
authority: false
fields:
  name: {type: string, required: true, regex: '[a-z]+', maxlength: 5, meta: {doc: A name.}}
  mode: {type: string, allowed: [one, two], default: one, meta: {doc: A word.}}
  count: {type: integer, min: 1, max: 9, meta: {doc: A count.}}
  size: {type: bytes, nullable: true, default: null, meta: {doc: A size.}}
  time: {type: duration, meta: {doc: A time.}}
  flag: {type: boolean, meta: {doc: A flag.}}
  lease:
    type: [none, dict]
    schema: {bytes: {type: bytes, required: true, meta: {doc: A size.}}}
    meta: {doc: A lease.}
  path: {type: [string, dict], schema: {at: {type: string, required: true, meta: {doc: A path.}}}, meta: {doc: A path.}}
  words: {type: list, unique: true, minlength: 1, maxlength: 3, schema: {type: string}, meta: {doc: Words.}}
  map:
    type: dict
    keysrules: {type: string, regex: '[A-Z]'}
    valuesrules: {type: integer, min: 0}
    meta: {doc: A map.}
  open: {type: dict, meta: {doc: Anything.}}
  any: {type: json, nullable: true, meta: {doc: Anything.}}
  seen:
    anyof:
      - {type: dict, schema: {unknown: {type: string, required: true, meta: {doc: A reason.}}}}
      - type: dict
        schema:
          path: {type: string, required: true, meta: {doc: A path.}}
          inode: {type: integer, meta: {doc: A number.}}
      - {type: boolean}
    meta: {doc: A fact.}
"""
SAMPLE = read_schema(read(SCHEMA.encode(), source="sample.yaml", family="policy", syntax="yaml"))

LOWER = "allowed here: text that is `[a-z]+` from beginning to end"
UPPER = "allowed here: text that is `[A-Z]` from beginning to end"
FAULTS = [
    ({}, "missing-key", ("name",), "`name` is missing; add it"),
    ({"name": "x\n"}, "pattern", ("name",), rf"`name` is `x\x0a`; {LOWER}"),
    ({"name": "x "}, "pattern", ("name",), f"`name` is `x `; {LOWER}"),
    ({"name": "aaaaaa"}, "length", ("name",), "`name` has 6 characters; allowed here: 0 to 5"),
    ({"name": None}, "type", ("name",), "`name` is null; allowed here: text"),
    ({"name": 5}, "type", ("name",), "`name` is a number; allowed here: text"),
    ({"name": "a", "mode": "three"}, "value", ("mode",), "`mode` is `three`; allowed here: `one`, `two`"),
    ({"name": "a", "count": 0}, "range", ("count",), "`count` is `0`; allowed here: 1 to 9"),
    ({"name": "a", "count": 10**30}, "range", ("count",), f"`count` is `{10**30}`; allowed here: 1 to 9"),
    ({"name": "a", "count": True}, "type", ("count",), "`count` is a boolean; allowed here: a whole number"),
    ({"name": "a", "count": "1"}, "type", ("count",), "`count` is text; allowed here: a whole number"),
    ({"name": "a", "flag": 1}, "type", ("flag",), "`flag` is a number; allowed here: `true` or `false`"),
    ({"name": "a", "size": 0}, "range", ("size",), f"`size` is `0`; allowed here: 1 to {2**53 - 1}"),
    ({"name": "a", "size": -1}, "range", ("size",), f"`size` is `-1`; allowed here: 1 to {2**53 - 1}"),
    ({"name": "a", "size": 10**30}, "range", ("size",), f"`size` is `{10**30}`; allowed here: 1 to {2**53 - 1}"),
    (
        {"name": "a", "size": "0MiB"},
        "range", ("size",),
        "`size` is `0MiB`; allowed here: 1 to 999999 of a unit; write more in the next larger one",
    ),
    (
        {"name": "a", "size": "5MB"},
        "pattern", ("size",),
        "`size` is `5MB`; allowed here: a size such as `512MiB`, in `KiB`, `MiB`, `GiB`",
    ),
    ({"name": "a", "size": []}, "type", ("size",), "`size` is a list; allowed here: a size such as `512MiB` or null"),
    ({"name": "a", "time": 30}, "type", ("time",), "`time` is a number; allowed here: a time such as `30m`"),
    (
        {"name": "a", "time": "30"},
        "pattern", ("time",),
        "`time` is `30`; allowed here: a time such as `30m`, in `ms`, `s`, `m`, `h`, `d`",
    ),
    ({"name": "a", "lease": "nome"}, "value", ("lease",), "`lease` is `nome`; allowed here: `none`"),
    ({"name": "a", "lease": 1}, "type", ("lease",), "`lease` is a number; allowed here: `none` or a mapping"),
    ({"name": "a", "lease": {}}, "missing-key", ("lease", "bytes"), "`lease.bytes` is missing; add it"),
    ({"name": "a", "words": []}, "length", ("words",), "`words` has 0 entries; allowed here: 1 to 3"),
    ({"name": "a", "words": ["x", 5]}, "type", ("words", 1), "`words[1]` is a number; allowed here: text"),
    (
        {"name": "a", "words": ["x", "y", "x"]},
        "duplicate-item", ("words", 2),
        "`words[2]` is `x`, which stands in the list before; keep one",
    ),
    ({"name": "a", "map": {"b": 1}}, "pattern", ("map", "b"), f"`map.b` is `b`; {UPPER}"),
    ({"name": "a", "map": {"B": -1}}, "range", ("map", "B"), f"`map.B` is `-1`; allowed here: 0 to {2**53 - 1}"),
    ({"name": "a", "naem": 1}, "unknown-key", ("naem",), "unknown key `naem`; did you mean `name`"),
    (
        {"name": "a", "lease": {"bytes": 1, "butes": 1}},
        "unknown-key", ("lease", "butes"),
        "unknown key `lease.butes`; did you mean `bytes`",
    ),
    (
        {"name": "a", "lease": {"bytes": 1, "x": 1}},
        "unknown-key", ("lease", "x"),
        "unknown key `lease.x`; allowed here: `bytes`",
    ),
    ({"name": "a", "\u0440ath": "x"}, "unknown-key", ("\u0440ath",), r"unknown key `\u0440ath`; did you mean `path`"),
    ({"name": "a", "a\x1b[2J": "x"}, "unknown-key", ("a\x1b[2J",), None),
    ({"name": "a", "seen": "x"}, "type", ("seen",), "`seen` is text; allowed here: a mapping or `true` or `false`"),
    (
        {"name": "a", "seen": {"path": 5, "inode": 1}},
        "type", ("seen", "path"),
        "`seen.path` is a number; allowed here: text",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "cause", "at", "message"), FAULTS)
def test_shape_names_the_fault(fields: dict[str, Any], cause: str, at: tuple[str, ...], message: str | None) -> None:
    document = {"prespawn": "sample/v1", **fields}
    (fault,) = examine(document, SAMPLE.table)[1]
    assert (fault.cause, fault.at) == (cause, at)
    assert fault.message == message or message is None
    assert fault.message.isprintable()
    assert [(other.cause, other.at) for other in structure.faults(document, SAMPLE.fields)] == [(cause, at)]
    assert not Draft202012Validator(json_schema(SAMPLE)).is_valid(document)


def test_shape_normalises_units_words_and_defaults() -> None:
    document = {
        "prespawn": "sample/v1", "name": "a", "size": "4KiB", "time": "1h", "lease": "none", "path": {"at": "/x"},
        "words": ["x"], "map": {"A": 1}, "open": {"1": None}, "any": None, "seen": {"unknown": "no"},
    }  # fmt: skip
    assert normalise(document, SAMPLE.table) == {
        **document, "mode": "one", "size": 4096, "time": 3_600_000, "lease": None,
    }  # fmt: skip
    assert structure.faults(document, SAMPLE.fields) == []
    assert Draft202012Validator(json_schema(SAMPLE)).is_valid(document)


def test_shape_reports_all_faults_in_the_order_of_the_document() -> None:
    text = b"prespawn: sample/v1\nflag: 5\nsize: 0\nwords:\n  - x\n  - 7\nnmae: a\n"
    errors = check(read(text, source="a.yaml", family="policy", syntax="yaml"), SAMPLE.table)
    assert [(error.id, error.line, error.column) for error in errors] == [
        ("policy-missing-key", 1, 1),
        ("policy-type", 2, 7),
        ("policy-range", 3, 7),
        ("policy-type", 6, 5),
        ("policy-unknown-key", 7, 1),
    ]


def test_shape_of_a_record_that_changes_another_takes_what_is_left_out_from_it() -> None:
    base = {"prespawn": "sample/v1", "name": "a", "mode": "two", "size": 1, "lease": {"bytes": 7}, "map": {"A": 1}}
    value, faults = examine({"prespawn": "sample/v1", "size": "4KiB", "map": {}}, SAMPLE.table, base)
    assert (value, faults) == ({**base, "size": 4096, "map": {}}, [])
    (fault,) = examine({"lease": {}}, SAMPLE.table, {**base, "lease": None})[1]
    assert (fault.cause, fault.at) == ("missing-key", ("lease", "bytes"))


DECLARATION = table("declaration/v1")
DECLARED: dict[str, Any] = {
    "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "declared_files": [], "env_keys": [],
    "file_contract": {"mode": "read-only"},
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "profile": 5,
            "adapter": None,
            "declared_files": "x",
            "env_keys": {"a": 1},
            "file_contract": [],
            "execute": "y",
        },
        {"execution": "ls; id", "input": [1], "session": None, "level": ["container"], "run_id": {"x": {}}},
        {"execution": {"argv": {"image": "x"}}, "image": "x", "cwd": {"root": "/"}},
    ],
)
def test_keys_of_a_declaration_pass_with_any_value(changes: dict[str, Any]) -> None:
    assert key_faults({**DECLARED, **changes}, DECLARATION, {"image"}) == []


@pytest.mark.parametrize(
    ("changes", "cause", "at"),
    [
        ({"max_tokenz": 5}, "unknown-key", ("max_tokenz",)),
        ({"execution": {"argv": [], "shell_": True}}, "unknown-key", ("execution", "shell_")),
        ({"execution": {}}, "missing-key", ("execution", "argv")),
        ({"file_contract": {}}, "missing-key", ("file_contract", "mode")),
        ({"session": {"id": "x"}}, "missing-key", ("session", "intent")),
        ({"input": {"system": "x"}}, "missing-key", ("input", "prompt")),
    ],
)
def test_keys_of_a_declaration_are_judged_at_every_depth(
    changes: dict[str, Any], cause: str, at: tuple[str, ...]
) -> None:
    (fault,) = key_faults({**DECLARED, **changes}, DECLARATION)
    assert (fault.cause, fault.at) == (cause, at)


@pytest.mark.parametrize("name", ["profile", "adapter", "declared_files", "env_keys", "file_contract"])
def test_keys_of_a_declaration_that_it_must_have(name: str) -> None:
    text = canonical({key: value for key, value in DECLARED.items() if key != name}).encode()
    (error,) = check_keys(read(text, source="d.json", family="input", syntax="json"), DECLARATION)
    assert (error.id, error.line, error.column) == ("input-missing-key", 1, 1)


def test_tolerated_keys_pass_at_any_depth_with_all_below_them() -> None:
    value = {**DECLARED, "image": {"x": 1}, "execution": {"argv": [], "user": {"y": 2}}}
    assert key_faults(value, DECLARATION, {"image", "user"}) == []
    assert [fault.at for fault in key_faults(value, DECLARATION, {"image"})] == [("execution", "user")]


def document(text: str) -> Document:
    return read(text.encode(), source="p.yaml", family="policy", syntax="yaml")


@pytest.mark.parametrize(
    ("text", "id", "message"),
    [
        (
            "null",
            "policy-type",
            "the document is null; allowed here: a mapping that begins with `prespawn: profile/v1`",
        ),
        (
            "[]",
            "policy-type",
            "the document is a list; allowed here: a mapping that begins with `prespawn: profile/v1`",
        ),
        ("x", "policy-type", "the document is text; allowed here: a mapping that begins with `prespawn: profile/v1`"),
        (
            "7",
            "policy-type",
            "the document is a number; allowed here: a mapping that begins with `prespawn: profile/v1`",
        ),
        ("{}", "policy-invalid", "nothing in the document; allowed here: `prespawn: profile/v1` as its first key"),
        ("network: none", "policy-invalid", "the first key is `network`; allowed here: `prespawn: profile/v1`"),
        (
            "id: x\nprespawn: profile/v1",
            "policy-invalid",
            "the first key is `id`; allowed here: `prespawn: profile/v1`",
        ),
        ("prespawn: profile/v2", "policy-invalid", "`prespawn` is `profile/v2`; allowed here: `prespawn: profile/v1`"),
        (
            'prespawn: "profile/v1\\n"',
            "policy-invalid",
            r"`prespawn` is `profile/v1\x0a`; allowed here: `prespawn: profile/v1`",
        ),
        (
            "prespawn: [profile/v1]",
            "policy-invalid",
            '`prespawn` is `["profile/v1"]`; allowed here: `prespawn: profile/v1`',
        ),
    ],
)
def test_format_is_the_first_key_or_none(text: str, id: str, message: str) -> None:
    with pytest.raises(ReadError) as refused:
        format_of(document(text), ("profile/v1",))
    assert (refused.value.id, refused.value.message) == (id, message)


def test_format_is_returned_and_all_formats_are_named() -> None:
    assert format_of(document("prespawn: site/v1"), ("profile/v1", "site/v1")) == "site/v1"
    with pytest.raises(ReadError, match="allowed here: `prespawn: profile/v1`, `prespawn: site/v1`"):
        format_of(document("prespawn: x"), ("site/v1", "profile/v1"))
