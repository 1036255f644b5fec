"""What the run may change, and what it may never change or be shown."""

from __future__ import annotations

from prespawn.policy.known import Absent
from prespawn.policy.spelling import is_canonical, is_printable_name

from ..selection import workspace_of
from .finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..evaluate import View

MODES = ("read-only", "mutation")
_METACHARACTERS = frozenset("*?[]{}!\\")
PATTERNS = ("`src/app.py`", "`src/**`", "`**`")


def file_contract_invalid(view: View) -> Iterator[Finding]:
    """A contract that says nothing: no mode, a pattern in none of the three forms, paths beside ``read-only``."""
    mode, paths = view.declaration.mode, view.declaration.allowed_paths
    if mode not in MODES:
        yield Finding(field="file_contract.mode", found=_shown(mode), allowed=MODES)
    elif mode == "read-only" and not isinstance(paths, Absent) and paths != []:
        yield Finding(field="file_contract.allowed_paths", found=_shown(paths), allowed=("nothing beside `read-only`",))
    elif mode == "mutation" and (not isinstance(paths, list) or not paths):
        yield Finding(field="file_contract.allowed_paths", found=_shown(paths), allowed=("a list that is not empty",))
    for index, pattern in enumerate(paths if isinstance(paths, list) else ()):
        if not _is_pattern(pattern):
            yield Finding(field=f"file_contract.allowed_paths[{index}]", found=_shown(pattern), allowed=PATTERNS)


def file_contract_git_internal(view: View) -> list[Finding]:
    """A pattern that reaches into a ``.git``, in any case: the host's git runs what stands there."""
    return [
        Finding(field=f"file_contract.allowed_paths[{index}]", found=pattern, allowed=("paths outside `.git`",))
        for index, pattern in _strings(view.declaration.allowed_paths)
        if ".git" in pattern.lower().split("/") and _is_pattern(pattern)
    ]


def protected_path_in_contract(view: View) -> list[Finding]:
    """A pattern that covers, or lies in, what the site protects; ``**`` means everything else and passes."""
    return [
        Finding(field=f"file_contract.allowed_paths[{index}]", found=pattern, allowed=(f"paths outside `{protected}`",))
        for protected in _protected(view)
        for index, pattern in _strings(view.declaration.allowed_paths)
        if pattern != "**" and _overlap(pattern, protected) and _is_pattern(pattern)
    ]


def protected_path_declared(view: View) -> list[Finding]:
    """A declared file that the site protects."""
    return [
        Finding(field=f"declared_files[{index}]", found=path, allowed=(f"paths outside `{protected}`",))
        for protected in _protected(view)
        for index, path in _strings(view.declaration.declared_files)
        if _below(path, protected)
    ]


FUNCTIONS = (file_contract_invalid, file_contract_git_internal, protected_path_in_contract, protected_path_declared)


def _strings(paths: object) -> list[tuple[int, str]]:
    """Return the strings of a list with their places, nothing of another value: its shape is asked about elsewhere."""
    return (
        [(index, path) for index, path in enumerate(paths) if isinstance(path, str)] if isinstance(paths, list) else []
    )


def _is_pattern(pattern: object) -> bool:
    """Say whether a pattern is an exact path, ``dir/**`` or ``**``: nothing else has one meaning everywhere."""
    if not isinstance(pattern, str):
        return False
    base = pattern.removesuffix("/**")
    return pattern == "**" or (is_canonical(base) and is_printable_name(base) and _METACHARACTERS.isdisjoint(base))


def _protected(view: View) -> tuple[str, ...]:
    workspace = workspace_of(view.declaration, view.site)
    return () if workspace is None else workspace.protected_paths


def _overlap(pattern: str, protected: str) -> bool:
    base = pattern.removesuffix("/**")
    return _below(base, protected) or (pattern.endswith("/**") and _below(protected, base))


def _below(path: str, root: str) -> bool:
    """Say whether a path is a root or lies below it, by whole components."""
    return f"{path}/".startswith(f"{root}/")


def _shown(value: object) -> object:
    return "nothing" if isinstance(value, Absent) else value
