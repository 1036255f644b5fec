"""The command line: words in, an exit code out.

Plain ``check`` and ``exec`` lines are read by ``plain`` and never meet click, whose import costs more than the
decision; everything else (help, completion, errors, other commands) goes to ``commands``. A property test holds that
whatever ``plain`` accepts, click reads alike. The result goes to standard output alone, everything else to standard
error.
"""

from __future__ import annotations

import sys

from prespawn import exit_codes
from prespawn.policy.errors import HostError, InputError

from .output import finish, prepare, refuse, remark
from .plain import read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code, with all that it says written; no exception leaves it."""
    line = list(sys.argv[1:] if arguments is None else arguments)
    before_start = exit_codes.EXEC_NOT_STARTED if line[:1] == ["exec"] else None
    try:
        prepare()
        code = _command(line)()
        finish()
        return code
    except InputError as wrong:
        refuse(wrong)
        return before_start or exit_codes.USAGE
    except HostError as failed:
        refuse(failed)
        return before_start or exit_codes.HOST_FAILED
    except KeyboardInterrupt:
        return exit_codes.EXEC_SIGNAL + 2
    except BrokenPipeError:
        return exit_codes.EXEC_SIGNAL + 13
    except Exception as crash:  # noqa: BLE001  # the exit code is the last thing that must still be true
        remark(f"internal error: {type(crash).__name__} at {_place(crash)} (internal-error)")
        return before_start or exit_codes.INTERNAL


def _place(crash: Exception) -> str:
    """Return module and line of where a crash began: what a report of it needs, and no value."""
    trace = crash.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "no known place"
    return f"{trace.tb_frame.f_globals.get('__name__', 'unknown')}:{trace.tb_lineno}"


def _command(line: Sequence[str]) -> Callable[[], int]:
    plain = read_plain(line)
    if plain is not None:
        return plain
    from .commands import with_click

    return lambda: with_click(line)
