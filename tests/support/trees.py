"""Small trees on disk, and the worker's part: an act between two looks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prespawn.checker.contract import Contract, ContractResult, compared
from prespawn.tree import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from prespawn.checker.contract import Tree

MOST = 1_000
READ_ONLY = Contract()


def mutation(*paths: str) -> Contract:
    """Return a contract that lets a run change some paths."""
    return Contract(mode="mutation", allowed_paths=paths)


def seen(root: Path, contract: Contract, *, before: Tree | None = None, held: tuple[str, ...] = ()) -> Tree:
    """Look at a tree once."""
    fd = os.open(root, os.O_PATH)
    try:
        return tree(fd, contract, MOST, held=held, before=before)
    finally:
        os.close(fd)


def judged(root: Path, contract: Contract, act: Callable[[Path], object], held: tuple[str, ...] = ()) -> ContractResult:
    """Return what came of a contract when something was done in a tree."""
    before = seen(root, contract, held=held)
    act(root)
    return compared(before, seen(root, contract, before=before, held=held), contract)


def violations(result: ContractResult) -> list[tuple[str, str]]:
    """Return paths and words, in the order of the result."""
    return [(change.path, change.how) for change in result.violations]


def files(root: Path, names: Iterable[str]) -> None:
    """Write files whose content is their name."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
