"""Looking at a held run through the kernel's records: what is there, before one instruction of the work has run.

``Look.see`` reads everything about the payload, about bubblewrap's init beside it, and about their mount namespace.
It decides nothing: what was seen goes to the pure checker (``checker.attestation``), which knows what the plan means.
What cannot be read says so. Nothing is written, and no value of an environment variable and no argument is kept.

Pid numbers are safe here: the directories in ``/proc`` are opened first, then both processes are shown by their pidfds
to be alive still, and from then on each directory answers for its own process or not at all.
"""

from __future__ import annotations

import os
import select
import time

from prespawn.checker.attestation import agrees
from prespawn.checker.expected import expected
from prespawn.checker.seen import Seen
from prespawn.policy.canonical import digest_bytes
from prespawn.policy.errors import HostError
from prespawn.policy.known import Absent, Unknown

from . import network, process
from .mounts import Sources, Table, tree
from .payload import payload
from .reading import Process, known
from .told import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from prespawn.checker.expected import Expected
    from prespawn.checker.plan import Plan
    from prespawn.hold import Ready
    from prespawn.launchers.invocation import Invocation

    from .process import Parent

_SETTLING = ("capabilities", "descriptors", "no_new_privs", "seccomp")  # what init still changes of itself
_SETTLED_WITHIN = 1_000_000_000  # nanoseconds; 0.4 ms were the most that an idle machine took
_PAUSE = 0.0001  # seconds


class Look:
    """A look at one run of a plan, made before the run is held: what does not depend on it is read by then.

    ``workspace`` and ``runtime`` are descriptors of the workspace and of bubblewrap's program, open since the check;
    without one its name is looked up. ``means`` is what is expected of the run.
    """

    __slots__ = ("_own", "_plan", "_runtime", "_sources", "_told", "means")

    def __init__(self, plan: Plan, of: Invocation, *, workspace: int = -1, runtime: int = -1) -> None:
        self._plan, self._runtime, self.means = plan, runtime, expected(plan)
        self._told, self._sources = told(of), Sources(plan, _workspace(plan, workspace))
        with Process("self") as own:
            self._own = process.Own(own)

    def see(self, held: Ready) -> Seen:
        """Return what a held run shows; ``HostError`` ``launch-failed`` if it ended meanwhile."""
        plan = self._plan
        try:
            with Process(held.runtime) as outer, Process(held.init) as init, Process(held.payload) as worker:
                _alive(held)
                parent = process.Parent(self._own, outer, held)
                seen = _seen(plan, parent, worker, lambda of: _settled(init, outer, parent, self.means, of))
                observed = {
                    "sources": self._sources.of(seen.attested["mounts"]),
                    "runtime": {"digest": known("runtime", lambda: _digest(outer, plan, self._runtime))},
                }
                _alive(held)
        except (FileNotFoundError, ProcessLookupError) as error:
            raise _gone() from error
        declared: dict[str, object] = {"told": self._told}
        return _with_filter(seen.replace(observed=observed, declared=declared), held)


def _seen(
    plan: Plan, parent: Parent, worker: Process, settled: Callable[[dict[str, object]], dict[str, object]]
) -> Seen:
    """Return what the kernel's records show; those of init come last, which has had the time to settle by then."""
    table, entries = _file_system(worker)
    environ = process.environ(worker)
    common = process.seen(worker, parent, environ)
    init = settled(common)
    common["namespaces"] = process.whose(common["namespaces"], init["links"], parent)
    return Seen(
        attested={
            "payload": {**common, **payload(worker, plan, table, environ)},
            "init": {name: value for name, value in init.items() if name != "links"},
            "mounts": table.mounts if isinstance(table, Table) else table,
            "tree": entries,
            "network": {
                "interfaces": known("interfaces", lambda: network.interfaces(worker)),
                "routes": known("routes", lambda: network.routes(worker)),
            },
        },
        observed={},
        declared={},
    )


def _file_system(worker: Process) -> tuple[Table | Unknown, object]:
    """Return the mount table and every entry of the run's own file systems."""
    root = known("root", lambda: worker.folder("root"))
    if isinstance(root, Unknown):
        return root, root
    table = known("mountinfo", lambda: Table(worker.names("mountinfo"), root))
    return table, table if isinstance(table, Unknown) else known("tree", lambda: tree(table, root))


def _settled(
    init: Process, outer: Process, parent: Parent, means: Expected, payload: dict[str, object]
) -> dict[str, object]:
    """Return what init shows once it has become what it will stay, or what it showed last.

    It still gives up its own privileges while the payload, which has shown its own by now, is held already. Where the
    payload itself is not as planned, init never will be, and is not waited for.
    """
    of_init, of_payload = means.tree["init"], means.tree["payload"]
    assert isinstance(of_init, dict) and isinstance(of_payload, dict)
    awaited = [name for name in _SETTLING if agrees(of_payload[name], payload[name])]
    until = time.monotonic_ns() + _SETTLED_WITHIN
    while True:
        seen = process.seen(init, parent, process.environ(init), payload)
        links = seen["namespaces"]
        seen["namespaces"] = process.whose(links, links, parent)
        seen["program"] = known("exe", lambda: _same_program(init, outer))
        if all(agrees(of_init[name], seen[name]) for name in awaited) or time.monotonic_ns() > until:
            return {**seen, "links": links}
        time.sleep(_PAUSE)


def _same_program(init: Process, outer: Process) -> str:
    return "the runtime" if init.identity("exe") == outer.identity("exe") else "another"


def _digest(outer: Process, plan: Plan, runtime: int) -> object:
    """Return the digest that was taken of the very file that runs as bubblewrap."""
    checked = os.stat(str(plan.runtime.path)) if runtime < 0 else os.fstat(runtime)
    if outer.identity("exe") != (checked.st_dev, checked.st_ino):
        return "another program"
    absent = isinstance(plan.runtime.digest, Absent)
    return Unknown(reason="the plan knows no digest of it") if absent else plan.runtime.digest


def _workspace(plan: Plan, opened: int) -> int | str:
    return opened if opened >= 0 or plan.workspace is None else plan.workspace.source


def _with_filter(seen: Seen, held: Ready) -> Seen:
    """Add the filter: the kernel's own copy where a root parent can have it, else what the runtime was given.

    That one is on, and that it is one more than before, is the kernel's word in both cases (``seccomp``).
    """
    if isinstance(held.filter, bytes):
        return seen.replace(attested={**seen.attested, "filter": {"program": digest_bytes(held.filter)}})
    given = seen.declared["told"]
    if isinstance(given, dict) and "filter" in given:
        return seen.replace(observed={**seen.observed, "filter": {"program": given["filter"]}})
    return seen


def _alive(held: Ready) -> None:
    """Refuse to go on with processes that have ended: a pidfd is readable then."""
    poll = select.poll()
    for pidfd in (held.init_pidfd, held.payload_pidfd):
        poll.register(pidfd, select.POLLIN)
    if poll.poll(0):
        raise _gone()


def _gone() -> HostError:
    return HostError("launch-failed", "the held worker was ended by somebody else")
