"""What a filter may not say: each refused with its cause, its words and, in a file, its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.bpf import Filter
from support.seccomp import DROP, SMALL, TABLES, TEXT, changed, document

from prespawn.launchers.seccomp import compile_filter
from prespawn.policy.errors import InputError, ReadError

X86 = TABLES["x86_64"]
CASES = yaml.safe_load((Path(__file__).parents[1] / "data" / "seccomp_refusals.yaml").read_bytes())
READABLE = [case for case in CASES if case["case"] != "value-large"]  # the reader itself refuses that one


def refused(case: Any) -> Any:
    """Return the filter of a case."""
    to = DROP if "drop" in case else case["to"]
    return changed(*case["at"], to=to) if case["at"] else to


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_filter_is_refused(case: Any) -> None:
    with pytest.raises(InputError) as caught:
        compile_filter(refused(case), X86)
    assert type(caught.value) is InputError
    assert (caught.value.id, str(caught.value)) == (f"policy-{case['cause']}", case["message"])


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case["case"])
def test_file_is_refused_with_its_place(case: Any) -> None:
    with pytest.raises(ReadError) as caught:
        compile_filter(document(json.dumps(refused(case), indent=1)), X86)
    error = caught.value
    assert (error.id, error.cause, error.message) == (f"policy-{case['cause']}", case["cause"], case["message"])
    assert (error.source, error.line > 0) == ("filter.json", True)


def test_place_is_that_of_the_name() -> None:
    with pytest.raises(ReadError) as caught:
        compile_filter(document(TEXT.replace('"lseek"', '"lseke"')), X86)
    line = next(at for at, text in enumerate(TEXT.splitlines(), 1) if '"lseek"' in text)
    column = TEXT.splitlines()[line - 1].index('"lseek"') + 1
    assert str(caught.value).startswith(f"filter.json:{line}:{column}: ")
    assert str(caught.value).endswith("did you mean `lseek` (policy-unknown-call)")


def test_the_small_filter_itself_is_taken() -> None:
    Filter(compile_filter(SMALL, X86))
