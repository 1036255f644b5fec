"""What the kernel makes of a script: its interpreter, with the script's own words behind the interpreter's.

Whether a process is that can be told only by reading the script's first line again, in the worker's root and as the
kernel reads it. Anything in front of a program that is no script's interpreter is another program.
"""

from __future__ import annotations

import os

from prespawn import kernel

from .mounts import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD = 256  # bytes of a first line that the kernel reads
_MOST_SCRIPTS = 5  # the kernel follows no more
_BLANKS = b" \t"


def is_run_by(found: Sequence[bytes], words: Sequence[bytes], root: int, cwd: bytes, running: str) -> str | None:
    """Return the identity of the script that a process runs with some words, or None if it runs none.

    ``found`` is the process's vector and ``running`` the identity of its executable; ``words`` begin with the script's
    name as it was asked for, which is not the path that it was found at.
    """
    place = len(found) - len(words)
    if place < 1 or list(found[place + 1 :]) != list(words[1:]):
        return None
    script = found[place]
    before, program = _interpreter(root, cwd, script, _MOST_SCRIPTS)
    if before != list(found[:place]) or _identity(root, cwd, program) != running:
        return None
    return _identity(root, cwd, script)


def _interpreter(root: int, cwd: bytes, path: bytes, most: int) -> tuple[list[bytes], bytes]:
    """Return the words that the kernel puts before a file's path, and the path of the program that it executes."""
    head = _head(root, cwd, path)
    if not head.startswith(b"#!") or most == 0:
        return [], path
    line = head[2:].partition(b"\n")[0].strip(_BLANKS)
    name = line.replace(b"\t", b" ").partition(b" ")[0]
    argument = line[len(name) :].strip(_BLANKS)
    before, program = _interpreter(root, cwd, name, most - 1)
    return [*before, name, *([argument] if argument else [])], program


def _head(root: int, cwd: bytes, path: bytes) -> bytes:
    fd = kernel.open_in_root(root, os.path.join(cwd, path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, _HEAD)
    finally:
        os.close(fd)


def _identity(root: int, cwd: bytes, path: bytes) -> str:
    fd = kernel.open_in_root(root, os.path.join(cwd, path), os.O_PATH | os.O_CLOEXEC)
    try:
        return identity(kernel.statx(fd, ""))
    finally:
        os.close(fd)
