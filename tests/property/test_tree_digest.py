"""The digest of a tree: two trees have the same one exactly if they are the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hypothesis import assume, given
from hypothesis import strategies as st
from support.trees import READ_ONLY, files, mutation, seen

from prespawn.checker.contract import CHANGES, Cover, compared, differences
from prespawn.tree import tree_digest

if TYPE_CHECKING:
    from pathlib import Path

    from prespawn.checker.contract import Tree

# Few letters and short names, so that concatenations of them often read alike.
NAMES = st.lists(st.sampled_from(("a", "b", "ab", "\udcff", '"', ",", "1")), min_size=1, max_size=3).map("/".join)
ENTRIES = st.tuples(
    st.sampled_from((0o100644, 0o100755, 0o120777, 0o040755)), st.integers(0, 2), st.integers(0, 12),
    st.sampled_from((b"", b"a", b"b", b"ab", b"\xff", b'"', b"1")),
)  # fmt: skip
TREES = st.dictionaries(NAMES, ENTRIES, max_size=4)


@given(TREES, TREES)
def test_trees_have_the_same_digest_exactly_if_they_are_the_same(one: Tree, other: Tree) -> None:
    assert (tree_digest(one) == tree_digest(other)) is (one == other)


@given(TREES, st.randoms(use_true_random=False))
def test_order_of_looking_does_not_change_the_digest(one: Tree, random: object) -> None:
    items = list(one.items())
    random.shuffle(items)  # type: ignore[attr-defined]  # hypothesis' own
    assert tree_digest(dict(items)) == tree_digest(one)


@given(TREES, ENTRIES, st.data())
def test_every_part_of_an_entry_counts(one: Tree, other: tuple[int, int, int, bytes], data: st.DataObject) -> None:
    assume(one)
    path = data.draw(st.sampled_from(sorted(one)))
    index = data.draw(st.integers(0, 3))
    entry: Any = (*one[path][:index], other[index], *one[path][index + 1 :])
    changed = {**one, path: entry}
    assert (tree_digest(changed) == tree_digest(one)) is (other[index] == one[path][index])


@given(TREES, TREES)
def test_without_a_scope_every_difference_is_a_violation(one: Tree, other: Tree) -> None:
    found = differences(one, other)
    assert tuple((change.path, change.how) for change in compared(one, other, READ_ONLY).violations) == found
    assert {path for path, _ in found} == {path for path in {**one, **other} if one.get(path) != other.get(path)}
    assert {how for _, how in found} <= set(CHANGES)


@given(TREES, TREES, st.lists(NAMES, max_size=2), st.lists(NAMES, max_size=2))
def test_wider_scope_never_adds_a_violation(one: Tree, other: Tree, some: list[str], more: list[str]) -> None:
    narrow = compared(one, other, mutation(*some))
    wide = compared(one, other, mutation(*some, *(f"{path}/**" for path in more)))
    assert set(wide.violations) <= set(narrow.violations)


@given(NAMES, st.lists(NAMES, max_size=3))
def test_scope_covers_what_a_plain_reading_of_it_says(path: str, scope: list[str]) -> None:
    patterns = [name if index % 2 else f"{name}/**" for index, name in enumerate(scope)]
    plain = any(path.startswith(pattern[:-2]) if pattern.endswith("/**") else path == pattern for pattern in patterns)
    assert Cover(mutation(*patterns)).covers(path) is plain


def test_names_and_contents_that_read_alike_are_told_apart_on_disk(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "one/a").write_text("bc")
    (tmp_path / "other/ab").write_text("c")
    assert tree_digest(seen(tmp_path / "one", READ_ONLY)) != tree_digest(seen(tmp_path / "other", READ_ONLY))


def test_same_tree_made_in_another_order_has_the_same_digest(tmp_path: Path) -> None:
    files(tmp_path / "one", ["b", "a", "d/c"])
    files(tmp_path / "other", ["d/c", "a", "b"])
    os.utime(tmp_path / "other/a", (1, 1))
    assert tree_digest(seen(tmp_path / "one", READ_ONLY)) == tree_digest(seen(tmp_path / "other", READ_ONLY))
