"""``prespawn lint``: every file of the project's own formats, judged like a load would, and a little beyond.

A file that is named must be one of ours; in a directory, files that begin with another key are counted and passed over.
Beyond shape, lists of trusted files are judged by the same lists as runs are: a profile that allows ``LD_PRELOAD``, a
toolchain that is ``/run``, a value in the site that looks like a key.
"""

from __future__ import annotations

import os
import sys

from prespawn import exit_codes
from prespawn.policy.canonical import canonical
from prespawn.policy.errors import InputError, ReadError
from prespawn.words import value_text

from ..documents import document_file
from ..linting import Found, findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUFFIXES = (".yaml", ".yml", ".json")


def run(paths: Sequence[str], format: str) -> int:
    """Print what is wrong in each file; nothing to judge is an exit code of its own."""
    judged, passed_over, results = 0, 0, []
    for path in paths:
        for file in _files(path):
            found = _judged(file, named=file == path)
            if found is None:
                passed_over += 1
                continue
            judged += 1
            results += found
    _print(results, judged, passed_over, format)
    if not judged and not results:
        return exit_codes.NOTHING
    return exit_codes.worst(_code(found) for found in results) if results else exit_codes.ALLOWED
