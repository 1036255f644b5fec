"""``prespawn exec -- CMD``: the one word before a command.

The declaration is built from the line, checked like any other, approved by having been typed, and run in the sandbox
with the current directory as its workspace. The command's exit status is passed on.
"""

from __future__ import annotations

import os
import select

from prespawn import exit_codes
from prespawn.policy.errors import InputError
from prespawn.words import blocker_text

from ..gate import Checked, Gate
from ..outcome import DEADLINE, OUT_OF_MEMORY, SETUP_FAILED
from ..pumps import Streams
from ..trusted import expanded
from .output import remark
from .signals import Signals
from .workspaces import workspace_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prespawn.checker.contract import ContractResult
    from prespawn.checker.verdict import Verdict
    from prespawn.policy.site import Site

    from ..outcome import Outcome

PROFILE, ADAPTER = "sandbox-v1", "exec@1"
VENV = ".venv/bin"  # programs of the workspace's own environment come first
STDIN, STDOUT, STDERR = 0, 1, 2
PROGRAM = {  # as Docker and the shells answer where the program alone is the trouble
    "execution-program-not-found": exit_codes.EXEC_NOT_FOUND,
    "execution-program-not-executable": exit_codes.EXEC_NOT_EXECUTABLE,
}

SIGPIPE = 13
OUTSIDE = frozenset(("execution-interpreter-outside", "execution-program-outside"))


def run(
    words: Sequence[str],
    *,
    site: str | None = None,
    profile: str = PROFILE,
    workspaces: Sequence[str] = (),
    env: Sequence[str] = (),
    toolchains: Sequence[str] = (),
) -> int:
    """Run a command in the sandbox and return its status, or what ``exit_codes`` has for ``exec``."""
    roots = workspace_roots(workspaces)
    loaded = Gate.load(site, workspaces=roots)
    gate = loaded.reviewing(profile, tuple(words), toolchains=tuple(map(_absolute, toolchains)))
    place = _place(gate, tuple(roots))
    with Signals() as signals:
        run = gate.launch_typed(
            {**_declaration(words, profile, env), **place},
            operator=f"uid {os.getuid()}",
            streams=_streams(),
            cancel=signals.cancel,
            caller_env={key: os.environ[key] for key in env if key in os.environ},
            extra_path=(VENV,),
        )
        if run.outcome is None:
            typed = {
                "site": site, "profile": None if profile == PROFILE else profile, "workspace": workspaces, "env": env,
                "toolchain": toolchains,
            }  # fmt: skip
            return _blocked(gate, run.verdict, typed, words)
        status = _ended(run.outcome, signals.received, gate.policy.profiles[profile].network.mode == "none")
        status = _delivered(run.outcome, status)
        if run.unrecorded is not None:
            remark(f"the end of the run could not be written down ({run.unrecorded})")
            status = status or exit_codes.EXEC_NOT_STARTED
        return _kept(status, run.contract)


def _place(gate: Gate, given: tuple[str, ...]) -> dict[str, object]:
    """Return what the declaration says of its workspace: the one whose root was given, else the current directory's.

    A site may have its workspaces elsewhere. What is typed here must not run there: then ``cwd`` shows that.
    """
    if len(given) == 1:
        return {"cwd": ".", "workspace": given[0]}
    return {"cwd": "."} if gate.trusted.site_file is None else _here(gate.policy.site)


def _here(site: Site) -> dict[str, object]:
    here = _absolute(".")
    named = [name for name, workspace in site.workspaces.items() if _is_same(expanded(workspace.root), here)]
    return {"cwd": here, "workspace": named[0]} if named else {"cwd": here}


def _absolute(path: str) -> str:
    if not path:
        raise InputError("usage", "`--toolchain` is ``; allowed here: a directory")
    try:
        return os.path.abspath(path)
    except OSError:
        raise InputError("usage", "the current directory is not there any more; change into one that is") from None


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.stat(other))
    except OSError:
        return False


def _streams() -> Streams:
    """Pass all three on; a terminal is never the worker's to read from, and it gets an empty input instead."""
    return Streams(stdin=None if os.isatty(STDIN) else STDIN, stdout=STDOUT, stderr=STDERR)


def _declaration(words: Sequence[str], profile: str, env: Sequence[str]) -> dict[str, object]:
    return {
        "prespawn": "declaration/v1",
        "profile": profile,
        "adapter": ADAPTER,
        "declared_files": [],
        "env_keys": list(env),
        "execution": {"argv": list(words)},
        "file_contract": {"mode": "mutation", "allowed_paths": ["**"]},
        "execute": True,
    }


def _blocked(
    gate: Gate, verdict: Verdict, typed: Mapping[str, str | Sequence[str] | None], words: Sequence[str]
) -> int:
    for blocker in verdict.blockers:
        remark(blocker_text(blocker, gate.remedies[blocker.id]))
    if isinstance(verdict, Checked) and verdict.facts is not None:
        from .mending import mending_line

        line = mending_line(verdict.facts.program, typed, words)
        if line is not None and not OUTSIDE.isdisjoint(blocker.id for blocker in verdict.blockers):
            remark(f"with its toolchain: {line}")
    ids = [blocker.id for blocker in verdict.blockers]
    return PROGRAM.get(ids[0], exit_codes.EXEC_NOT_STARTED) if len(ids) == 1 else exit_codes.EXEC_NOT_STARTED


def _kept(status: int, contract: ContractResult | None) -> int:
    """Return the status of a run that kept its contract; one that did not has failed, whatever it says."""
    if contract is None or contract.is_kept:
        return status
    remark(contract.sentence)
    return status or exit_codes.EXEC_NOT_STARTED


def _delivered(outcome: Outcome, status: int) -> int:
    """Return the status of a run whose output arrived; what was lost is said, and is no success.

    A reader that went away wanted no more: that is no loss.
    """
    if not outcome.undelivered or any(map(_is_unread, (STDOUT, STDERR))):
        return status
    where = "standard output or standard error takes no more; give it somewhere to go"
    remark(f"{outcome.undelivered} bytes of the command's output are lost: {where}")
    return status or exit_codes.EXEC_NOT_STARTED


def _is_unread(fd: int) -> bool:
    """Say whether this is a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _ended(outcome: Outcome, received: int | None, offline: bool) -> int:
    """Return the command's own status where it had one; what ended it otherwise is said once."""
    if outcome.reached and outcome.how != OUT_OF_MEMORY:
        remark(f"the kernel stopped processes of the run at {', '.join(outcome.reached)}")
    if outcome.status is not None:
        if outcome.status not in (0, exit_codes.EXEC_SIGNAL + SIGPIPE) and offline:
            remark(f"the command ended with status {outcome.status}; it had no network")
        return outcome.status
    if outcome.signal is not None:
        return exit_codes.EXEC_SIGNAL + outcome.signal
    if received is not None:
        return exit_codes.EXEC_SIGNAL + received
    remark(outcome.sentence)
    if outcome.how == DEADLINE:
        return exit_codes.EXEC_DEADLINE
    unusable = outcome.how == SETUP_FAILED and outcome.stage == "program"
    return exit_codes.EXEC_NOT_EXECUTABLE if unusable else exit_codes.EXEC_NOT_STARTED
