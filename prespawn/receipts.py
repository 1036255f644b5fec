"""Receipts: what the parent wrote down of one run and can be held to, each durable before what it is about happens.

A receipt is canonical JSON of the closed form ``receipt/v1``, in ``receipts/`` below the state directory, under the
name of its own digest and readable by its owner alone. It names the one before it by digest, and the registry's row
names each of them, so a chain can neither be cut nor exchanged without a difference that ``verify`` finds.

Of arguments and environment no text stands in any receipt: of the first there is a digest, of the second there are
keys. Which receipts a run has and when each is written is ``launch``'s.
"""

from __future__ import annotations

import os

from prespawn.policy.canonical import canonical, digest, digest_bytes
from prespawn.policy.errors import HostError, InputError, ReadError
from prespawn.policy.known import Absent

from .durable import sweep, write_new
from .trusted_path import made, named, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Self

    from prespawn.checker.contract import ContractResult
    from prespawn.checker.facts import AttestationFact
    from prespawn.checker.plan import Plan
    from prespawn.checker.seen import Seen
    from prespawn.checker.verdict import Verdict

    from .outcome import Outcome

FORMAT, DIRECTORY = "receipt/v1", "receipts"
LAUNCH, ATTESTATION, TERMINAL = KINDS = ("launch", "attestation", "terminal")  # in the order of one run
_APPROVAL = ("id", "digest", "origin", "operator", "uid", "approver", "accepted")
_APART = ("argv", "environment", "filter", "digests", "approval")  # of the plan: not said in its digest, or otherwise


class Receipts:
    """The open directory; a context manager. ``HostError`` ``receipt-not-written`` where it fails."""

    __slots__ = ("_directory", "path")

    def __init__(self, directory: int, path: str) -> None:
        self._directory, self.path = directory, path

    @classmethod
    def open(cls, state: int) -> Self:
        """Open the directory below an open state directory, and make it if there is none."""
        try:
            path = os.readlink(f"/proc/self/fd/{state}")
            return cls(made(os.dup(state), path, (DIRECTORY,)), os.path.join(path, DIRECTORY))
        except OSError as error:
            raise _not_written(DIRECTORY, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._directory)

    def write(self, text: str) -> None:
        """Write a receipt under the name of its digest; durable, name and all, when this returns."""
        content = text.encode("ascii")
        name = name_of(digest_bytes(content))
        try:
            write_new(self._directory, name, content)
        except OSError as error:
            raise _not_written(os.path.join(self.path, name), error) from None

    def names(self, since: int = 0) -> tuple[str, ...]:
        """Return the digest of every receipt that was written at a Unix time or later; ``OSError`` as it comes."""
        with os.scandir(self._directory) as entries:
            names = [one.name for one in entries if not since or one.stat(follow_symlinks=False).st_mtime >= since]
        return tuple(sorted(digest for digest in map(digest_of, names) if digest is not None))

    def sweep(self) -> tuple[str, ...]:
        """Take away what a killed writer has left unfinished, and return the names; ``OSError`` as it comes."""
        return sweep(self._directory)

    def read(self, digest: str) -> bytes:
        """Return what stands under the name of a digest; ``OSError`` if there is nothing."""
        file = os.open(name_of(digest), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory)
        with open(file, "rb") as reading:
            return reading.read()


def name_of(digest: str) -> str:
    """Return the file name of a receipt."""
    return f"{digest.replace(':', '-')}.json"


def digest_of(name: str) -> str | None:
    """Return the digest that a receipt's file name says, None for another name."""
    digest = name.removesuffix(".json").replace("-", ":", 1)
    return digest if name == name_of(digest) and digest.startswith("sha256:") else None


def launch_receipt(plan: Plan, at: int) -> str:
    """Return the text of the first receipt of a run: what is about to be started, and on what it was decided."""
    digests = {name: plan.digests[name] for name in ("declaration", "policy", "facts", "blockers")}
    runtime, program = plan.runtime, plan.program
    body = {
        "digests": {**digests, "plan": plan_digest(plan), "argv": digest(plan.argv)},
        "profile": plan.profile.id,
        "adapter": plan.adapter,
        "level": plan.level,
        "approval": {name: plan.approval[name] for name in _APPROVAL},
        "runtime": {name: getattr(runtime, name) for name in ("name", "path", "version", "digest")},
        "program": None if isinstance(program, Absent) else {"device": program.device, "inode": program.inode},
        "log": None if plan.log is None else {"path": plan.log, "kind": plan.profile.output.log},
    }
    return _text(LAUNCH, plan.run_id, None, at, body)


def attestation_receipt(plan: Plan, previous: str, seen: Seen, fact: AttestationFact, verdict: Verdict, at: int) -> str:
    """Return the text of the second: what was seen of the held run, by its strength, and what came of it."""
    body = {
        "allowed": verdict.allowed,
        "facts": verdict.digests["facts"],
        "level": verdict.level,
        "claims": [{"claim": one.claim, "result": one.result, "strength": one.strength} for one in verdict.claims],
        "differences": [
            {"field": one.field, "because": "unknown" if one.reason else "fail"} for one in fact.differences
        ],
        "attested": seen.attested,
        "observed": seen.observed,
        "declared": seen.declared,
    }
    return _text(ATTESTATION, plan.run_id, previous, at, body)


