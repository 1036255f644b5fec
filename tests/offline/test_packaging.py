"""What is in the checkout is what gets installed, under one set of names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("blockers", "policy", "checker", "launchers")


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_is_linked_into_the_package(folder: str) -> None:
    link = ROOT / "prespawn" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("..", folder)


@pytest.mark.parametrize("folder", (*FOLDERS, "prespawn"))
def test_every_folder_with_code_is_a_package(folder: str) -> None:
    bare = {path.parent for path in (ROOT / folder).rglob("*.py") if not (path.parent / "__init__.py").is_file()}
    assert not bare, "absent from the wheel: setuptools finds only folders with __init__.py"


def test_no_module_is_loaded_under_its_bare_folder_name() -> None:
    for name in ("prespawn.cli.commands", "prespawn.cli.exec", "prespawn.launch", "prespawn.cli.check"):
        importlib.import_module(name)
    assert not set(FOLDERS) & sys.modules.keys()
