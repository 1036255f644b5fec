"""What a driver asks for one run: untrusted, and therefore of any type under every known key.

The reader has refused unknown and missing keys; nothing else is promised here. The conditions judge each value, and
only a declaration without a blocker is ever made into a plan.
"""

from __future__ import annotations

from prespawn.policy.canonical import digest
from prespawn.policy.known import ABSENT
from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prespawn.policy.known import Absent

    Raw = object  # any JSON value: null, boolean, integer, string, list or mapping


class ForbiddenField(Record):
    """A field that no declaration may bring, wherever it stands: ``at`` is its dotted place."""

    name: str
    at: str


class Declaration(Record):
    """One declaration; a field that was left out is ``ABSENT``.

    ``argv`` is ``execution.argv``, or ``execution`` itself where that is not a mapping with an ``argv``; ``mode`` and
    ``allowed_paths`` are taken from ``file_contract`` the same way. ``raw`` is the whole document, ``digest`` is taken
    over it.
    """

    nested = {"forbidden": (ForbiddenField,)}
    raw: Mapping[str, Raw]
    digest: str
    forbidden: tuple[ForbiddenField, ...]
    run_id: Raw | Absent
    workspace: Raw | Absent
    profile: Raw
    adapter: Raw
    level: Raw | Absent
    cwd: Raw | Absent
    declared_files: Raw
    env_keys: Raw
    log_path: Raw | Absent
    registry_path: Raw | Absent
    execution: Raw | Absent
    argv: Raw | Absent
    file_contract: Raw
    mode: Raw | Absent
    allowed_paths: Raw | Absent
    input: Raw | Absent
    model: Raw | Absent
    session: Raw | Absent
    execute: Raw


def declaration(raw: Mapping[str, Raw], forbidden_names: frozenset[str] = frozenset()) -> Declaration:
    """Return the model of a mapping whose keys have been checked."""
    execution, contract = raw.get("execution", ABSENT), raw.get("file_contract", ABSENT)
    return Declaration(
        raw=raw,
        digest=digest(raw),
        forbidden=tuple([ForbiddenField(name=name, at=at) for name, at in _named(raw, forbidden_names)]),
        run_id=raw.get("run_id", ABSENT),
        workspace=raw.get("workspace", ABSENT),
        profile=raw.get("profile", ABSENT),
        adapter=raw.get("adapter", ABSENT),
        level=raw.get("level", ABSENT),
        cwd=raw.get("cwd", ABSENT),
        declared_files=raw.get("declared_files", ABSENT),
        env_keys=raw.get("env_keys", ABSENT),
        log_path=raw.get("log_path", ABSENT),
        registry_path=raw.get("registry_path", ABSENT),
        execution=execution,
        argv=execution["argv"] if isinstance(execution, dict) and "argv" in execution else execution,
        file_contract=contract,
        mode=contract.get("mode", ABSENT) if isinstance(contract, dict) else contract,
        allowed_paths=contract.get("allowed_paths", ABSENT) if isinstance(contract, dict) else ABSENT,
        input=raw.get("input", ABSENT),
        model=raw.get("model", ABSENT),
        session=raw.get("session", ABSENT),
        execute=raw.get("execute", False),
    )


def _named(value: Raw, names: frozenset[str], at: str = "") -> Iterator[tuple[str, str]]:
    """Yield every key of ``names`` at any depth, with its dotted place."""
    if not names:
        return  # as nearly always: the admission has asked for them before it asks where they stand
    if isinstance(value, dict):
        for key, item in value.items():
            if key in names:
                yield key, f"{at}.{key}" if at else key
            elif isinstance(item, (dict, list)):
                yield from _named(item, names, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                yield from _named(item, names, f"{at}[{index}]")
