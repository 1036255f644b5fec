"""prespawn decides whether an agent worker may start, and holds it to what was decided.

``Gate`` is what a driver uses; the rest is there to be read. Names are imported when they are asked for, so that
``import prespawn`` costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .checker.approval import Approval
    from .checker.verdict import Blocker, Verdict
    from .gate import Checked, Gate, Run
    from .outcome import Outcome
    from .policy.errors import HostError, InputError, PrespawnError, ReadError, ShortfallError
    from .pumps import Streams

_HOMES = {
    "Approval": "checker.approval", "Blocker": "checker.verdict", "Checked": "gate", "Gate": "gate",
    "HostError": "policy.errors", "InputError": "policy.errors", "Outcome": "outcome", "PrespawnError": "policy.errors",
    "ReadError": "policy.errors", "Run": "gate", "ShortfallError": "policy.errors", "Streams": "pumps",
    "Verdict": "checker.verdict",
}  # fmt: skip
__all__ = [
    "Approval", "Blocker", "Checked", "Gate", "HostError", "InputError", "Outcome", "PrespawnError", "ReadError", "Run",
    "ShortfallError", "Streams", "Verdict",
]  # fmt: skip

own_process = False
"""Whether no other code than this package's runs in this process: set by the installed command, and by nobody else."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module `prespawn` has no attribute `{name}`")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
