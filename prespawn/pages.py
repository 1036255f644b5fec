"""The blockers' own files, as pages: for ``explain``, the index and the tests, never for a decision."""

from __future__ import annotations

import os

from prespawn.policy.errors import InputError
from prespawn.policy.nearest import nearest
from prespawn.policy.reader import read

from .site_file import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FOLDER = os.path.join(os.path.dirname(__file__), "blockers")  # importlib.resources costs 18 ms at every start
SUFFIX = ".yaml"
BASE = "base"  # what the cases start from; not a blocker


def ids() -> tuple[str, ...]:
    """Return the id of every blocker, sorted."""
    names = (name.removesuffix(SUFFIX) for name in os.listdir(FOLDER) if name.endswith(SUFFIX))
    return tuple(sorted(name for name in names if name != BASE))


def page(id: str) -> Mapping[str, Any]:
    """Return one blocker's file; ``InputError`` (``usage``) names the nearest id where there is none."""
    known = ids()
    if id not in known:
        near = nearest(id, known)
        hint = f"did you mean `{near}`" if near else "`prespawn blockers` lists them"
        raise InputError("usage", f"there is no blocker `{id}`; {hint}")
    return document(id)


def document(name: str) -> Mapping[str, Any]:
    """Return the strictly read content of a file of the folder."""
    path = os.path.join(FOLDER, name + SUFFIX)
    value = read(read_file(path, family="policy"), source=path, family="policy", syntax="yaml").value
    assert isinstance(value, dict)
    return value
