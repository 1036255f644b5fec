"""Approved plans for tests, made with the seal that only the checker uses elsewhere."""

from __future__ import annotations

import os
from typing import Any, cast

from prespawn.checker.facts import ProgramFact, RuntimeFact, SystemEntry
from prespawn.checker.plan import _SEAL, ApprovedPlan, Bind, Identity
from prespawn.policy.filters import Filter, shipped_filter
from prespawn.policy.known import ABSENT
from prespawn.policy.profile import (
    ActivationRule,
    EnvironmentRule,
    EvidenceRule,
    LevelRange,
    Limits,
    NetworkRule,
    OutputRule,
    ProcessRule,
    Profile,
    RootRule,
    WorkspaceRule,
)

MIB = 1 << 20
_LIMITS: dict[str, Any] = {
    "wall_clock": 30_000, "output": 8 * MIB, "processes": 256, "open_files": 512, "file_size": 64 * MIB,
    "tmp": 32 * MIB, "home": 16 * MIB, "shm": 16 * MIB,
}  # fmt: skip
LIMITS = Limits(**{**dict.fromkeys(Limits._fields, cast("Any", None)), **_LIMITS})
"""A launcher reads these; what bounds the declaration is the checker's and not here."""
PROFILE = Profile(
    id="sandbox-v1", title="test", extends=None, launcher="bwrap",
    level=LevelRange(minimum="logical", promises="container"),
    workspace=WorkspaceRule(access="write", git="read-only", source="site"), state=ABSENT,
    root=RootRule(system="read-only"), network=NetworkRule(mode="none"),
    process=ProcessRule(
        uid="worker", capabilities=(), no_new_privs=True, seccomp="default", user_namespaces="none"
    ),
    image=None, argv="typed", environment=EnvironmentRule(fixed={}, allowed_keys=()), limits=LIMITS, quotas=ABSENT,
    provider=ABSENT, output=OutputRule(log="none", artifact="none"), proves=(),
    evidence=EvidenceRule(canary=ABSENT), activation=ActivationRule(requires=()), still_allowed=(),
)  # fmt: skip
MACHINE = os.uname().machine
SEARCH_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ssl/certs",
          "/etc/ld.so.cache")  # fmt: skip


def runtime(path: str | None) -> RuntimeFact:
    return RuntimeFact(
        name="bwrap", shipped=True, enforces=(), found=path is not None, path=ABSENT if path is None else path,
        version=ABSENT, digest=ABSENT, works=ABSENT, reachable=True, attests=False,
    )  # fmt: skip


def program(path: str) -> ProgramFact:
    """Return the fact of a program as it is now."""
    status, name = os.stat(path), os.path.basename(path)
    return ProgramFact(
        given=path, found=True, executable=True, origin="absolute", path=path, name=name,
        device=status.st_dev, inode=status.st_ino,
    )  # fmt: skip


def bind(source: str, target: str, *, writable: bool) -> Bind:
    """Return the bind of a directory as it is now."""
    status = os.stat(source)
    return Bind(source=source, target=target, device=status.st_dev, inode=status.st_ino, writable=writable)


def system() -> tuple[SystemEntry, ...]:
    """Return this host's system tree."""
    entries = []
    for path in SYSTEM:
        if os.path.islink(path):
            entries.append(SystemEntry(path=path, kind="link", link=os.readlink(path)))
        elif os.path.exists(path):
            kind = "directory" if os.path.isdir(path) else "file"
            entries.append(SystemEntry(path=path, kind=kind, link=ABSENT))
    return tuple(entries)


def filter(machine: str = MACHINE) -> Filter:
    """Return the shipped filter; as everywhere, for this machine."""
    return shipped_filter("default", machine)


def plan(**changes: Any) -> ApprovedPlan:
    """Return an approved plan for ``true``, with some fields changed; ``limits`` may be a mapping of changes."""
    limits = changes.pop("limits", {})
    values: dict[str, Any] = {
        "run_id": "run-1",
        "profile": PROFILE,
        "adapter": "exec@1",
        "level": "logical",
        "digests": {},
        "approval": {},
        "launcher": "bwrap",
        "runtime": runtime("/usr/bin/bwrap"),
        "identity": Identity(uid=60001, gid=60001, inner_uid=1000, inner_gid=1000),
        "argv": ("true",),
        "cwd": "/workspace",
        "workspace": Bind(source="/srv/agent/repo", target="/workspace", device=1, inode=2, writable=True),
        "alias": "/srv/agent/repo",
        "read_only": (),
        "toolchains": (),
        "system": (),
        "zoneinfo": ABSENT,
        "environment": (),
        "search_path": SEARCH_PATH,
        "limits": LIMITS.replace(**limits) if isinstance(limits, dict) else limits,
        "log": None,
        "filter": changes["filter"] if "filter" in changes else filter(),
    }
    return ApprovedPlan(seal=_SEAL, **{**values, **changes})
