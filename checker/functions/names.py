"""Is every name spelled so that it means one thing, to the kernel and to a reader of the report?"""

from __future__ import annotations

from prespawn.policy.known import Absent, Unknown
from prespawn.policy.spelling import is_canonical, is_env_key, is_printable_name

from .finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..evaluate import View

ENV_KEY = "letters, digits and `_`, not beginning with a digit"


def path_invalid(view: View) -> list[Finding]:
    """A declared file, log path or registry path with bytes that no name may hold."""
    declaration = view.declaration
    files = declaration.declared_files
    places = [("log_path", declaration.log_path), ("registry_path", declaration.registry_path)]
    if isinstance(files, list):
        places += [(f"declared_files[{index}]", path) for index, path in enumerate(files)]
    return [
        Finding(field=field, found=path, allowed=("a printable name",))
        for field, path in places
        if isinstance(path, str) and path and not is_printable_name(path)
    ]


def declared_file_invalid(view: View) -> list[Finding]:
    """No list, or an element that is not a relative path in the one canonical spelling."""
    files = view.declaration.declared_files
    if not isinstance(files, list):
        return [Finding(field="declared_files", found=files, allowed=("a list of relative paths",))]
    return [
        Finding(field=f"declared_files[{index}]", found=path, allowed=("a relative path in canonical spelling",))
        for index, path in enumerate(files)
        if not isinstance(path, str) or not is_canonical(path)
    ]


def env_key_invalid(view: View) -> list[Finding | Unknown]:
    """No list, a key that is not a name, or a value that no environment can hold."""
    keys = view.declaration.env_keys
    if not isinstance(keys, list):
        found = "a mapping" if isinstance(keys, dict) else "nothing" if isinstance(keys, Absent) else "no list"
        return [Finding(field="env_keys", found=found, allowed=("a list of names",))]
    wrong: list[Finding | Unknown] = [
        Finding(field=f"env_keys[{index}]", found=key, allowed=(ENV_KEY,))
        for index, key in enumerate(keys)
        if not isinstance(key, str) or not is_env_key(key)
    ]
    return wrong + _values(view)


def _values(view: View) -> list[Finding | Unknown]:
    entries = view.facts.environment
    if isinstance(entries, Unknown):
        return [entries]
    found, allowed = "a value that no environment can hold", ("a value without NUL",)
    return [
        entry.valid
        if isinstance(entry.valid, Unknown)
        else Finding(field=f"env_keys[{index}]", found=found, allowed=allowed)
        for index, entry in enumerate(entries)
        if entry.valid is False or isinstance(entry.valid, Unknown)
    ]


FUNCTIONS = (path_invalid, declared_file_invalid, env_key_invalid)
