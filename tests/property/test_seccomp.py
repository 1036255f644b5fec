"""A compiled filter does what its JSON says: near every edge of the shipped one, and for filters of any make."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bpf import ALLOW, ERRNO, Filter
from support.libseccomp import exported, library
from support.seccomp import ARCHITECTURES, DEFAULT, RAW, TABLES, VALUE, Meaning

from prespawn.launchers.seccomp import compile_filter

CALLS = 100_000
EACH = pytest.mark.parametrize("architecture", ARCHITECTURES)


def agree(program: bytes, meaning: Meaning, random: Random, calls: int) -> set[int]:
    """Assert that a program and a meaning say the same of random calls; return what they said."""
    loaded, said = Filter(program), set()
    for _ in range(calls):
        number, arguments, audit = meaning.call(random)
        result, _ = loaded.run(number, arguments, audit)
        expected = meaning.of(number, arguments, audit)
        assert result == expected, f"{number} {[hex(one) for one in arguments]} under {audit:#x}"
        said.add(result)
    return said


@EACH
def test_shipped_filter_does_what_its_json_says(architecture: str) -> None:
    said = agree(compile_filter(DEFAULT, TABLES[architecture]), Meaning(VALUE, architecture), Random(3), CALLS)
    assert said == {ALLOW, ERRNO | 1, ERRNO | 38, 0x80000000}  # each is met


@EACH
def test_shipped_filter_does_what_its_json_says_of_every_number(architecture: str) -> None:
    loaded, meaning = Filter(compile_filter(DEFAULT, TABLES[architecture])), Meaning(VALUE, architecture)
    for number in range(1 << 12):
        for fill in (0, (1 << 64) - 1):
            arguments = [fill] * 6
            expected = meaning.of(number, arguments, meaning.table["audit"])
            assert loaded.run(number, arguments, meaning.table["audit"])[0] == expected, number


@st.composite
def conditions(draw: st.DrawFn, index: int) -> dict[str, Any]:
    word = st.sampled_from([0, 1, 2, 0xFFFFFFFF, 0x80000000, 1 << 32, 0xFFFFFFFF << 31]) | st.integers(0, (1 << 63) - 1)
    value = draw(word)
    if draw(st.booleans()):
        return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}
    mask = value or 1
    return {"index": index, "value": mask, "valueTwo": draw(word) & mask, "op": "SCMP_CMP_MASKED_EQ"}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a filter that is well formed: from one rule to one for every call, with few or many alternatives."""
    names = draw(st.sets(st.sampled_from(sorted(RAW["x86_64"]["numbers"])), min_size=1, max_size=200))
    actions = st.sampled_from([("SCMP_ACT_ALLOW", None), ("SCMP_ACT_ERRNO", 7), ("SCMP_ACT_KILL_PROCESS", None)])
    rules = []
    for name in sorted(names):
        action, errno = draw(actions)
        fields = {"names": [name], "action": action, **({} if errno is None else {"errnoRet": errno})}
        alternatives: dict[str, Any] = {}
        for _ in range(draw(st.integers(0, 3))):
            indexes = draw(st.sets(st.integers(0, 5), min_size=1, max_size=3))
            args = [draw(conditions(index)) for index in sorted(indexes)]
            alternatives[json.dumps(args, sort_keys=True)] = args
        rules += [{**fields, "args": args} for args in alternatives.values()] or [fields]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": draw(st.integers(1, 4095)),
        "archMap": [{"architecture": RAW[id]["seccomp"], "subArchitectures": []} for id in ARCHITECTURES],
        "syscalls": rules,
    }


@given(documents(), st.randoms(use_true_random=False), st.sampled_from(ARCHITECTURES))
def test_any_filter_does_what_its_json_says(value: dict[str, Any], random: Random, architecture: str) -> None:
    program = compile_filter(value, TABLES[architecture])
    agree(program, Meaning(value, architecture), Random(random.getrandbits(32)), 300)


@given(documents(), st.sampled_from(ARCHITECTURES))
def test_a_filter_depends_on_what_it_says_and_not_on_the_order_of_its_keys(value: Any, architecture: str) -> None:
    turned = json.loads(json.dumps(value), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert compile_filter(turned, TABLES[architecture]) == compile_filter(value, TABLES[architecture])


@EACH
def test_jumps_beyond_the_reach_of_one_byte_arrive(architecture: str) -> None:
    """Every second call has a list of its own, so that the tree and the lists are each longer than a jump is."""
    names = sorted(RAW[architecture]["numbers"], key=lambda name: int(RAW[architecture]["numbers"][name]))[::2]
    lists = [
        {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [{"index": at % 6, "value": value, "op": "SCMP_CMP_EQ"}]}
        for at, name in enumerate(names)
        for value in (range(at, at + 300) if at in (3, 90) else range(at, at + 6))
    ]
    value = {**VALUE, "syscalls": lists}
    program = compile_filter(value, TABLES[architecture])
    assert len(program) > 8 * 2000
    agree(program, Meaning(value, architecture), Random(5), 20_000)


@EACH
def test_runtimes_library_makes_the_same_of_the_shipped_filter(architecture: str) -> None:
    """What a container runtime builds of the same text, by libseccomp, for every call that the library knows."""
    lib = library()
    if lib is None:
        pytest.skip("no `libseccomp.so.2` on this host: `apt install libseccomp2`")
    program, known = exported(lib, VALUE, architecture)
    assert len(known) > 200
    theirs, ours = Filter(program), Filter(compile_filter(DEFAULT, TABLES[architecture]))
    meaning, random = Meaning(VALUE, architecture), Random(7)
    compared = 0
    while compared < 30_000:
        number, arguments, _ = meaning.call(random)
        if meaning.names.get(number) in known:
            compared += 1
            audit = meaning.table["audit"]
            assert ours.run(number, arguments, audit)[0] == theirs.run(number, arguments, audit)[0], (number, arguments)
