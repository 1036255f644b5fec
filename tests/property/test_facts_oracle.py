"""The walk against an independent oracle: ``openat2(2)``, which the kernel keeps beneath a directory by itself."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prespawn.facts.walk import declared_file, descend
from prespawn.policy.known import ABSENT
from prespawn.policy.spelling import is_canonical, is_printable_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OPENAT2 = 437  # the same number on every architecture
NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT = 0x02, 0x04, 0x08, 0x10
NAMES = ("a", "b", "c")
PARTS = st.sampled_from((*NAMES, "..", ".", ""))

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5).map("/".join)
any_paths = st.lists(PARTS, min_size=1, max_size=7).map("/".join)
texts = st.one_of(any_paths, any_paths.map("/{}".format), st.just("/proc/self/root/etc")).filter(bool)
leaf = st.one_of(st.just("file"), texts.map(lambda text: ("link", text)))
trees = st.recursive(st.dictionaries(st.sampled_from(NAMES), leaf), lambda below: st.dictionaries(
    st.sampled_from(NAMES), st.one_of(leaf, below)), max_leaves=8)  # fmt: skip


class How(ctypes.Structure):
    """``struct open_how``."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def resolve(root: int, path: str, rules: int) -> int | tuple[int, int]:
    """Return the error number, or device and inode of what the kernel opens."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    how = How(os.O_PATH | os.O_CLOEXEC, 0, rules | NO_MAGICLINKS)
    fd = syscall(OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if fd < 0:
        return ctypes.get_errno()
    status = os.fstat(fd)
    os.close(fd)
    return status.st_dev, status.st_ino


@pytest.fixture(scope="module", autouse=True)
def kernel() -> None:
    root = os.open("/", os.O_PATH)
    answer = resolve(root, "proc", BENEATH)
    os.close(root)
    if isinstance(answer, int):
        pytest.skip(f"no openat2 here: {os.strerror(answer)}")


@contextmanager
def built(tree: Mapping[str, object]) -> Iterator[int]:
    """Build a tree and yield a descriptor of its root."""
    top = tempfile.mkdtemp(prefix="walk-")
    try:
        build(f"{top}/root", tree)
        root = os.open(f"{top}/root", os.O_PATH)
        try:
            yield root
        finally:
            os.close(root)
    finally:
        shutil.rmtree(top)


def build(top: str, tree: Mapping[str, object]) -> None:
    os.mkdir(top)
    for name, node in tree.items():
        if isinstance(node, dict):
            build(f"{top}/{name}", node)
        elif isinstance(node, tuple):
            os.symlink(node[1], f"{top}/{name}")
        else:
            os.close(os.open(f"{top}/{name}", os.O_CREAT, 0o600))


@given(tree=trees, path=paths)
def test_declared_file_agrees_with_the_kernel(tree: Mapping[str, object], path: str) -> None:
    with built(tree) as root:
        fact = declared_file(root, path)
        beneath, plain = resolve(root, path, BENEATH), resolve(root, path, NO_SYMLINKS | BENEATH)
    if beneath in (errno.EXDEV, errno.ELOOP):
        assert (fact.leaves, fact.linked, fact.present) == (True, False, ABSENT)
    elif plain == errno.ELOOP:
        assert (fact.leaves, fact.linked, fact.present) == (False, True, ABSENT)
    elif isinstance(plain, tuple):
        assert (fact.leaves, fact.linked, fact.present, (fact.device, fact.inode)) == (False, False, True, plain)
    else:
        assert plain in (errno.ENOENT, errno.ENOTDIR)
        assert (fact.leaves, fact.linked, fact.present) == (False, False, False)


@given(tree=trees, path=any_paths.filter(bool), beneath=st.booleans())
def test_descent_agrees_with_the_kernel(tree: Mapping[str, object], path: str, beneath: bool) -> None:
    with built(tree) as root:
        found = descend(root, path, beneath=beneath)
        kernel = resolve(root, path, BENEATH if beneath else IN_ROOT)
        if beneath and path.startswith("/"):
            kernel = resolve(root, path.lstrip("/") or ".", BENEATH)  # a path is relative to the root it is walked from
        if found.fd >= 0:
            os.close(found.fd)
    if found.leaves:
        assert kernel in (errno.EXDEV, errno.ELOOP)
    elif found.status is None:
        assert kernel in (errno.ENOENT, errno.ENOTDIR)
    else:
        assert kernel == (found.status.st_dev, found.status.st_ino)


@given(path=st.one_of(st.text(), st.none(), st.integers(), st.lists(st.text())))
def test_any_value_gets_an_answer(path: object) -> None:
    with built({"a": "file"}) as root:
        fact = declared_file(root, path)
    looked_for = isinstance(path, str) and is_printable_name(path) and is_canonical(path)
    assert (fact.leaves is ABSENT) is not looked_for
    assert fact.path is path
