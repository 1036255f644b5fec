"""The two looks at a run's workspace, and what they say of its file contract.

The first is taken while the run is built or held, so before the worker's first instruction; the second when no process
of it is left. Where the kernel lets nothing outside the contract be written (a workspace that is mounted read-only, a
``.git`` that is bound read-only over it) there is nothing to look for. What cannot be looked at before the run is a
failure of the host, and there is no run; what cannot be looked at afterwards is not known, which is not a pass.
"""

from __future__ import annotations

from prespawn.checker.contract import KEPT_BY_KERNEL, compared, unknown
from prespawn.policy.errors import HostError

from .trusted_path import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.checker.contract import ContractResult, Tree
    from prespawn.checker.plan import Plan

    from .outcome import Outcome

HOST = "host"  # of a profile's `root.system`: no mounts of its own


class Watch:
    """One run's workspace, by the descriptor that was checked."""

    __slots__ = ("_before", "_contract", "_held", "_is_held_whole", "_most", "_root")

    def __init__(self, plan: Plan, workspace: int) -> None:
        mounts = plan.profile.root.system != HOST
        self._root, self._contract, self._most = workspace, plan.contract, plan.limits.tree_entries
        self._is_held_whole = plan.workspace is None or (mounts and not plan.workspace.writable)
        self._held = plan.read_only if mounts else ()
        self._before: Tree | None = None

    def begin(self) -> None:
        """Look for the first time; ``HostError`` ``file-contract-not-comparable`` if nobody could say what changes."""
        if self._is_held_whole:
            return
        try:
            self._before = self._tree()
        except (OSError, OverflowError) as error:
            message = f"the workspace could not be looked at before the run: {self._reason(error)}"
            raise HostError("file-contract-not-comparable", message) from error

    def end(self, outcome: Outcome) -> ContractResult | None:
        """Return what came of the contract, or None for a run of which nothing ran."""
        if outcome.stage is not None:
            return None
        if self._is_held_whole:
            return KEPT_BY_KERNEL
        if self._before is None:
            return unknown("nobody looked at the workspace before the run")
        try:
            return compared(self._before, self._tree(), self._contract)
        except (OSError, OverflowError) as error:
            return unknown(f"the workspace could not be looked at after the run: {self._reason(error)}")

    def _tree(self) -> Tree:
        from .tree import tree

        return tree(self._root, self._contract, self._most, held=self._held, before=self._before)

    def _reason(self, error: OSError | OverflowError) -> str:
        if isinstance(error, OSError):
            return f"{named(str(error.filename))}: {(error.strerror or 'no reason given').lower()}"
        return f"it holds more than `{self._most}` entries, limits.tree_entries"
