"""Is every name spelled so that it means one thing, to the kernel and to a reader of the report?"""

from __future__ import annotations

from prespawn.policy.known import Absent, Unknown
from prespawn.policy.spelling import is_canonical, is_env_key, is_printable_name

from .finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..evaluate import View

ENV_KEY = "letters, digits and `_`, not beginning with a digit"


def path_invalid(view: View) -> Iterator[Finding]:
    """A declared file, log path or registry path with bytes that no name may hold."""
    declaration = view.declaration
    files = declaration.declared_files
    places = [(f"declared_files[{index}]", path) for index, path in enumerate(files if isinstance(files, list) else ())]
    places += [("log_path", declaration.log_path), ("registry_path", declaration.registry_path)]
    for field, path in places:
        if isinstance(path, str) and path and not is_printable_name(path):
            yield Finding(field=field, found=path, allowed=("a printable name",))


def declared_file_invalid(view: View) -> Iterator[Finding]:
    """No list, or an element that is not a relative path in the one canonical spelling."""
    files = view.declaration.declared_files
    if not isinstance(files, list):
        yield Finding(field="declared_files", found=files, allowed=("a list of relative paths",))
        return
    for index, path in enumerate(files):
        if not isinstance(path, str) or not is_canonical(path):
            yield Finding(
                field=f"declared_files[{index}]", found=path, allowed=("a relative path in canonical spelling",)
            )


def env_key_invalid(view: View) -> Iterator[Finding | Unknown]:
    """No list, a key that is not a name, or a value that no environment can hold."""
    keys = view.declaration.env_keys
    if not isinstance(keys, list):
        found = "a mapping" if isinstance(keys, dict) else "nothing" if isinstance(keys, Absent) else "no list"
        yield Finding(field="env_keys", found=found, allowed=("a list of names",))
        return
    for index, key in enumerate(keys):
        if not isinstance(key, str) or not is_env_key(key):
            yield Finding(field=f"env_keys[{index}]", found=key, allowed=(ENV_KEY,))
    yield from _values(view)


def _values(view: View) -> Iterator[Finding | Unknown]:
    entries = view.facts.environment
    if isinstance(entries, Unknown):
        yield entries
        return
    for index, entry in enumerate(entries):
        if isinstance(entry.valid, Unknown):
            yield entry.valid
        elif entry.valid is False:
            found, allowed = "a value that no environment can hold", ("a value without NUL",)
            yield Finding(field=f"env_keys[{index}]", found=found, allowed=allowed)


FUNCTIONS = (path_invalid, declared_file_invalid, env_key_invalid)
