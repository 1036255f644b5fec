"""Launchers that do something else than the plan means, played to the look at the held run.

A ``Deed`` is an invocation whose word and deed differ: ``options`` is what the launcher says that it told bubblewrap,
``done`` what bubblewrap really reads. So whatever is found was found in the kernel's records and not in what was said.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

from prespawn import supervise
from prespawn.attest import Look
from prespawn.checker.attestation import compare
from prespawn.launchers.bwrap import invocation
from prespawn.launchers.invocation import Invocation
from prespawn.policy.errors import HostError, ShortfallError
from prespawn.policy.filters import shipped_filter

from . import plans
from .scenarios import Scenario, shell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prespawn.hold import Ready

    from .sandboxes import Sandbox

    Option = tuple[str, ...]
    Change = Callable[[tuple[Option, ...]], Sequence[Option]]

MARK = "ran"
FILTERED = plans.PROFILE.replace(process=plans.PROFILE.process.replace(seccomp="default"))


class Deed(Invocation):
    """An invocation that says ``options`` and does ``done``."""

    done: tuple[Option, ...]

    @property
    def arguments(self) -> bytes:
        return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for option in self.done for word in option)


@dataclass(frozen=True)
class Looked:
    """What a look at one held run came to: differences by field (expected, seen, reason), or how it fell before."""

    differences: dict[str, tuple[Any, Any, str]]
    fell: str
    released: bool

    @property
    def fields(self) -> set[str]:
        return set(self.differences)


def values(sandbox: Sandbox, **changes: Any) -> dict[str, Any]:
    """Return the plan's fields for a worker that leaves a mark: a filter, a toolchain, and a part that is read-only."""
    for name in (".git", "../tools"):
        path = os.path.normpath(f"{sandbox.workspace}/{name}")
        if not os.path.isdir(path):
            os.mkdir(path)
            os.chmod(path, 0o755)
    tools = f"{sandbox.home}/tools"
    fields = sandbox.fields(Scenario("mark", shell(f"touch /workspace/{MARK}"), {}))
    return {
        **fields,
        "profile": FILTERED,
        "filter": shipped_filter("default", os.uname().machine),
        "read_only": (".git",),
        "toolchains": (plans.bind(tools, tools, writable=False),),
        "environment": (("LANG", "C.UTF-8"),),
        "zoneinfo": "/usr/share/zoneinfo/Etc/UTC",
        **changes,
    }


def looked(
    fields: dict[str, Any], change: Change | None = None, *, says: bool = False, told: dict[str, Any] | None = None
) -> Looked:
    """Hold a run, look at it, and release it only if it is what its plan means.

    ``change`` is made to what bubblewrap reads, and with ``says`` also to what the launcher says; ``told`` are other
    fields of the invocation that are not what the plan means.
    """
    plan = plans.plan(**fields)
    differences: dict[str, tuple[Any, Any, str]] = {}

    def deed(of: Any) -> Invocation:
        honest = invocation(of)
        done = honest.options if change is None else tuple(change(honest.options))
        parts = {**dict(honest), **(told or {}), "options": done if says else honest.options}
        return Deed(**parts, done=done)

    def on_held(held: Ready) -> None:
        look = Look(plan, held.told)
        found = compare(look.means, look.see(held))
        differences.update({one.field: (one.expected, one.seen, one.reason) for one in found})
        if found:
            raise ShortfallError("attestation-mismatch", "differs", None)

    try:
        with mock.patch("prespawn.supervise.invocation", deed):
            outcome = supervise.run(plan, on_held=on_held)
        fell = "" if outcome.how == "exited" else f"{outcome.how} {outcome.stage}"
    except HostError as error:
        fell = "" if isinstance(error, ShortfallError) else error.id
    return Looked(differences, fell, os.path.exists(f"{plan.workspace.source}/{MARK}" if plan.workspace else ""))


def without(index: int) -> Change:
    """Return the change that leaves one option out, by its place."""
    return lambda options: (*options[:index], *options[index + 1 :])


def before_the_last(*added: Option) -> Change:
    """Return the change that adds options before the root is closed."""

    def change(options: tuple[Option, ...]) -> Sequence[Option]:
        place = options.index(("--remount-ro", "/"))
        return (*options[:place], *added, *options[place:])

    return change


def exchanged(name: str, last: str, *options: Option) -> Change:
    """Return the change that puts options in the place of the one with a name and a last word."""

    def change(found: tuple[Option, ...]) -> Sequence[Option]:
        place = next(place for place, option in enumerate(found) if (option[0], option[-1]) == (name, last))
        return (*found[:place], *options, *found[place + 1 :])

    return change
