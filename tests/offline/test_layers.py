"""The folders import in one direction, and the inner ones touch nothing outside."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
ORDER = ("policy", "blockers", "checker", "launchers", "prespawn")
OUTSIDE = {
    "asyncio", "datetime", "glob", "io", "os", "pathlib", "random", "secrets", "select", "shutil", "signal", "socket",
    "sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "uuid",
}  # fmt: skip
REACHING = {"open", "print", "input", "exec", "eval", "__import__", "compile"}


def modules(folder: str) -> list[Path]:
    """Return the modules of a folder; ``rglob`` does not descend into links, so ``prespawn`` yields its own only."""
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, folder
    return found


def imports(path: Path) -> Iterator[str]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    package = parts[:-1] if parts[0] == "prespawn" else ("prespawn", *parts[:-1])
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *([node.module] if node.module else [])))
            yield from (f"{stem}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("folder", ORDER)
def test_folder_imports_only_from_those_before_it(folder: str) -> None:
    allowed = ORDER[: ORDER.index(folder) + 1]
    for path in modules(folder):
        for name in imports(path):
            head, _, rest = name.partition(".")
            assert head not in ORDER[:-1], f"{path.relative_to(ROOT)} imports {name} by its bare name"
            if head == "prespawn" and folder != "prespawn":
                assert rest.split(".")[0] in allowed, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("folder", ORDER[:-1])
def test_inner_folder_names_nothing_outside(folder: str) -> None:
    for path in modules(folder):
        outside = {name.split(".")[0] for name in imports(path)} & OUTSIDE
        assert not outside, f"{path.relative_to(ROOT)} imports {outside}"
        calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        reaching = {call.id for call in calls if isinstance(call, ast.Name)} & REACHING
        assert not reaching, f"{path.relative_to(ROOT)} calls {reaching}"


def test_one_module_spawns() -> None:
    spawning = {"subprocess", "_posixsubprocess", "pty"}
    calls = {"posix_spawn", "posix_spawnp", "fork", "forkpty", "system", "popen", "execv", "execve", "execvp"}
    found = set()
    for folder in ORDER:
        for path in modules(folder):
            tree = ast.parse(path.read_text("utf-8"))
            attributes = {
                node.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("os", "posix")
            }
            if {name.split(".")[0] for name in imports(path)} & spawning or attributes & calls:
                found.add(str(path.relative_to(ROOT)))
    assert found == {"prespawn/spawn.py", "prespawn/keeper.py"}  # the second is a program that is spawned
