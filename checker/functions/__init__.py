"""The blockers whose question the condition vocabulary cannot ask: one function each, of the same name.

A function takes the view of one run and yields findings (nothing: the blocker is silent) and ``Unknown``. It is
pure, like every condition, and must answer alike or ``Unknown`` when a fact is taken away (invariant 4).
"""

from __future__ import annotations

from . import argv, contract, held, level, names, policy, resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prespawn.policy.known import Unknown

    from ..evaluate import View
    from .finding import Finding

    Function = Callable[[View], Iterable[Finding | Unknown] | Unknown]

FUNCTIONS: Mapping[str, Function] = {
    function.__name__.replace("_", "-"): function
    for module in (argv, contract, held, level, names, policy, resources)
    for function in module.FUNCTIONS
}
