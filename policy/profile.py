"""An isolation profile: what one kind of run may touch and what holds it there.

Numbers are in base units after loading: bytes, milliseconds, counts. ``None`` for a limit means that the profile
does not bound it and claims nothing about it. The formats and the direction in which each field is narrower stand
in ``schemas/profile.yaml``; this module only gives them types.
"""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .known import Absent


class LevelRange(Record):
    """``minimum`` is what a run needs when the declaration asks for nothing; ``promises`` is the most it can earn."""

    minimum: str
    promises: str


class WorkspaceRule(Record):
    """How the workspace is seen: ``access`` write or read; ``source`` site (a named root) or lease."""

    access: str
    git: str
    source: str


class StateRule(Record):
    """The adapter's own persistent directory, always a lease."""

    access: str


class RootRule(Record):
    """What of the host's system tree is seen: ``read-only`` tools, ``image`` (none of it), or ``host`` (all)."""

    system: str


class NetworkRule(Record):
    """``none`` (loopback of its own namespace only), ``broker`` (one socket), or ``host``."""

    mode: str


class ProcessRule(Record):
    """Identity and privilege; terms as in ``capabilities(7)``, ``seccomp(2)`` and ``user_namespaces(7)``."""

    uid: str
    capabilities: tuple[str, ...]
    no_new_privs: bool
    seccomp: str
    user_namespaces: str


class EnvironmentRule(Record):
    """``fixed`` is always set; of the declared keys only ``allowed_keys`` pass, their values from the site."""

    fixed: Mapping[str, str]
    allowed_keys: tuple[str, ...]


class Limits(Record):
    """Bounds of one run: milliseconds for ``wall_clock``, bytes for sizes, counts otherwise, ``cpu`` in 1/1000."""

    wall_clock: int
    output: int
    diagnostics: int | None
    trace: int | None
    processes: int | None
    open_files: int | None
    file_size: int | None
    memory: int | None
    cpu: int | None
    tmp: int | None
    home: int | None
    shm: int | None
    argv: int
    declared_files: int
    env_keys: int
    env_bytes: int
    tree_entries: int


class Quota(Record):
    """Total bound of one lease."""

    bytes: int
    inodes: int


class Quotas(Record):
    """Bounds of the leased directories, which the host must enforce as totals."""

    nested = {"workspace": Quota, "state": Quota}
    workspace: Quota
    state: Quota


class ProviderRule(Record):
    """Bounds of the provider lease: counts, bytes, tokens, milliseconds."""

    requests: int
    request_bytes: int
    response_bytes: int
    tokens: int
    deadline: int


class OutputRule(Record):
    """``log`` worker (its output, capped), lifecycle (the parent's lines only) or none; ``artifact`` none or text."""

    log: str
    artifact: str


class CanaryRule(Record):
    """How old evidence of a canary may be, in milliseconds."""

    max_age: int


class EvidenceRule(Record):
    """What evidence beside the launch itself the profile relies on."""

    nested = {"canary": CanaryRule}
    canary: CanaryRule | Absent


class ActivationRule(Record):
    """Evidence that must be on the host before a site may activate the profile."""

    requires: tuple[str, ...]


class Allowance(Record):
    """One canary act that stays possible in this sandbox, and why that is acceptable."""

    act: str
    reason: str


class Profile(Record):
    """One versioned isolation profile; released ones never change."""

    nested = {
        "level": LevelRange, "workspace": WorkspaceRule, "state": StateRule, "root": RootRule, "network": NetworkRule,
        "process": ProcessRule, "environment": EnvironmentRule, "limits": Limits, "quotas": Quotas,
        "provider": ProviderRule, "output": OutputRule, "evidence": EvidenceRule, "activation": ActivationRule,
        "still_allowed": (Allowance,),
    }  # fmt: skip
    id: str
    title: str
    extends: str | None
    launcher: str
    level: LevelRange
    workspace: WorkspaceRule | Absent
    state: StateRule | Absent
    root: RootRule
    network: NetworkRule
    process: ProcessRule
    image: str | None
    argv: str
    environment: EnvironmentRule
    limits: Limits
    quotas: Quotas | Absent
    provider: ProviderRule | Absent
    output: OutputRule
    proves: tuple[str, ...]
    evidence: EvidenceRule
    activation: ActivationRule
    still_allowed: tuple[Allowance, ...]
