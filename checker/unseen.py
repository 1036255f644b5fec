"""The facts of a declaration that nobody has looked at the host for: all unknown but what the declaration itself says.

What fails on these fails on every host. ``lint`` decides on them, by the same rules as the gate.
"""

from __future__ import annotations

from prespawn.policy.known import ABSENT, Unknown

from .facts import EnvironmentFact, Facts, FileFact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from prespawn.policy.record import Record

    from .declaration import Declaration

    Kind = TypeVar("Kind", bound=Record)


def unseen(declaration: Declaration) -> Facts:
    """Return facts that are unknown, one by one where the declaration lists what they are about."""
    files, keys = declaration.declared_files, declaration.env_keys
    return nobody_looked(
        Facts,
        declaration=declaration.digest,
        declared_files=tuple(nobody_looked(FileFact, path=path) for path in (files if isinstance(files, list) else ())),
        environment=tuple(nobody_looked(EnvironmentFact, key=key) for key in (keys if isinstance(keys, list) else ())),
        reported=ABSENT,
    )


def nobody_looked(kind: type[Kind], **known: Any) -> Kind:
    """Return a fact of which only ``known`` is known."""
    nobody: Any = Unknown(reason="nobody has looked")
    return kind(**{**dict.fromkeys(kind._fields, nobody), **known})