def plan_digest(plan: Plan) -> str:
    """Return the digest of a plan, with the keys of its environment in place of the values.

    A digest of values would let a short one be guessed. A filter stands there by its own digest.
    """
    said = {name: value for name, value in plan if name not in _APART}
    filter = None if plan.filter is None else plan.filter.digest
    return digest({**said, "environment": [key for key, _ in plan.environment], "filter": filter})


def terminal_receipt(
    run_id: str, previous: str | None, at: int, *, state: str, outcome: Outcome, contract: ContractResult | None = None,
    level: str | None = None, accepted: Sequence[str] = (), unwritten: Sequence[str] = (), counted: bool = True,
) -> str:  # fmt: skip
    """Return the text of the last: how the run exited, what came of its contract, the level that it earned."""
    seen = {name: getattr(outcome, name) for name in ("how", "status", "signal", "stage", "ceiling")}
    body = {
        "state": state,
        "exit": {**seen, "bytes": outcome.stdout + outcome.stderr if counted else None},
        "contract": None if contract is None else _contract(contract),
        "level": level,
        "accepted": list(accepted),
        "unwritten": list(unwritten),
    }
    return _text(TERMINAL, run_id, previous, at, body)


def _contract(result: ContractResult) -> dict[str, object]:
    changes = [[change.path, change.how] for change in result.violations]
    return {
        "result": result.result,
        "seen": result.seen,
        "violations": len(changes),
        "changes": digest(changes) if changes else None,
    }


def verify(run_id: str, digests: Sequence[str], read: Callable[[str], bytes]) -> tuple[Mapping[str, Any], ...]:
    """Return the receipts of a run in their order, proved to be one chain that holds all that its registry row names.

    ``digests`` are those that the row names, in the order of the run. ``InputError`` ``receipt-tampered`` for one that
    is missing, changed, out of its place or another run's; a run without any has nothing that could be proved.
    """
    if not digests:
        raise InputError("receipt-tampered", f"run `{run_id}` names no receipt; allowed: one at least")
    chain: list[Mapping[str, Any]] = []
    named, wanted = list(digests), digests[-1]
    while wanted is not None:
        receipt = proved(wanted, read)
        _refuse_place(receipt, wanted, run_id, chain)
        if named and named[-1] == wanted:
            named.pop()
        chain.insert(0, receipt)
        wanted = receipt["previous"]
    unwritten = chain[-1][TERMINAL]["unwritten"] if chain[-1]["kind"] == TERMINAL else []
    if named and named != unwritten:
        raise _tampered(named[-1], "the chain that the registry names leaves it out")
    if chain[0]["kind"] != LAUNCH and not unwritten:
        raise _tampered(digests[-1], "its chain does not begin with the launch")
    return tuple(chain)


def proved(wanted: str, read: Callable[[str], bytes]) -> Mapping[str, Any]:
    """Return one receipt whose content is what its name says, and of its form; ``InputError`` ``receipt-tampered``."""
    try:
        content = read(wanted)
    except OSError as error:
        raise _tampered(wanted, reason(error)) from None
    if digest_bytes(content) != wanted:
        raise _tampered(wanted, "its content has another digest")
    return _read(content, wanted)


def _refuse_place(receipt: Mapping[str, Any], wanted: str, run_id: str, after: Sequence[Mapping[str, Any]]) -> None:
    if receipt["run_id"] != run_id:
        raise _tampered(wanted, "its `run_id` is not that of its place in the chain")
    if after and KINDS.index(receipt["kind"]) >= KINDS.index(after[0]["kind"]):
        raise _tampered(wanted, "its `kind` is not that of its place in the chain")
    if (receipt["previous"] is None) != (receipt["kind"] == LAUNCH) and not (receipt[TERMINAL] or {}).get("unwritten"):
        raise _tampered(wanted, "its `previous` is not that of its place in the chain")


def _text(kind: str, run_id: str, previous: str | None, at: int, body: Mapping[str, object]) -> str:
    head = {"prespawn": FORMAT, "kind": kind, "run_id": run_id, "previous": previous, "at": at}
    return canonical({**head, **dict.fromkeys(KINDS), kind: body})


def _read(content: bytes, name: str) -> dict[str, Any]:
    from prespawn.policy.catalogue import table
    from prespawn.policy.reader import read
    from prespawn.policy.shape import check

    try:
        document = read(content, source=name, family="input", syntax="json")
        wrong = check(document, table(FORMAT))
    except ReadError as error:
        raise _tampered(name, str(error)) from None
    if wrong or not isinstance(document.value, dict):
        raise _tampered(name, str(wrong[0]) if wrong else "it is no mapping")
    if canonical(document.value).encode("ascii") != content:
        raise _tampered(name, "it is not in canonical form")
    if [kind for kind in KINDS if document.value[kind] is not None] != [document.value["kind"]]:
        raise _tampered(name, "it says something else than its `kind`")
    return document.value


def _not_written(path: str, error: OSError) -> HostError:
    message = f"{named(path)}: {reason(error)}; allowed: a directory that uid {os.geteuid()} can write, with space left"
    return HostError("receipt-not-written", f"{message}; free it, or name another `state_dir` in the site")


def _tampered(digest: str, found: str) -> InputError:
    return InputError("receipt-tampered", f"receipt {named(digest)}: {found}; allowed: what the parent wrote")
