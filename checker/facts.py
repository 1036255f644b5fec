"""What the host showed: plain values, each of them possibly ``Unknown`` with a reason or ``ABSENT``.

Facts are gathered once, in ``prespawn.facts``, and can be written down and replayed. None of them holds the value of
an environment variable, the content of a file or an argument. Every field may also be ``Unknown``; the annotations
name the type of what is known. Paths are absolute and free of links where they are said to be resolved; sizes are
bytes, times are Unix seconds.
"""

from __future__ import annotations

from prespawn.policy.known import ABSENT
from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.policy.known import Absent


class Place(Record):
    """A directory that trusted configuration or the declaration names, followed to where it really is.

    ``given`` as written, ``path`` resolved, ``kind`` directory, file, link, special or missing; ``filesystem`` is the
    type's name in ``/proc/self/mountinfo``.
    """

    given: str
    path: str
    kind: str
    device: int | Absent
    inode: int | Absent
    owner: int | Absent
    filesystem: str | Absent


class WorkspaceFact(Record):
    """The root that a run is held to.

    ``known`` is false where the site has no workspace of that name. ``covers`` lists what the root is or contains and
    must not: ``the file system root``, ``a home directory``, ``the site file``, ``the state directory`` …, or the part
    of the worker's own root that would have to stand at its path (``the system tree``); ``credentials`` its top-level
    names from the list ``credential-entries``; ``git`` says whether a ``.git`` stands at its top, and as what
    (directory, file, link …); ``enterable`` whether its mode lets the worker list and enter it; ``sockets`` a few
    relative paths of sockets below it, ``setuid`` the same of files with a setuid or setgid bit, or capabilities of
    their own, ``devices`` of device files, and ``mounts`` of what else is mounted below it.
    """

    nested = {"place": Place}
    known: bool
    name: str
    place: Place | Absent
    covers: tuple[str, ...]
    credentials: tuple[str, ...]
    git: str | Absent
    enterable: bool
    sockets: tuple[str, ...]
    setuid: tuple[str, ...]
    devices: tuple[str, ...]
    mounts: tuple[str, ...]


class FileFact(Record):
    """One declared file, walked component by component below the root, no link ever followed.

    ``path`` is the declared value. ``leaves``: a link on the way leads outside, in a circle or through ``/proc``;
    ``linked``: a link on the way stays inside; ``present``: it exists; ``kind`` file, directory, fifo, socket or
    device; ``links`` is the hard link count of a file. A name that no file can have is not looked for: then all are
    absent; behind a link nothing is looked at: then all but the first two are.
    """

    path: object
    leaves: bool | Absent = ABSENT
    linked: bool | Absent = ABSENT
    present: bool | Absent = ABSENT
    kind: str | Absent = ABSENT
    links: int | Absent = ABSENT
    device: int | Absent = ABSENT
    inode: int | Absent = ABSENT


class TargetFact(Record):
    """A file that the parent will write: ``leaves`` the directory for it (or a link on the way does), ``exists``
    already, ``ready`` if its directory is there or is the reserved one, which the parent makes; ``root`` is that
    reserved directory, resolved."""

    path: object
    root: str
    leaves: bool
    exists: bool
    ready: bool


class StateFact(Record):
    """The site's ``state_dir``: ``controlled`` if only the caller can write it and its parents; ``exposed`` names the
    workspace or mount that the worker could write and that holds it, or is absent; ``registry`` is how the registry
    stands there: ready, absent (the parent makes it) or corrupt; ``writable`` whether the parent can write there."""

    nested = {"place": Place}
    place: Place
    controlled: bool
    exposed: str | Absent
    registry: str
    writable: bool


class EnvironmentFact(Record):
    """One declared environment key.

    ``source`` fixed, site, caller or none (no value anywhere); ``valid`` if an environment can hold the value;
    ``shape`` names the kind of credential that the value looks like; ``size`` is its length in bytes.
    """

    key: object
    source: str
    valid: bool
    shape: str | Absent
    size: int


class ProgramFact(Record):
    """What ``argv[0]`` leads to on the fixed search path, resolved once.

    ``found`` if something is there, ``executable`` if it is a regular file that the worker's user may execute
    and the kernel can: in ELF, or a script whose ``#!`` names an interpreter that is there;
    ``origin`` search-path, absolute, workspace (a name with a slash, below the root) or outside; ``name`` the last
    component of the resolved path, so a link called ``ls`` that is a shell shows as one. ``interpreter`` is what the
    path in its ``#!`` line leads to (absent without one, or where nothing is), ``interpreter_origin`` whose that is.
    ``toolchain`` is the one directory that would have to be mounted for all of it to be there, absent if none would do.
    """

    given: str
    found: bool
    executable: bool | Absent
    origin: str
    path: str | Absent
    name: str | Absent
    device: int | Absent
    inode: int | Absent
    interpreter: str | Absent = ABSENT
    interpreter_origin: str | Absent = ABSENT
    toolchain: str | Absent = ABSENT


