"""The documents that a newcomer meets say what the code says."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACE = re.compile(
    r"`((?:policy|blockers|checker|launchers|prespawn|examples|tests)/[a-z0-9_./-]*)`|\]\(([A-Za-z][\w./-]*)\)"
)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "blockers/README.md"])
def test_document_names_only_files_that_are_there(name: str) -> None:
    found = {"".join(place) for place in PLACE.findall((ROOT / name).read_text("utf-8"))}
    made_up = {"blockers/the-hazard-not-the-cure.yaml"}  # the one that a newcomer is to write
    here = (ROOT / name).parent
    assert found
    assert {place for place in found - made_up if not (here / place).exists() and not (ROOT / place).exists()} == set()


def test_contributing_gives_a_reason_for_every_dependency() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["install_requires"].split("\n")
    for extra in setup["options.extras_require"].values():
        lines += extra.split("\n")
    names = {re.split(r"[>=\[]", line.strip())[0].lower() for line in lines if line.strip()} - {"prespawn"}
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").lower()
    assert {name for name in names if name.removeprefix("types-") not in table} == set()
