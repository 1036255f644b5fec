"""What a command writes: the result to standard output, everything else to standard error.

A result that cannot be written is a failure of its own and no crash; a remark that cannot be written changes nothing,
for the exit code says the same. Names are escaped where sentences are made (``words``); here the last thing is seen to,
that no encoding of a terminal refuses a letter.
"""

from __future__ import annotations

import io
import os
import sys

from prespawn.policy.errors import HostError, ReadError
from prespawn.policy.spelling import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from prespawn.policy.errors import PrespawnError

_STREAMS = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


def prepare() -> None:
    """Make the three standard streams usable whatever the caller left of them.

    A closed one becomes the null device before anything else is opened: otherwise the next file would get its number,
    and what a worker writes to its standard output would go into it.
    """
    for number, name, mode in _STREAMS:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
        stream = getattr(sys, name)
        if mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(lines: Iterable[str]) -> None:
    """Write lines of the result; ``HostError`` (``output-not-written``) if that cannot be done."""
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    except BrokenPipeError:
        raise
    except OSError as failed:
        raise _not_written(failed) from None


def finish() -> None:
    """See that all of the result is written; errors are those of ``say``."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as failed:
        raise _not_written(failed) from None


def remark(text: str) -> None:
    """Write one line to standard error: whose it is, and what there is to say."""
    _write(f"prespawn: {text}")


def refuse(error: PrespawnError) -> None:
    """Write one line about an error: its file, line and column first where it has them, as editors and builds read it.

    One without a place begins with the program's name, as a remark does.
    """
    text = str(error) if f"({error.id})" in str(error) else f"{error} ({error.id})"
    if isinstance(error, ReadError) and error.line:
        _write(text)
    else:
        remark(text)


def _write(text: str) -> None:
    try:
        sys.stderr.write(f"{shown(text)}\n")
        sys.stderr.flush()
    except OSError:
        return  # nobody reads it; the exit code says the same


def _not_written(failed: OSError) -> HostError:
    reason = (failed.strerror or type(failed).__name__).lower()
    return HostError("output-not-written", f"standard output takes no more: {reason}; give it somewhere to go")
