"""What is generated says what the YAML says, and depends on nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.seccomp import DEFAULT, VALUE
from support.seccomp import TABLES as MACHINES

from prespawn import compile as generator
from prespawn.blockers import shipped as blockers
from prespawn.launchers.seccomp import compile_filter
from prespawn.policy import shipped, shipped_filters, shipped_schemas
from prespawn.policy.canonical import digest
from prespawn.policy.catalogue import adapters, built_in_site, levels, named_lists, profiles
from prespawn.policy.codec import encode
from prespawn.policy.filters import NO_FILTER, shipped_filter

if TYPE_CHECKING:
    from pathlib import Path

    from prespawn.compile import Render

TARGETS = generator.targets()


@pytest.mark.parametrize(("path", "render"), TARGETS, ids=lambda part: getattr(part, "name", ""))
def test_generated_file_is_in_step(path: Path, render: Render) -> None:
    assert path.read_text("utf-8") == render(), f"{path.name} is stale: run `python -m prespawn.compile`"


def test_every_schema_is_published_and_nothing_else_is() -> None:
    published = generator.POLICY / "schemas" / "json"
    names = {f"{path.stem}-v1.json" for path in (generator.POLICY / "schemas").glob("*.yaml")}
    assert {path.name for path in published.iterdir()} == names
    assert {path for path, _ in TARGETS if path.parent == published} == {published / name for name in names}


def test_every_policy_file_is_shipped_under_its_own_name() -> None:
    for folder, shipped_ones in (("profiles", shipped.PROFILES), ("lists", shipped.LISTS), ("sites", shipped.SITES)):
        assert {path.stem for path in (generator.POLICY / folder).glob("*.yaml")} == set(shipped_ones)
    assert {f"{path.stem}" for path in (generator.POLICY / "adapters").glob("*.yaml")} == {
        id.partition("@")[0] for id in shipped.ADAPTERS
    }


def test_shipped_literals_make_the_records_that_they_were_made_from() -> None:
    load = generator.loader()
    made = load.profiles(list(generator.documents(generator.POLICY / "profiles")), {})
    assert profiles() == made
    assert adapters() == {one.id: one for one in map(load.adapter, generator.documents(generator.POLICY / "adapters"))}
    assert named_lists() == {
        one.id: one for one in map(load.named_list, generator.documents(generator.POLICY / "lists"))
    }
    assert levels() == load.levels(generator.document(generator.POLICY / "levels.yaml"))
    assert built_in_site() == load.site(generator.document(generator.POLICY / "sites" / "built-in.yaml"))


def test_shipped_filters_are_what_their_files_say() -> None:
    assert {path.stem for path in (generator.POLICY / "seccomp").glob("*.json")} == set(shipped_filters.PROGRAMS)
    assert {path.stem for path in (generator.POLICY / "seccomp").glob("*.yaml")} == set(MACHINES)
    for machine, table in MACHINES.items():
        made = shipped_filter("default", machine)
        assert (made.name, made.machine, made.program) == ("default", machine, compile_filter(DEFAULT, table))
        assert made.digest == shipped.FILTERS["default"][machine] == digest([VALUE, encode(table)])


def test_every_filter_that_a_profile_may_name_is_shipped() -> None:
    process = generator.formats()["profile/v1"].fields["process"]["schema"]
    assert set(process["seccomp"]["allowed"]) == {NO_FILTER, *shipped_filters.PROGRAMS}


def test_machines_with_a_table_are_the_listed_ones() -> None:
    assert set(named_lists()["seccomp-machines"].names) == set(MACHINES)
    assert set(blockers.RULES["seccomp-table-missing"]["report"]["allowed"]) == set(MACHINES)


def test_a_changed_filter_is_another_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = generator.filter_digests()
    before = generator.policy_module()
    monkeypatch.setattr(generator, "filter_digests", lambda: {**digests, "default": {"x86_64": "sha256:0"}})
    after = generator.policy_module()
    assert [line for line in before.splitlines() if line.startswith("DIGEST:")] != [
        line for line in after.splitlines() if line.startswith("DIGEST:")
    ]


def test_shipped_literals_are_the_canonical_models() -> None:
    assert {id: encode(one) for id, one in profiles().items()} == shipped.PROFILES
    assert encode(levels()) == shipped.LEVELS


def test_shipped_rules_and_tables_are_those_of_the_schemas() -> None:
    for name, of in generator.formats().items():
        assert shipped.TABLES[name] == of.table
        assert shipped_schemas.FIELDS[name] == of.fields
        assert shipped.AUTHORITY.get(name) == of.authority


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        5,
        "x\n\u00e9\ud800",
        [],
        [[1], {"a": (1,)}],
        {"k": ["word"] * 60},
        (("dict", {"n": (True, ("x",) * 40)}),),
    ],
)
def test_literal_is_the_value(value: Any) -> None:
    text = generator.literal(value)
    assert eval(text) == value
    assert text.isascii()


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True).stdout


def test_output_does_not_depend_on_the_hash_seed() -> None:
    code = "from prespawn.compile import targets; print([hash_of(render()) for _, render in targets()])"
    code = f"from prespawn.policy.canonical import digest as hash_of; {code}"
    results = {
        subprocess.run(
            [sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(results) == 1


def test_shipped_policy_needs_neither_yaml_nor_cerberus_nor_re() -> None:
    code = """
import sys
before = set(sys.modules)
from prespawn.policy.catalogue import adapters, built_in_site, levels, named_lists, profiles, table
from prespawn.policy.shape import key_faults
profiles(), adapters(), levels(), built_in_site(), named_lists()
key_faults({"prespawn": "declaration/v1", "execution": {"argv": 5}}, table("declaration/v1"), ())
print(sorted({name.partition('.')[0] for name in set(sys.modules) - before}))
"""
    loaded = set(json.loads(run(code).replace("'", '"')))
    assert not loaded & {
        "re",
        "yaml",
        "cerberus",
        "json",
        "jsonschema",
        "typing",
        "dataclasses",
        "pathlib",
        "enum",
        "subprocess",
    }
    assert "prespawn" in loaded


def test_check_reports_a_stale_file_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.py"
    path.write_text("old", "utf-8")
    monkeypatch.setattr(generator, "HERE", tmp_path)
    monkeypatch.setattr(generator, "targets", lambda: [(path, lambda: "new")])
    assert generator.main(["--check"]) == 1
    assert capsys.readouterr().out == "policy.py is not what its sources say; run `python -m prespawn.compile`\n"
    assert path.read_text("utf-8") == "old"
    assert generator.main([]) == 0
    assert path.read_text("utf-8") == "new"
    assert generator.main(["--check"]) == 0


def test_unknown_argument_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert generator.main(["--fix"]) == 2
    assert capsys.readouterr().err == "usage: python -m prespawn.compile [--check]\n"
