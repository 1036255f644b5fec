"""The file contract on real trees: what a run may change, what it may not, and how each is named."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import as_user
from support.ordinary import ROOT, as_ordinary_user, home
from support.trees import MOST, READ_ONLY, files, judged, mutation, seen, violations

from prespawn.checker.contract import KEPT_BY_KERNEL, Change, Contract, ContractResult, contract_of, unknown
from prespawn.checker.declaration import declaration
from prespawn.tree import tree

if TYPE_CHECKING:
    from collections.abc import Callable

    Act = Callable[[Path], object]

__all__ = ["home"]  # the fixture

TREE = ("src/app.py", "src/sub/deep.py", "doc/a", "doc/b", "README", "srcx", "src2/x", "lib/.git/config")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with a nested repository in it."""
    files(tmp_path, TREE)
    (tmp_path / "link").symlink_to("README")
    return tmp_path


def rewritten(path: Path) -> None:
    """Put other content of the same length into a file, and its old times back on it."""
    times = path.stat()
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def to_and_fro(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(b"x")
    path.write_bytes(content)


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def write(*names: str) -> Act:
    return lambda root: files(root, names)


def remove(*names: str) -> Act:
    def act(root: Path) -> None:
        for name in names:
            (root / name).unlink()

    return act


def without(name: str) -> Act:
    return lambda root: shutil.rmtree(root / name)


def steps(*acts: Act) -> Act:
    def act(root: Path) -> None:
        for step in acts:
            step(root)

    return act


ACTS: dict[str, tuple[Act, list[tuple[str, str]]]] = {
    "nothing": (lambda root: None, []),
    "touch": (lambda root: os.utime(root / "README", (1, 1)), []),
    "touch of a directory": (lambda root: os.utime(root / "doc", (1, 1)), []),
    "the same content written again": (lambda root: to_and_fro(root / "README"), []),
    "a file renamed and renamed back": (
        lambda root: (root / "doc/a").rename(root / "doc/c").rename(root / "doc/a"), []
    ),
    "content": (lambda root: (root / "README").write_text("longer than before"), [("README", "content")]),
    "content of the same length and times": (lambda root: rewritten(root / "README"), [("README", "content")]),
    "a file emptied": (lambda root: (root / "README").write_text(""), [("README", "content")]),
    "mode": (lambda root: (root / "README").chmod(0o600), [("README", "mode")]),
    "mode of a directory": (lambda root: (root / "doc").chmod(0o700), [("doc", "mode")]),
    "mode of the root": (lambda root: root.chmod(0o711), [(".", "mode")]),
    "setuid": (lambda root: (root / "doc/a").chmod(0o4644), [("doc/a", "mode")]),
    "a file added": (lambda root: (root / "doc/new").write_text(""), [("doc/new", "added")]),
    "a directory added": (lambda root: (root / "doc/new").mkdir(), [("doc/new", "added")]),
    "a file removed": (lambda root: (root / "doc/a").unlink(), [("doc/a", "removed")]),
    "a rename": (
        lambda root: (root / "doc/a").rename(root / "doc/c"), [("doc/a", "removed"), ("doc/c", "added")]
    ),
    "a hard link": (
        lambda root: os.link(root / "README", root / "doc/c"), [("README", "links"), ("doc/c", "added")]
    ),
    "a link's text": (
        lambda root: replaced(root / "link", lambda path: path.symlink_to("REALLY")), [("link", "content")]
    ),
    "a link in the place of a file": (
        lambda root: replaced(root / "README", lambda path: path.symlink_to("doc/a")), [("README", "type")]
    ),
    "a FIFO in the place of a file": (lambda root: replaced(root / "README", os.mkfifo), [("README", "type")]),
    "a file in the place of a directory": (
        steps(without("src2"), lambda root: (root / "src2").write_text("")),
        [("src2", "type"), ("src2/x", "removed")],
    ),
    "a name that is no text": (
        lambda root: os.close(os.open(os.fsencode(root) + b"/\xff", os.O_CREAT)), [("\udcff", "added")]
    ),
    "below a nested repository": (
        lambda root: (root / "lib/.git/config").write_text("[core]"), [("lib/.git/config", "content")]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTS)
def test_read_only_contract_names_every_change(root: Path, name: str) -> None:
    act, wrong = ACTS[name]
    result = judged(root, READ_ONLY, act)
    assert (violations(result), result.is_kept) == (wrong, not wrong)


@pytest.mark.parametrize("name", ACTS)
def test_contract_of_everything_covers_all_but_repositories(root: Path, name: str) -> None:
    act, wrong = ACTS[name]
    assert violations(judged(root, mutation("**"), act)) == [one for one in wrong if ".git" in one[0]]


SCOPED: dict[str, tuple[tuple[str, ...], Act, list[tuple[str, str]]]] = {
    "inside": (("src/**",), lambda root: (root / "src/app.py").write_text("changed"), []),
    "new files inside": (("src/**",), write("src/n", "src/sub/n", "src/new/n"), []),
    "removed inside": (("src/**",), remove("src/app.py", "src/sub/deep.py"), []),
    "a sibling with the same beginning": (("src/**",), write("src2/y"), [("src2/y", "added")]),
    "a file with the same beginning": (
        ("src/**",), lambda root: (root / "srcx").write_text("!"), [("srcx", "content")]
    ),
    "deleted outside": (("src/**",), remove("doc/a"), [("doc/a", "removed")]),
    "renamed out": (
        ("src/**",), lambda root: (root / "src/app.py").rename(root / "app.py"), [("app.py", "added")]
    ),
    "renamed in": (
        ("src/**",), lambda root: (root / "doc/a").rename(root / "src/a"), [("doc/a", "removed")]
    ),
    "mode only, outside": (("src/**",), lambda root: (root / "doc/a").chmod(0o755), [("doc/a", "mode")]),
    "mode only, inside": (("src/**",), lambda root: (root / "src/app.py").chmod(0o755), []),
    "mode of the directory itself": (("src/**",), lambda root: (root / "src").chmod(0o700), [("src", "mode")]),
    "the directory itself becomes a link": (
        ("src2/**",), steps(without("src2"), lambda root: (root / "src2").symlink_to("doc")), [("src2", "type")]
    ),
    "the directory itself goes": (
        ("src2/**",), without("src2"), []
    ),
    "the directory itself comes": (("build/out/**",), write("build/out/a.o"), []),
    "something else comes beside it": (("build/out/**",), write("build/a.o"), [("build/a.o", "added")]),
    "the way to it comes as a file": (("build/out/**",), write("build"), [("build", "added")]),
    "the way to it goes": (
        ("src2/x",), without("src2"), [("src2", "removed")]
    ),
    "an exact path": (("doc/a",), lambda root: (root / "doc/a").write_text("changed"), []),
    "beside an exact path": (("doc/a",), lambda root: (root / "doc/b").write_text("!"), [("doc/b", "content")]),
    "a new exact path": (("reports/x.txt",), write("reports/x.txt"), []),
    "an exact path that becomes a directory": (
        ("doc/a",), steps(remove("doc/a"), write("doc/a/n")), [("doc/a/n", "added")]
    ),
    "two scopes": (("src/**", "doc/b"), steps(write("src/n"), remove("doc/b")), []),
    "a new repository": (("**",), write(".git/config"), [(".git", "added"), (".git/config", "added")]),
    "a new nested repository": (
        ("src/**",), write("src/v/.git/hooks/x"),
        [("src/v/.git", "added"), ("src/v/.git/hooks", "added"), ("src/v/.git/hooks/x", "added")],
    ),
    "a pointer to a repository": (("**",), write("src/.git"), [("src/.git", "added")]),
    "a repository that is a link": (
        ("**",), lambda root: (root / "src/.git").symlink_to("../doc"), [("src/.git", "added")]
    ),
    "a removed repository": (
        ("**",), without("lib/.git"),
        [("lib/.git", "removed"), ("lib/.git/config", "removed")],
    ),
    "a name that only begins so": (("**",), write(".gitignore", "src/.github/x"), []),
}  # fmt: skip


@pytest.mark.parametrize("name", SCOPED)
def test_scoped_contract(root: Path, name: str) -> None:
    scope, act, wrong = SCOPED[name]
    assert violations(judged(root, mutation(*scope), act)) == wrong


def test_what_the_kernel_holds_is_left_out(root: Path) -> None:
    files(root, [".git/config"])
    act = write(".git/hooks/pre-commit")
    assert violations(judged(root, mutation("**"), act, held=(".git",))) == []
    assert [path for path, _ in violations(judged(root, mutation("**"), write(".git/hooks/x")))] == [".git/hooks/x"]


def test_socket_is_looked_at_and_never_opened(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        result = judged(root, READ_ONLY, lambda root: listening.bind(str(root / "s")))
    assert violations(result) == [("s", "added")]


def test_second_look_reads_nothing_that_the_run_made(root: Path) -> None:
    before = seen(root, READ_ONLY)
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 43)  # reading it would never end
    with (root / "README").open("r+b") as file:
        file.truncate(1 << 43)
    after = seen(root, READ_ONLY, before=before)
    assert (after["huge"][2:], after["README"][2:]) == ((1 << 43, b""), (1 << 43, b""))


def test_content_of_what_may_change_is_not_read(root: Path) -> None:
    assert sorted(seen(root, mutation("**"))) == ["lib/.git", "lib/.git/config"]


def test_file_longer_than_a_piece_is_read_to_its_end(root: Path) -> None:
    (root / "long").write_bytes(b"a" * (5 << 20))

    def act(root: Path) -> None:
        with (root / "long").open("r+b") as file:
            file.seek((5 << 20) - 1)
            file.write(b"b")

    assert violations(judged(root, READ_ONLY, act)) == [("long", "content")]


def test_more_entries_than_allowed_are_not_known(root: Path) -> None:
    for number in range(MOST):
        (root / f"f{number}").touch()
    with pytest.raises(OverflowError):
        seen(root, mutation("**"))


def test_file_that_grows_while_it_is_read_is_not_known(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.read

    def growing(fd: int, count: int) -> bytes:
        with (root / "README").open("a") as file:
            file.write("more")
        return really(fd, count)

    monkeypatch.setattr(os, "read", growing)
    with pytest.raises(OSError, match="it changed while it was looked at") as found:
        seen(root, mutation("src/**"))
    assert found.value.filename in TREE


def test_directory_swapped_for_a_link_between_two_steps_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.open

    def swapping(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "doc":
            (root / "doc").rename(root.parent / f"{root.name}-away")
            (root / "doc").symlink_to(root / "src")
        return really(path, flags, dir_fd=dir_fd)

    fd = os.open(root, os.O_PATH)
    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(OSError, match="it changed while it was looked at") as found:
        tree(fd, READ_ONLY, MOST)
    assert found.value.filename == "doc"
    os.close(fd)


def test_no_descriptor_is_left_open_whatever_happens(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(os.listdir("/proc/self/fd"))
    seen(root, READ_ONLY)
    monkeypatch.setattr(os, "read", lambda fd, count: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        seen(root, READ_ONLY)
    assert len(os.listdir("/proc/self/fd")) == count


def test_message_escapes_names_and_shows_a_few_of_many() -> None:
    names = ("a\n\x1b[2J", *(f"f{number}" for number in range(9)))
    changes = tuple(Change(path=name, how="added") for name in names)
    result = ContractResult(result="violated", seen="compared", violations=changes)
    assert result.sentence == (
        "the file contract was violated: `a\\x0a\\x1b[2J` (added), `f0` (added), `f1` (added), `f2` (added),"
        " `f3` (added), and 5 more"
    )


def test_nobody_looked_is_not_kept() -> None:
    result = unknown("more than 3 entries")
    assert (result.is_kept, result.sentence) == (
        False, "whether the file contract was kept is not known: more than 3 entries",
    )  # fmt: skip
    assert (KEPT_BY_KERNEL.is_kept, KEPT_BY_KERNEL.seen) == (True, "kernel")


def test_contract_of_a_declaration_is_what_it_states() -> None:
    told = {"mode": "mutation", "allowed_paths": ["src/**", "a"]}
    assert contract_of(declaration({"file_contract": told, "profile": "", "adapter": "", "declared_files": [],
                                    "env_keys": []})) == mutation("src/**", "a")  # fmt: skip


WITHOUT: tuple[dict[str, object], ...] = (
    {}, {"mode": "write"}, {"mode": "mutation"}, {"mode": "mutation", "allowed_paths": 1},
)  # fmt: skip


@pytest.mark.parametrize("told", WITHOUT)
def test_declaration_without_a_contract_has_none(told: dict[str, object]) -> None:
    raw = {"file_contract": told, "profile": "", "adapter": "", "declared_files": [], "env_keys": []}
    with pytest.raises(ValueError, match="a file contract is"):
        contract_of(declaration(raw))


def test_pattern_below_a_repository_covers_nothing(root: Path) -> None:
    contract = Contract(mode="mutation", allowed_paths=("lib/.git/**",))
    assert violations(judged(root, contract, write("lib/.git/x"))) == [("lib/.git/x", "added")]


def unreadable(root: str, wrong: str) -> list[tuple[str, str]]:
    """Close a file and a directory to ourselves, and do something to the file between two looks."""
    top = Path(root)
    (top / "closed").chmod(0)
    return violations(judged(top, READ_ONLY, lambda top: UNREADABLE[wrong](top / "closed")))


def opened_and_written(path: Path) -> None:
    path.chmod(0o600)
    rewritten(path)
    path.chmod(0)


UNREADABLE: dict[str, Act] = {"nothing": lambda path: path.exists(), "written": opened_and_written}


@pytest.mark.parametrize(("act", "wrong"), [("nothing", []), ("written", [("closed", "content")])])
def test_file_that_nobody_may_read_is_told_by_its_times(home: str, act: str, wrong: list[object]) -> None:
    path = Path(home, "workspace", "closed")
    path.write_text("content")
    os.chown(path, *2 * (as_user.USER if ROOT else -1,))
    assert as_ordinary_user(unreadable, f"{home}/workspace", act) == wrong


def looked(root: str) -> str:
    """Look at a tree with a directory in it that we closed to ourselves."""
    (Path(root) / "own").mkdir(0)
    try:
        seen(Path(root), mutation("**"))
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    finally:
        (Path(root) / "own").rmdir()
    return "looked at"


def test_own_directory_that_cannot_be_read_is_not_known(home: str) -> None:
    assert as_ordinary_user(looked, f"{home}/workspace") == "own: Permission denied"
