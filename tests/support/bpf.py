"""Classic BPF as the kernel checks and runs it for seccomp, written from ``linux/filter.h`` and ``seccomp(2)``.

It shares no code with the compiler: ``Filter`` refuses what ``bpf_check_classic`` and ``seccomp_check_filter`` refuse,
and runs one call at a time.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

RET, LD, AND, JA, JEQ, JGE, JGT, JSET = 0x06, 0x20, 0x54, 0x05, 0x15, 0x35, 0x25, 0x45
CONDITIONAL = {JEQ, JGE, JGT, JSET}

ALLOW, KILL_PROCESS, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
MOST = 4096


class Filter:
    """One loaded filter."""

    def __init__(self, program: bytes) -> None:
        assert program, "an empty program is EINVAL"
        assert len(program) % 8 == 0, "not an array of struct sock_filter"
        self.instructions = list(struct.iter_unpack("<HBBI", program))
        assert len(self.instructions) <= MOST
        for at, (code, yes, no, value) in enumerate(self.instructions):
            self._check(at, code, yes, no, value)
        assert self.instructions[-1][0] == RET

    def _check(self, at: int, code: int, yes: int, no: int, value: int) -> None:
        assert code in CONDITIONAL | {RET, LD, AND, JA}, f"code {code:#x} at {at}"
        if code == LD:
            assert value % 4 == 0 and value < 64, f"load of offset {value} at {at}"
        ways = [yes, no] if code in CONDITIONAL else [value] if code == JA else []
        assert all(at + 1 + way < len(self.instructions) for way in ways), f"jump out of the program at {at}"

    def run(self, number: int, arguments: Sequence[int], architecture: int) -> tuple[int, int]:
        """Return what a call comes to and after how many instructions; arguments are unsigned, of 64 bits."""
        data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments)
        words = struct.unpack("<16I", data)
        at = steps = accumulator = 0
        while True:
            code, yes, no, value = self.instructions[at]
            at += 1
            steps += 1
            if code == RET:
                return value, steps
            if code == LD:
                accumulator = words[value >> 2]
            elif code == AND:
                accumulator &= value
            elif code == JA:
                at += value
            else:
                at += yes if _holds(code, accumulator, value) else no


def _holds(code: int, accumulator: int, value: int) -> bool:
    if code == JEQ:
        return accumulator == value
    if code == JGE:
        return accumulator >= value
    return accumulator > value if code == JGT else bool(accumulator & value)
