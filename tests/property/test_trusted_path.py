"""The walk goes where the kernel goes, and no stranger's change on the way goes unseen."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from prespawn.trusted_path import Walk

NAMES = st.sampled_from(["a", "b", "c", "..", ".", ""])
WAYS = st.lists(NAMES, min_size=1, max_size=6).map("/".join).filter(bool)
TREES = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["directory", "file"]) | WAYS.map(lambda way: f"link {way}"),
    max_size=8,
)


def plant(base: Path, tree: dict[str, str]) -> None:
    for name, kind in sorted(tree.items()):
        path = base / name
        # planted only below real directories: behind a link it would lie elsewhere on this machine
        if os.path.lexists(path) or os.path.realpath(path.parent) != str(path.parent) or not path.parent.is_dir():
            continue
        if kind == "directory":
            path.mkdir(mode=0o700)
        elif kind == "file":
            path.touch(mode=0o600)
        else:
            target = kind.removeprefix("link ")
            path.symlink_to(f"{base}{target}" if target.startswith("/") else target)


def led(path: str) -> str | None:
    """Return where the kernel goes, or nothing where it stops."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except OSError:
        return None
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def walked(path: str) -> str | None:
    try:
        with Walk(path, follow_last=True, sticky=True) as way:
            return None if way.missing else way.path
    except OSError:
        return None


@given(tree=TREES, way=WAYS)
def test_walk_goes_where_the_kernel_goes(tree: dict[str, str], way: str) -> None:
    with tempfile.TemporaryDirectory() as base:
        plant(Path(base).resolve(), tree)
        path = f"{Path(base).resolve()}/{way}"
        here, there = walked(path), led(path)
        # `file/` and `file/.` are the file here, and an error to the kernel
        assert here == there or (there is None and here is not None and os.path.isfile(here))


@given(tree=TREES, way=WAYS, opened=st.integers(0, 7), bits=st.sampled_from([0o020, 0o002, 0o022]))
def test_walk_sees_what_others_can_write(tree: dict[str, str], way: str, opened: int, bits: int) -> None:
    with tempfile.TemporaryDirectory() as base:
        plant(Path(base).resolve(), tree)
        path = f"{Path(base).resolve()}/{way}"
        try:
            with Walk(path, follow_last=True, sticky=True) as before:
                assert before.fault is None
                passed = {entry for entry in Path(base).rglob("*") if not entry.is_symlink()}
                passed = {entry for entry in passed if identity(entry) in before.above}
        except OSError:
            return
        if not passed:
            return
        changed = sorted(passed)[opened % len(passed)]
        changed.chmod(stat.S_IMODE(changed.stat().st_mode) | bits)
        with Walk(path, follow_last=True, sticky=True) as after:
            assert after.fault is not None
            assert after.fault.path == str(changed.resolve())


def identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
