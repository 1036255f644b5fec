"""The documents that a newcomer meets say what the code says."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_contributing_gives_a_reason_for_every_dependency() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["install_requires"].split("\n")
    for extra in setup["options.extras_require"].values():
        lines += extra.split("\n")
    names = {re.split(r"[>=\[]", line.strip())[0].lower() for line in lines if line.strip()} - {"prespawn"}
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").lower()
    assert {name for name in names if name.removeprefix("types-") not in table} == set()