class MountFact(Record):
    """One tree beside the workspace that trusted configuration grants: a toolchain or a lease.

    ``exposes`` says what it is, holds or leads to that no worker may see (absent if nothing); ``inside`` whether it
    lies below the lease root without a link (absent for toolchains); ``overlaps`` names another grant that shares its
    tree; ``credentials`` names from the list ``credential-files`` that it holds.
    """

    nested = {"place": Place}
    name: str
    purpose: str
    place: Place
    exposes: str | Absent
    inside: bool | Absent
    overlaps: str | Absent
    credentials: tuple[str, ...]


class RuntimeFact(Record):
    """The program or daemon that the profile's launcher needs.

    ``name`` bwrap, docker or none; ``found`` whether it is there; ``path``, ``version``, ``digest`` of the program;
    ``works`` is true or false if it was tried on this boot, absent while that is pending; ``reachable`` whether the
    run's unprivileged user can execute it (staged or by path); ``attests`` whether the launcher reads the kernel's
    records of the held process; ``shipped`` whether this installation has a launcher of that name at all;
    ``enforces`` names what it can hold a run to here, as ``limits.processes`` or ``quotas.workspace``.
    """

    name: str
    shipped: bool
    enforces: tuple[str, ...]
    found: bool
    path: str | Absent
    version: str | Absent
    digest: str | Absent
    works: bool | Absent
    reachable: bool | Absent
    attests: bool


class ImageFact(Record):
    """The container image that the profile names."""

    name: str
    present: bool
    id: str | Absent


class SystemEntry(Record):
    """One piece of the host's system tree that the worker's own root repeats: ``kind`` directory, file or link (then
    ``link`` is its text)."""

    path: str
    kind: str
    link: str | Absent


class HostFact(Record):
    """What kind of host this is; ``uid`` is the caller's, ``worker_uid``/``worker_gid`` whom the worker runs as;
    ``identity_switch`` whether the program is there that makes the one into the other, absent where none is needed;
    ``machine`` is what ``uname -m`` says; ``traces`` whether a parent may trace its own child here, absent where the
    host has no switch for that.

    ``mapped_owner`` is the owner of the workspace whose files are the worker's, by a mapping of ids on their mount, for
    as long as the run lasts; absent where the worker is that owner. ``worker_account`` is the account or group of this
    host that has the worker's id then, absent if none has."""

    nested = {"system": (SystemEntry,)}
    uid: int
    worker_uid: int
    worker_gid: int
    identity_switch: bool | Absent
    machine: str
    zoneinfo: str | Absent
    system: tuple[SystemEntry, ...]
    traces: bool | Absent = ABSENT
    mapped_owner: int | Absent = ABSENT
    worker_account: str | Absent = ABSENT


class Difference(Record):
    """One place at which a held run is not what its plan means: ``field`` is dotted, ``expected`` what may stand there,
    ``seen`` what does; or nobody could look, and ``reason`` says why (else it is empty)."""

    field: str
    expected: object
    seen: object
    reason: str


class AttestationFact(Record):
    """What came of comparing a held run with its plan: ``differences``, and the fields that were compared, by the
    strength with which they were seen."""

    nested = {"differences": (Difference,)}
    attested: tuple[str, ...]
    observed: tuple[str, ...]
    declared: tuple[str, ...]
    differences: tuple[Difference, ...]


class ReportedFact(Record):
    """What an adapter in another program says it achieved; a level is believed only as far as evidence goes."""

    level: object


class Facts(Record):
    """Everything that one check reads from outside.

    ``workspace`` is absent where the profile has none, ``runtime`` where the profile is not known.
    ``declaration`` is the digest of the declaration looked at; ``evidence`` names the kinds of evidence that this host
    has for the profile (``canary``, ``quota``). ``attestation`` is absent until a run of it is held; ``caller`` is the
    kind of driver that asks, by the driver's own word, absent where it is of none.
    """

    nested = {
        "workspace": WorkspaceFact, "cwd": Place, "declared_files": (FileFact,), "log": TargetFact,
        "registry": TargetFact, "state": StateFact, "environment": (EnvironmentFact,), "program": ProgramFact,
        "mounts": (MountFact,), "runtime": RuntimeFact, "image": ImageFact, "host": HostFact, "reported": ReportedFact,
        "attestation": AttestationFact,
    }  # fmt: skip
    declaration: str
    now: int
    workspace: WorkspaceFact | Absent
    cwd: Place | Absent
    declared_files: tuple[FileFact, ...]
    log: TargetFact | Absent
    registry: TargetFact | Absent
    state: StateFact
    run_id_used: bool
    environment: tuple[EnvironmentFact, ...]
    program: ProgramFact | Absent
    mounts: tuple[MountFact, ...]
    runtime: RuntimeFact | Absent
    image: ImageFact | Absent
    host: HostFact
    evidence: tuple[str, ...]
    reported: ReportedFact | Absent = ABSENT
    caller: str | Absent = ABSENT
    attestation: AttestationFact | Absent = ABSENT


class ReplayedFacts(Facts):
    """Facts that were read from a document: good for a verdict anywhere, never for a plan."""
