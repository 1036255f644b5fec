"""Where the registry may lie and what it must look like: its two faults, and that nothing is made over what exists."""

from __future__ import annotations

import os
import pickle
import resource
import shutil
import signal
import socket
import sqlite3
import stat
from typing import TYPE_CHECKING, Any

import pytest

from prespawn.policy.errors import HostError
from prespawn.policy.known import Unknown
from prespawn.registry import Registry, standing
from prespawn.trusted_path import state_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

DIGEST = f"sha256:{'0' * 64}"
ENTRY: Mapping[str, str | int] = {
    "declaration": DIGEST, "policy": DIGEST, "facts": DIGEST, "blockers": DIGEST, "profile": "sandbox-v1",
    "adapter": "exec@1", "level": "container", "parent_pid": 10, "parent_start_time": 20, "parent_boot_id": "boot",
    "reserved_at": 0,
}  # fmt: skip
START: Mapping[str, str | int] = {"pid": 1, "start_time": 1, "boot_id": "boot", "started_at": 0}
USER = 61234
WHOLE = "allowed: a whole registry of this version; restore it, or move it away together with all reports and receipts"
OWNER = "owner uid 0" if os.geteuid() == 0 else f"owner uid {os.geteuid()} or 0"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users, which root alone can")


def in_child(act: Callable[[], object], user: int | None = None) -> Any:
    """Return what ``act`` returns or raises in a forked process, as another user if one is given."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            if user is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            result: object = act()
        except HostError as error:
            result = (error.id, str(error))
        except BaseException as error:  # noqa: BLE001  # whatever it is, the test shall show it
            result = repr(error)
        os.write(writer, pickle.dumps(result))
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        return pickle.loads(answer.read())


def failure(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(HostError) as raised:
        act()
    assert str(raised.value).isprintable()
    return raised.value.id, str(raised.value)


def opened(path: Path | str) -> None:
    Registry.open(str(path)).close()


def corruption(path: Path) -> str:
    """Return why nobody can say whether a run id is used in a registry that is corrupt."""
    stands = standing(str(path), "one")
    assert stands.registry == "corrupt"
    assert isinstance(stands.run_id_used, Unknown)
    return stands.run_id_used.reason


def used(path: Path, run_id: str) -> bool | Unknown:
    return standing(str(path), run_id).run_id_used


def reserved(path: Path | str, run_id: str = "one") -> None:
    with Registry.open(str(path)) as registry:
        registry.reserve(run_id, ENTRY)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


def tree(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.iterdir()}


# --- what it must look like


def test_registry_file_is_private_and_alone(state: Path) -> None:
    umask = os.umask(0)
    try:
        with Registry.open(str(state)) as registry:
            registry.reserve("one", ENTRY)
            assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {
                "registry.db": 0o600,
                "registry.db-wal": 0o600,
                "registry.db-shm": 0o600,
            }
    finally:
        os.umask(umask)
    assert [path.name for path in state.iterdir()] == ["registry.db"]
    assert (state / "registry.db").stat().st_nlink == 1


def test_registry_opens_from_a_descriptor_of_its_directory(state: Path) -> None:
    descriptor = os.open(state, os.O_RDONLY)
    try:
        with Registry.open(descriptor) as registry:
            registry.reserve("one", ENTRY)
        os.fstat(descriptor)  # it stays the caller's
    finally:
        os.close(descriptor)
    assert used(state, "one")


def test_registry_leaks_no_descriptor(state: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for number in range(5):
        reserved(state, f"run-{number}")
        with pytest.raises(HostError):
            opened(state / "missing")
    (state / "registry.db").write_bytes(b"x" * 5000)
    with pytest.raises(HostError):
        opened(state)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "is empty"),
        (b"\0", "has `application_id` 0, not 1886613623"),
        (b"\0" * 4096, "file is not a database"),
        (b"\0" * 12288, "file is not a database"),
        (b"\n", "has `application_id` 0, not 1886613623"),
        (b"SQLite format 3\0", "file is not a database"),
        (b"prespawn: site/v1\n" * 400, "file is not a database"),
    ],
)
def test_registry_corrupt_when_it_is_no_database(state: Path, content: bytes, found: str) -> None:
    (state / "registry.db").write_bytes(content)
    (state / "registry.db").chmod(0o600)
    id, message = failure(lambda: opened(state))
    assert id == "registry-corrupt"
    assert message.startswith(f"`{state}/registry.db`: {found}; {WHOLE}")
    assert corruption(state) == message
    assert tree(state) == {"registry.db": content}


def foreign(state: Path, *statements: str) -> None:
    database = sqlite3.connect(state / "registry.db", isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()
    (state / "registry.db").chmod(0o600)


def test_registry_corrupt_when_it_is_another_programs_database(state: Path) -> None:
    foreign(state, "CREATE TABLE run (run_id TEXT)")
    was = tree(state)
    id, message = failure(lambda: opened(state))
    assert id == "registry-corrupt"
    assert message.startswith(f"`{state}/registry.db`: has `application_id` 0, not 1886613623; {WHOLE}")
    assert tree(state) == was


def test_registry_corrupt_when_it_is_of_another_version(state: Path) -> None:
    reserved(state)
    foreign(state, "PRAGMA user_version = 3")
    was = tree(state)
    id, message = failure(lambda: opened(state))
    assert id == "registry-corrupt"
    assert message.startswith(f"`{state}/registry.db`: has `user_version` 3, not 2; {WHOLE}")
    assert tree(state) == was


def test_registry_corrupt_when_its_table_is_gone(state: Path) -> None:
    foreign(state, "PRAGMA application_id = 1886613623", "PRAGMA user_version = 2")
    id, message = failure(lambda: opened(state))
    assert id == "registry-corrupt"
    assert message.startswith(f"`{state}/registry.db`: no such table: run; {WHOLE}")


def test_registry_corrupt_when_cut_at_any_length(state: Path) -> None:
    with Registry.open(str(state)) as registry:
        for number in range(60):
            registry.reserve(f"run-{number}", ENTRY)
    whole = (state / "registry.db").read_bytes()
    for length in sorted({*range(0, len(whole), 509), *range(0, len(whole), 4096), 1, 15, 16, 99, 100, len(whole) - 1}):
        (state / "registry.db").write_bytes(whole[:length])
        assert failure(lambda: reserved(state, "next"))[0] == "registry-corrupt", length
        assert tree(state) == {"registry.db": whole[:length]}, length


def test_registry_is_mended_when_a_full_disk_cut_a_page_that_its_log_holds(state: Path) -> None:
    reserved(state)

    def killed() -> None:
        Registry.open(str(state)).reserve("two", ENTRY)
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(EOFError):
        in_child(killed)
    assert (state / "registry.db-wal").exists()
    with (state / "registry.db").open("ab") as cut:
        cut.write(b"x" * 100)
    assert used(state, "two")
    assert (state / "registry.db").stat().st_size % 4096 == 0


@pytest.mark.parametrize(
    "entry", ["[1", "[]", "null", "{}", '{"a": 1}', f'{{"declaration":"{DIGEST}"}}', "[" * 100_000]
)
def test_registry_corrupt_when_a_row_is_not_what_was_written(state: Path, entry: str) -> None:
    reserved(state)
    foreign(state, f"UPDATE run SET entry = '{entry}'")
    with Registry.open(str(state)) as registry:
        id, message = failure(lambda: registry.run("one"))
        assert (id, message.split("; ")[0]) == (
            "registry-corrupt",
            f"`{state}/registry.db`: holds values for run `one` that no registry wrote",
        )
        assert failure(registry.unsettled) == (id, message)


@pytest.mark.parametrize("change", ["run_id = 'A b'", "run_id = x'00'"])
def test_registry_corrupt_when_a_row_is_no_runs(state: Path, change: str) -> None:
    reserved(state)
    foreign(state, f"UPDATE run SET {change}")
    with Registry.open(str(state)) as registry:
        id, message = failure(registry.unsettled)
    assert (id, message.split("; ")[0]) == ("registry-corrupt", f"`{state}/registry.db`: holds a row that is no run's")


def test_registry_corrupt_when_its_schema_is_not_utf_8(state: Path) -> None:
    reserved(state)
    content = (state / "registry.db").read_bytes().replace(b"CREATE TABLE run", b"CREATE TABLE \x80un")
    (state / "registry.db").write_bytes(content)
    assert failure(lambda: opened(state))[0] == "registry-corrupt"


def test_registry_corrupt_when_text_is_not_utf_8(state: Path) -> None:
    reserved(state)
    foreign(state, "UPDATE run SET entry = CAST (x'ff22' AS TEXT)")
    with Registry.open(str(state)) as registry:
        assert failure(registry.unsettled)[0] == "registry-corrupt"


@pytest.mark.parametrize("left", ["registry.db-wal", "registry.db-journal", "registry.db-shm"])
def test_registry_corrupt_when_it_is_gone_and_its_log_is_left(state: Path, left: str) -> None:
    (state / left).write_bytes(b"x")
    id, message = failure(lambda: opened(state))
    assert id == "registry-corrupt"
    assert message.startswith(f"`{state}/registry.db`: is gone, and `{left}` of it is left; {WHOLE}")
    assert corruption(state) == message
    assert tree(state) == {left: b"x"}


@pytest.mark.parametrize("kind", ["a symbolic link", "a dangling link", "a directory", "a FIFO", "a socket"])
def test_registry_corrupt_when_it_is_no_regular_file(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    target, path = tmp_path / "elsewhere", state / "registry.db"
    target.mkdir(mode=0o700)
    match kind:
        case "a symbolic link":
            reserved(target)
            path.symlink_to(target / "registry.db")
        case "a dangling link":
            path.symlink_to(target / "new")
        case "a directory":
            path.mkdir()
        case "a FIFO":
            os.mkfifo(path)
        case _:
            with socket.socket(socket.AF_UNIX) as listener:
                monkeypatch.chdir(state)  # a socket's path is short
                listener.bind("registry.db")
    was = sorted(entry.name for entry in target.iterdir())
    signal.alarm(5)  # what blocks fails
    try:
        id, message = failure(lambda: opened(state))
    finally:
        signal.alarm(0)
    found = "a symbolic link" if kind == "a dangling link" else kind
    assert (id, message.split("; ")[0]) == ("registry-corrupt", f"`{state}/registry.db`: is {found}")
    assert sorted(entry.name for entry in target.iterdir()) == was


# --- where it may lie


def test_registry_not_written_when_its_directory_is_missing(state: Path) -> None:
    assert failure(lambda: opened(state / "gone")) == (
        "registry-not-written",
        f"state directory `{state}/gone`: no such file or directory; allowed: a directory that uid {os.geteuid()} can"
        " write; make it, or name another `state_dir` in the site",
    )
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "\udcff"])
def test_registry_fault_shows_no_control_character(state: Path, name: str) -> None:
    assert failure(lambda: opened(state / name))[0] == "registry-not-written"


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_registry_not_written_when_no_directory_can_have_the_name(state: Path, name: str) -> None:
    id, message = failure(lambda: opened(f"{state}/{name}"))
    assert id == "registry-not-written"
    assert ": no file can have this name; allowed: a directory" in message


def test_registry_not_written_when_its_directory_is_a_file(state: Path) -> None:
    (state / "file").write_text("")
    (state / "file").chmod(0o600)
    for path in (state / "file", state / "file" / "below"):
        id, message = failure(lambda path=path: opened(path))  # type: ignore[misc]
        assert (id, message.split("; ")[0]) == ("registry-not-written", f"state directory `{path}`: not a directory")


def test_registry_not_written_below_proc(state: Path) -> None:
    assert failure(lambda: state_directory("/proc/prespawn", create=True))[0] == "registry-not-written"


def reachable(base: Path) -> Path:
    """Return ``base``, with the directories above it open to other users to pass; pytest makes them private."""
    for path in (base, *base.parents):
        if path.owner() == "root" and not path.stat().st_mode & stat.S_IXOTH:
            path.chmod(path.stat().st_mode | stat.S_IXOTH | stat.S_IXGRP)
    return base


@as_root
def test_registry_not_written_when_its_directory_is_read_only_for_the_caller(tmp_path: Path) -> None:
    state = reachable(tmp_path) / "state"
    state.mkdir(mode=0o755)
    id, message = in_child(lambda: opened(state), USER)
    assert id == "registry-not-written"
    assert message.startswith(f"`{state}/registry.db`: permission denied; allowed: a file that uid {USER} can write")
    assert list(state.iterdir()) == []


@as_root
def test_registry_not_written_when_its_own_directory_lost_its_write_bit(tmp_path: Path) -> None:
    state = reachable(tmp_path) / "state"
    state.mkdir(mode=0o700)
    os.chown(state, USER, USER)
    in_child(lambda: reserved(state), USER)
    state.chmod(0o500)
    id, message = in_child(lambda: reserved(state, "two"), USER)
    assert id == "registry-not-written"
    assert message.startswith(f"`{state}/registry.db`: ")
    assert [path.name for path in state.iterdir()] == ["registry.db"]
    looks = in_child(lambda: [dict(standing(str(state), name)) for name in ("one", "two")], USER)
    assert looks == [{"registry": "ready", "run_id_used": used, "approval_used": False} for used in (True, False)]
    assert [path.name for path in state.iterdir()] == ["registry.db"]


@as_root
def test_registry_not_written_when_the_file_is_read_only(tmp_path: Path) -> None:
    state = reachable(tmp_path) / "state"
    state.mkdir(mode=0o700)
    os.chown(state, USER, USER)
    in_child(lambda: reserved(state), USER)
    (state / "registry.db").chmod(0o400)
    assert in_child(lambda: reserved(state, "two"), USER)[0] == "registry-not-written"
    assert in_child(lambda: used(state, "one"), USER) is True


def limited(size: int, act: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return act()

    return run


@pytest.mark.parametrize("size", [0, 512, 4096, 8192, 12288])
def test_registry_not_written_when_no_byte_more_can_be_written_while_it_is_made(state: Path, size: int) -> None:
    assert in_child(limited(size, lambda: opened(state)))[0] == "registry-not-written"
    assert list(state.iterdir()) == []
    reserved(state)


@pytest.mark.parametrize("size", [0, 512, 4096])
def test_registry_not_written_when_no_byte_more_can_be_written_for_a_row(state: Path, size: int) -> None:
    reserved(state)
    assert in_child(limited(size, lambda: reserved(state, "two")))[0] == "registry-not-written"
    assert used(state, "one")
    assert not used(state, "two")
    reserved(state, "two")


def test_registry_is_of_use_again_after_a_change_that_could_not_be_written(state: Path) -> None:
    def run() -> list[object]:
        with Registry.open(str(state)) as registry:
            registry.reserve("one", ENTRY)
            unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, unlimited[1]))
            refused = [failure(lambda: registry.reserve("two", ENTRY))[0]]
            refused += [failure(lambda: registry.started("one", START))[0]]
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
            registry.reserve("two", ENTRY)
            return [*refused, *((run.run_id, run.state) for run in registry.unsettled())]

    assert in_child(run) == [
        "registry-not-written",
        "registry-not-written",
        ("one", "reserved"),
        ("two", "reserved"),
    ]


@as_root
@pytest.mark.skipif(shutil.which("unshare") is None or shutil.which("mount") is None, reason="needs a small disk")
def test_registry_not_written_when_the_disk_is_full(state: Path) -> None:
    def run() -> object:
        os.system(f"mount -t tmpfs -o size=64k,mode=0700 none {state}")  # noqa: S605  # a path of pytest's own
        reserved(state)
        with (state / "rest").open("wb", buffering=0) as rest, pytest.raises(OSError, match="No space left"):
            while True:
                rest.write(b"\0" * 4096)
        refused = failure(lambda: reserved(state, "two"))
        (state / "rest").unlink()
        reserved(state, "two")
        return refused

    def unshared() -> object:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(0x00020000) == 0  # CLONE_NEWNS
        assert libc.mount(b"none", b"/", None, 0x40000 | 0x4000, None) == 0  # MS_PRIVATE | MS_REC
        return run()

    id, message = in_child(unshared)
    assert (id, message.split("; ")[0]) == ("registry-not-written", f"`{state}/registry.db`: database or disk is full")


def test_registry_not_written_when_no_descriptor_is_left(state: Path) -> None:
    reserved(state)

    def run() -> object:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        results: list[object] = []
        for free in range(12):
            taken = []
            try:
                while True:
                    taken.append(os.dup(0))
            except OSError:
                pass
            for descriptor in taken[:free]:
                os.close(descriptor)
            try:
                reserved(state, f"free-{free}")
            except HostError as error:
                results.append(error.id)
            else:
                results.append("written")
            for descriptor in taken[free:]:
                os.close(descriptor)
        return results

    results = in_child(run)
    assert set(results) == {"registry-not-written", "written"}
    assert results == sorted(results)  # with few descriptors none is written, with enough each is


def test_registry_waits_for_a_writer_and_gives_up_in_time(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prespawn.registry_file._PATIENCE", 0.2)
    reserved(state)
    writer = sqlite3.connect(state / "registry.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    id, message = failure(lambda: reserved(state, "two"))
    assert (id, message.split("; ")[0]) == ("registry-not-written", f"`{state}/registry.db`: database is locked")
    writer.execute("ROLLBACK")
    writer.close()
    reserved(state, "two")


# --- who may have it


@pytest.mark.parametrize(
    ("mode", "who"),
    [(0o770, "its group"), (0o707, "others"), (0o777, "others"), (0o1777, "others"), (0o720, "its group")],
)
def test_state_directory_refused_when_others_can_write_it(tmp_path: Path, mode: int, who: str) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(mode)
    id, message = failure(lambda: opened(state))
    assert id == "registry-not-parent-controlled"
    assert f"`{state}` is writable by {who} (mode {mode:04o}); allowed: {OWNER}, no write permission for" in message
    assert failure(lambda: state_directory(str(state), create=True))[0] == "registry-not-parent-controlled"
    descriptor = os.open(state, os.O_RDONLY)
    assert failure(lambda: Registry.open(descriptor))[0] == "registry-not-parent-controlled"
    os.close(descriptor)
    assert list(state.iterdir()) == []


def test_state_directory_refused_when_one_above_can_be_written_by_others(tmp_path: Path) -> None:
    (tmp_path / "shared" / "inner").mkdir(parents=True)
    (tmp_path / "shared").chmod(0o777)
    for path in (tmp_path / "shared" / "inner", tmp_path / "shared" / "new"):
        id, message = failure(lambda path=path: state_directory(str(path), create=True))  # type: ignore[misc]
        assert id == "registry-not-parent-controlled"
        assert message == (
            f"state directory `{path}`: `{tmp_path}/shared` is writable by others (mode 0777); allowed: {OWNER},"
            " no write permission for group or others;"
            f" run `chmod go-w {tmp_path}/shared`, or use a directory of your own"
        )
    assert [entry.name for entry in (tmp_path / "shared").iterdir()] == ["inner"]


def test_state_directory_is_made_private(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        os.close(state_directory(f"{tmp_path}/a//b/./c", create=True))
    finally:
        os.umask(umask)
    assert [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/b", "a/b/c")] == [0o700] * 3
    reserved(tmp_path / "a/b/c")


def test_state_directory_is_not_made_unless_asked(tmp_path: Path) -> None:
    assert failure(lambda: state_directory(f"{tmp_path}/a", create=False))[0] == "registry-not-written"
    assert list(tmp_path.iterdir()) == []


def test_state_directory_may_be_reached_through_a_link_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "absolute").symlink_to(tmp_path / "disk")
    (tmp_path / "relative").symlink_to("absolute/../disk")
    os.close(state_directory(f"{tmp_path}/relative/state", create=True))
    reserved(tmp_path / "absolute" / "state")
    assert used(tmp_path / "disk/state", "one")


def test_state_directory_behind_a_circle_of_links_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    id, message = failure(lambda: state_directory(f"{tmp_path}/a", create=True))
    assert id == "registry-not-written"
    assert message.startswith(f"state directory `{tmp_path}/a`: too many levels of symbolic links")


@as_root
def test_state_directory_of_an_ordinary_user_is_made_below_a_sticky_directory(tmp_path: Path) -> None:
    shared = reachable(tmp_path) / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert in_child(lambda: os.close(state_directory(f"{shared}/mine/state", create=True)), USER) is None
    assert in_child(lambda: reserved(shared / "mine" / "state"), USER) is None
    status = (shared / "mine" / "state" / "registry.db").stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (USER, 0o600)


@as_root
@pytest.mark.parametrize("user", [None, USER + 1])
def test_state_directory_of_another_user_is_refused(tmp_path: Path, user: int | None) -> None:
    state = reachable(tmp_path) / "theirs"
    state.mkdir(mode=0o755)
    os.chown(state, USER, USER)
    id, message = in_child(lambda: state_directory(str(state), create=True), user)
    assert id == "registry-not-parent-controlled"
    assert f"`{state}` belongs to uid {USER}; allowed: owner uid " in message
    assert list(state.iterdir()) == []


@as_root
def test_state_directory_behind_another_users_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    os.chown(tmp_path / "link", USER, USER, follow_symlinks=False)
    id, message = failure(lambda: opened(tmp_path / "link"))
    assert id == "registry-not-parent-controlled"
    assert f"`{tmp_path}/link` belongs to uid {USER}; allowed: owner uid 0;" in message


@as_root
def test_registry_of_another_user_is_refused(state: Path) -> None:
    reserved(state)
    os.chown(state / "registry.db", USER, USER)
    id, message = failure(lambda: opened(state))
    assert id == "registry-not-parent-controlled"
    assert message.startswith(f"`{state}/registry.db` belongs to uid {USER}; allowed: owner uid 0;")


def test_standing_is_unknown_where_the_state_directory_is_not_trusted(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    stands = standing(str(tmp_path), "one")
    for unknown in (stands.registry, stands.run_id_used):
        assert isinstance(unknown, Unknown)
        assert unknown.reason.startswith(
            f"state directory `{tmp_path}`: `{tmp_path}` is writable by its group (mode 0770)"
        )


def test_registry_that_others_can_write_is_refused(state: Path) -> None:
    reserved(state)
    (state / "registry.db").chmod(0o660)
    id, message = failure(lambda: opened(state))
    assert id == "registry-not-parent-controlled"
    assert message.startswith(f"`{state}/registry.db` is writable by its group (mode 0660); allowed: {OWNER}, no write")
