"""A filter of system calls as a kernel takes it: the bytes for ``bwrap --seccomp FD``. Pure.

What is allowed comes from the document, the numbers from the architecture's table. What stands here is how both are
said in classic BPF, in the order in which it runs:

1. the architecture, or the process is killed: the same number is another call to another ABI;
2. numbers of another ABI under that architecture (x32): killed;
3. a balanced tree over ranges of numbers that share their fate, about seven comparisons deep;
4. what the fate is: an end, or first conditions on arguments, of 64 bits each, as two words.

Numbers of no known call get ENOSYS, as from a kernel that lacks it, and not the default: a C library falls back on an
older call then, and would take EPERM for an answer.
"""

from __future__ import annotations

from prespawn.policy.errors import InputError
from prespawn.policy.known import Absent
from prespawn.policy.seccomp import ALLOW, ERRNO, read_seccomp

from . import bpf
from .bpf import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from prespawn.policy.reader import Document
    from prespawn.policy.seccomp import Alternative, Condition, Outcome, Seccomp
    from prespawn.policy.syscalls import Syscalls

    Span = tuple[int, int]
    """A first number, and the place at which all go on from there to the next span."""
    Test = tuple[int, int, tuple[int, ...]]
    """Index of an argument, mask, values: holds if the masked argument is any of them."""

_ENOSYS = 38
_LOW, _HIGH = (1 << 32) - 1, 32


def compile_filter(document: Document | object, architecture: Syscalls) -> bytes:
    """Return a filter as an array of ``struct sock_filter``, for one architecture.

    ``document`` is a strictly read ``seccomp/*.json``, whole or its value. Raises what ``policy.seccomp`` raises, and
    ``InputError`` (``policy-too-large``) for a filter that no kernel takes.
    """
    return assembled(read_seccomp(document, architecture), architecture)


def assembled(filter: Seccomp, architecture: Syscalls) -> bytes:
    """Return the same for a filter that has been read."""
    program = Program()
    killed, unknown = program.returns(bpf.KILL), program.returns(bpf.ERRNO | _ENOSYS)
    start = _tree(program, _spans(_fates(program, filter, architecture, unknown)))
    if not isinstance(architecture.killed, Absent):
        above = program.branch(bpf.AT_LEAST, architecture.killed.last + 1, unknown, killed)
        start = program.branch(bpf.AT_LEAST, architecture.killed.first, above, start)
    start = program.load(bpf.NUMBER, start)
    start = program.branch(bpf.EQUAL, architecture.audit, start, killed)
    program.load(bpf.ARCHITECTURE, start)
    if len(program) > bpf.MOST:
        message = f"the filter has {len(program)} instructions; a kernel takes up to {bpf.MOST}; write fewer conditions"
        raise InputError("policy-too-large", message)
    return program.encode()


def _fates(program: Program, filter: Seccomp, architecture: Syscalls, unknown: int) -> list[int]:
    """Write what becomes of each call; return the places by number, ending with one that no call has."""
    failed = program.returns(_result(filter.default))
    written: dict[tuple[int, tuple[Alternative, ...]], int] = {}
    fates = [unknown] * (max(architecture.numbers.values()) + 2)
    for name, number in architecture.numbers.items():
        rule = filter.rules.get(name)
        if rule is None:
            fates[number] = failed
            continue
        meaning = _result(rule.outcome), rule.alternatives
        if meaning not in written:
            written[meaning] = _fate(program, *meaning, failed)
        fates[number] = written[meaning]
    return fates


def _spans(fates: list[int]) -> list[Span]:
    """Return where in a list each run of equal entries begins, and the entry."""
    return [(first, fate) for first, fate in enumerate(fates) if not first or fates[first - 1] != fate]


def _tree(program: Program, spans: list[Span]) -> int:
    """Write the choice among spans by the number that was loaded."""
    if len(spans) == 1:
        return spans[0][1]
    middle = len(spans) // 2
    upper = _tree(program, spans[middle:])
    lower = _tree(program, spans[:middle])
    return program.branch(bpf.AT_LEAST, spans[middle][0], upper, lower)


def _fate(program: Program, result: int, alternatives: tuple[Alternative, ...], failed: int) -> int:
    """Write one result: at once, or each alternative in turn and what follows if none holds."""
    held = program.returns(result)
    if not alternatives:
        return held
    for tests in reversed(_merged(alternatives)):
        place = held
        for test in reversed(tests):
            place = _argument(program, test, place, failed)
        failed = place
    return failed


def _result(outcome: Outcome) -> int:
    action, errno = outcome
    if action == ALLOW:
        return bpf.ALLOW
    return bpf.ERRNO | errno if action == ERRNO else bpf.KILL


def _merged(alternatives: tuple[Alternative, ...]) -> list[list[Test]]:
    """Return alternatives as lists of tests; those of one condition on one argument become one test of many values."""
    values: dict[tuple[int, int], list[int]] = {}
    others: list[list[Test]] = []
    for alternative in alternatives:
        if len(alternative) == 1:
            (index, mask, value) = alternative[0]
            values.setdefault((index, mask), []).append(value)
        else:
            others.append([_test(condition) for condition in alternative])
    return [[(index, mask, tuple(found))] for (index, mask), found in values.items()] + others


def _test(condition: Condition) -> Test:
    index, mask, value = condition
    return index, mask, (value,)


def _argument(program: Program, test: Test, held: int, failed: int) -> int:
    """Write one test of an argument: the upper word chooses among the lower words that belong to it."""
    index, mask, values = test
    offset = bpf.ARGUMENTS + 8 * index
    lower: dict[int, list[int]] = {}
    for value in values:
        lower.setdefault(value >> _HIGH, []).append(value & _LOW)
    ways = [
        (upper, _word(program, offset, mask & _LOW, [(word, held) for word in words], failed))
        for upper, words in lower.items()
    ]
    return _word(program, offset + 4, mask >> _HIGH, ways, failed)


def _word(program: Program, offset: int, mask: int, ways: Sequence[tuple[int, int]], failed: int) -> int:
    """Write one choice by a masked word of an argument: the places by value, and where else to go on."""
    if not mask:
        return ways[0][1]  # all values are 0, and every argument is
    if mask != _LOW and [value for value, _ in ways] == [0]:
        return program.load(offset, program.branch(bpf.ANY_BIT, mask, failed, ways[0][1]))
    place = failed
    for value, way in reversed(ways):
        place = program.branch(bpf.EQUAL, value, way, place)
    return program.load(offset, place if mask == _LOW else program.mask(mask, place))
