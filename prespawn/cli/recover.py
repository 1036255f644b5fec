"""``prespawn recover``: settle what parents left open that are gone."""

from __future__ import annotations

from prespawn import exit_codes
from prespawn.policy.canonical import canonical
from prespawn.policy.codec import encode

from ..gate import Gate
from ..registry import ENDED, LOST, NEVER_STARTED
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..recover import Settled

_SENTENCES = {
    NEVER_STARTED: "never started; its parent was gone before it was released",
    LOST: "lost; its parent is gone, and nobody saw its end",
    ENDED: "ended; its parent had seen that",
}


def run(site: str | None, format: str) -> int:
    """Settle every open run of the site whose parent is gone, and print what became of each."""
    done = Gate.load(site).recover()
    if format == "json":
        say([canonical({"prespawn": "recovered/v1", "runs": encode(done.runs), "swept": list(done.swept)})])
    else:
        say(f"{one.run_id}: {_sentence(one)}" for one in done.runs)
    return exit_codes.ALLOWED


def _sentence(one: Settled) -> str:
    return f"goes on under process {one.parent}" if one.state is None else _SENTENCES[one.state]
