"""The gate: what a driver calls.

``check`` looks at the host once and asks the pure checker; ``preview`` shows what an allowed verdict would start;
``launch`` looks again with every descriptor held, takes the approval into account, and starts the run or says what
stands in its way. Being blocked is an answer; an exception says that the input is wrong (``InputError``) or that the
host failed after the approval (``HostError``).

Example::

    gate = Gate.load(site="site.yaml")
    verdict = gate.check(declaration)
    if verdict.allowed:
        outcome = gate.launch(verdict, approval=gate.approval(verdict, operator="ada", reason="reviewed"))
"""

from __future__ import annotations

import os
import time

from prespawn.checker.admission import Refused, admit
from prespawn.checker.approval import Approval
from prespawn.checker.approve import approve, draft
from prespawn.checker.check import check, declaration_invalid
from prespawn.checker.selection import profile_of
from prespawn.checker.verdict import Verdict
from prespawn.policy.errors import HostError
from prespawn.policy.known import Unknown

from . import launch as launching
from .facts import environment as variables
from .facts import gather

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from prespawn.blockers.rule import Rule
    from prespawn.checker.declaration import Declaration
    from prespawn.checker.facts import Facts
    from prespawn.launchers.invocation import Invocation
    from prespawn.policy.bundle import Policy

    from .facts import Held
    from .outcome import Outcome

APPROVAL_SECONDS = 3600  # how long an approval made by `Gate.approval` lasts unless the operator says otherwise


class Checked(Verdict):
    """A verdict with what it was reached on, so that it can be launched; ``document`` holds neither."""

    declaration: Declaration | None
    facts: Facts | None


class Gate:
    """One site's gate; safe to share between threads, as nothing in it changes."""

    def __init__(self, policy: Policy, rules: tuple[Rule, ...], *, site_file: str | None = None) -> None:
        self.policy = policy
        self.rules = rules
        self._site_file = site_file

    @classmethod
    def load(cls, site: str | None = None, *, workspaces: Mapping[str, str] | None = None) -> Self:
        """Return the gate of a site file, of the one found in the usual places, or of the built-in site.

        ``workspaces`` sets the root of named workspaces for this process, as a driver does for a fresh checkout.
        ``ReadError`` if a trusted file is wrong or could have been written by somebody else.
        """
        from .trusted import load

        return cls(**load(site, workspaces or {}))
