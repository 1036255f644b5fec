"""References of blocker files: each leads to a field, or the file is refused with the names that there are."""

from __future__ import annotations

from typing import Any

import pytest
from support.world import pages

from prespawn.checker.references import reference_faults

PAGE = pages()["declared-file-missing"]


def faults(**changes: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the faults of a shipped file of which some keys were changed."""
    return list(reference_faults({**PAGE, **changes}))


def test_every_shipped_reference_leads_somewhere() -> None:
    assert {id: list(reference_faults(page)) for id, page in pages().items()} == {id: [] for id in pages()}


@pytest.mark.parametrize(
    ("when", "place", "said"),
    [
        ({"given": "facts.workspace.colour"}, ("when", "given"), "`facts.workspace` has no `colour`"),
        (
            {
                "all": [
                    {"given": "item"},
                    {"longer_than": {"value": "declaration.argument", "limit": "profile.limits.argv"}},
                ]
            },
            ("when", "all", 1, "longer_than", "value"),
            "`declaration` has no `argument`",
        ),
        ({"given": "facts.workspace.name.length"}, ("when", "given"), "`facts.workspace.name` has no `length`"),
        ({"not": {"given": "item.colour"}}, ("when", "not", "given"), "`item` has no `colour`"),
    ],
)
def test_reference_of_a_condition_that_leads_nowhere_is_named(when: Any, place: Any, said: str) -> None:
    ((found, message),) = faults(when=when)
    assert found == place
    assert said in message
    assert "; allowed: " in message


def test_literal_is_no_reference() -> None:
    assert faults(when={"equals": {"value": "facts.workspace.name", "to": "facts.workspace.colour"}}) == []


def test_reference_of_a_report_that_leads_nowhere_is_named() -> None:
    report = {**PAGE["report"], "allowed": ["a word", "below {site.colour}"]}
    ((found, message),) = faults(report=report)
    assert found == ("report", "allowed", 1)
    assert message.startswith("`site.colour`: `site` has no `colour`; allowed: ")


def test_elements_of_nothing_have_no_fields() -> None:
    assert [place for place, _ in faults(each="facts.files")] == [
        ("each",),
        ("when", "not", "equals", "value"),
        ("report", "found"),
    ]
