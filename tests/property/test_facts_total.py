"""Facts exist for every declaration: whatever stands under a key, ``gather`` answers and leaks nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.facts_world import World, area

from prespawn.policy.canonical import canonical
from prespawn.policy.codec import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = ("run_id", "workspace", "profile", "adapter", "cwd", "declared_files", "env_keys", "log_path", "registry_path",
        "execution", "file_contract")  # fmt: skip
HERE = "the workspace of the test"
KNOWN = ("main", "sandbox-v1", ".", "..", "/", "~", "f", "l", "reports/x", "a\0b", "\udcff", "LANG")
words = st.one_of(st.text(), st.sampled_from(KNOWN))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words),
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(st.sampled_from(("argv", "mode")), below)),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with area() as top:
        world = World(top)
        world.file("ws/f")
        world.link("ws/l", "/etc")
        yield world


@given(fields=st.dictionaries(st.sampled_from(KEYS), values))
def test_gather_answers_for_any_declaration(world: World, fields: dict[str, Any]) -> None:
    before = os.listdir("/proc/self/fd")
    facts = world.facts(**fields)
    assert os.listdir("/proc/self/fd") == before
    canonical(encode(facts))  # every fact can be written down
    files = fields.get("declared_files", [])
    assert len(facts.declared_files) == (len(files) if isinstance(files, list) else 0)
    assert encode(facts) == encode(world.facts(**fields))


@given(
    root=st.one_of(words, st.just(HERE)),
    state_dir=words,
    toolchain=words,
    lease_root=words,
    site_file=st.one_of(st.none(), words),
)
def test_gather_answers_for_any_path_of_the_site(
    world: World, root: str, state_dir: str, toolchain: str, lease_root: str, site_file: str | None
) -> None:
    kept, bound = world.site, {"most_entries": 50, "site_file": site_file}
    try:
        main = kept.workspaces["main"]
        main = main.replace(root=main.root if root == HERE else root, toolchains=("py",), state=toolchain)
        world.site = kept.replace(
            state_dir=state_dir, workspaces={"main": main}, toolchains={"py": toolchain}, lease_root=lease_root
        )
        canonical(encode(world.facts(look=bound, cwd=".", declared_files=["f"], log_path="reports/x")))
    finally:
        world.site = kept
