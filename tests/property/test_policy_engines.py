"""One schema, three engines: the fast interpreter, Cerberus and JSON Schema are of one mind about every document."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from support.policy_documents import JSON, documents, mutated

from prespawn.policy import shipped, shipped_schemas, structure
from prespawn.policy.catalogue import loader
from prespawn.policy.json_schema import json_schema
from prespawn.policy.shape import Fault, examine, key_faults

FORMATS = loader(frozenset()).formats

KEYS = {"unknown-key", "missing-key"}

each_format = pytest.mark.parametrize("name", sorted(FORMATS))


VALID = {name: documents(of.fields) for name, of in FORMATS.items()}
MUTATED = {name: mutated(of.fields) for name, of in FORMATS.items()}


@cache
def published(name: str) -> Draft202012Validator:
    """Return the validator of the published schema; what extends another document is judged with that one elsewhere."""
    schema = json_schema(FORMATS[name])
    if "$defs" in schema:
        schema = {**schema["$defs"]["whole"], "$defs": schema["$defs"]}
    return Draft202012Validator(schema)


def named(faults: list[Fault]) -> set[tuple[str, tuple[str | int, ...], bool]]:
    """Return what was found and where; the words may differ."""
    return {(fault.cause, fault.at, fault.key) for fault in faults}


def verdicts(name: str, document: Any) -> dict[str, bool]:
    """Return what each engine says: is it a document of the format?"""
    of = FORMATS[name]
    return {
        "shape": not examine(document, of.table)[1],
        "cerberus": not structure.faults(document, of.fields),
        "json-schema": published(name).is_valid(document),
    }


@each_format
@given(data=st.data())
def test_valid_documents_pass_all_engines(name: str, data: st.DataObject) -> None:
    document = data.draw(VALID[name])
    assert verdicts(name, document) == {"shape": True, "cerberus": True, "json-schema": True}


@each_format
@given(data=st.data())
def test_engines_agree_on_mutated_documents(name: str, data: st.DataObject) -> None:
    document = data.draw(MUTATED[name])
    assert len(set(verdicts(name, document).values())) == 1, verdicts(name, document)
    fast, slow = examine(document, FORMATS[name].table)[1], structure.faults(document, FORMATS[name].fields)
    assert named(fast) == named(slow)
    keys = named(key_faults(document, FORMATS[name].table))
    assert {fault for fault in named(fast) if fault[0] in KEYS} <= keys
    assert {cause for cause, *_ in keys} <= KEYS


@each_format
@given(data=st.data())
def test_engines_agree_on_any_mapping(name: str, data: st.DataObject) -> None:
    names = st.sampled_from(sorted(FORMATS[name].fields)) | st.text(max_size=4)
    document = data.draw(st.dictionaries(names, JSON, max_size=6))
    assert len(set(verdicts(name, document).values())) == 1, verdicts(name, document)


@each_format
@given(document=JSON)
def test_the_interpreter_takes_any_value(name: str, document: Any) -> None:
    first = examine(document, FORMATS[name].table)
    assert first == examine(document, FORMATS[name].table)
    assert isinstance(document, dict) or first[1][0].cause == "type"


def test_every_format_has_a_published_schema_and_rules() -> None:
    assert set(shipped.TABLES) == set(shipped_schemas.FIELDS) == set(FORMATS)
