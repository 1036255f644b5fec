"""Instructions of classic BPF for seccomp filters: how they are encoded, and how far their jumps reach.

It knows ``struct sock_filter`` and ``struct seccomp_data`` (``linux/filter.h``, ``linux/seccomp.h``) and nothing of any
system call: which program is meant is ``launchers.seccomp``'s.

A program is written **from its end to its beginning**. Its jumps only go forward, so whatever an instruction jumps to
stands already, and its *place*, counted from the end and never changed by what is written later, is known. No label is
left open, a program without an end cannot be written, and equal ends are shared.
"""

from __future__ import annotations

from struct import pack

RETURN = 0x06
LOAD, AND = 0x20, 0x54  # a word of seccomp_data into the accumulator; mask the accumulator
JUMP, EQUAL, AT_LEAST, ANY_BIT = 0x05, 0x15, 0x35, 0x45

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000  # an errno stands in the lower half

NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in seccomp_data; six arguments of 64 bits

MOST = 4096  # BPF_MAXINSNS

_REACH = 254  # an offset is one byte; one less, as the other way of a branch may need an instruction in between


class Program:
    """A growing program; each method writes before what stands and returns the place of what it wrote."""

    def __init__(self) -> None:
        self._written: list[tuple[int, int, int, int]] = []  # the last instruction first
        self._ends: dict[int, int] = {}  # by what they return
        self._nearest: dict[int, int] = {}  # by place: the copy of it, or the jump to it, that was written last

    def __len__(self) -> int:
        return len(self._written)

    def returns(self, value: int) -> int:
        """Write an end, or return the place of an equal one."""
        if value not in self._ends:
            self._ends[value] = self._write(RETURN, 0, 0, value)
        return self._ends[value]

    def load(self, offset: int, then: int) -> int:
        """Write a load of 32 bits of ``seccomp_data``; ``then`` is the place that follows."""
        self._continue(then)
        return self._write(LOAD, 0, 0, offset)

    def mask(self, bits: int, then: int) -> int:
        """Write an AND on what was loaded."""
        self._continue(then)
        return self._write(AND, 0, 0, bits)

    def branch(self, test: int, value: int, yes: int, no: int) -> int:
        """Write a comparison of what was loaded with a value, and the two places to go on at."""
        yes, no = self._near(yes), self._near(no)
        here = len(self._written)
        return self._write(test, here - yes - 1, here - no - 1, value)

    def encode(self) -> bytes:
        """Return the array of ``struct sock_filter``, first instruction first, in little-endian order."""
        return b"".join(pack("<HBBI", *instruction) for instruction in reversed(self._written))

    def _write(self, code: int, yes: int, no: int, value: int) -> int:
        self._written.append((code, yes, no, value))
        return len(self._written) - 1

    def _continue(self, place: int) -> None:
        """Make sure that what is written next is followed by a place."""
        if place != len(self._written) - 1:
            self._repeat(place)

    def _near(self, place: int) -> int:
        """Return a place within reach at which the program goes on as at this one."""
        nearest = self._nearest.get(place, place)
        return nearest if len(self._written) - nearest - 1 <= _REACH else self._repeat(place)

    def _repeat(self, place: int) -> int:
        code, _, _, value = self._written[place]
        if code == RETURN:
            self._nearest[place] = self._write(RETURN, 0, 0, value)
        else:
            self._nearest[place] = self._write(JUMP, 0, 0, len(self._written) - place - 1)
        return self._nearest[place]
