"""Where the site comes from: first found wins, and nobody but the caller and root can have written it."""

from __future__ import annotations

import os
import pickle
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prespawn
from prespawn import site_file
from prespawn.policy.errors import ReadError
from prespawn.site_file import find, read_file, refuse_inside
from prespawn.trusted_path import Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

USER = 61234
OWNER = "owner uid 0" if os.geteuid() == 0 else f"owner uid {os.geteuid()} or 0"
NO_WRITE = "no write permission for group or others"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users, which root alone can")


def is_trusted(path: str) -> bool:
    try:
        with Walk(path, follow_last=True) as way:
            return way.fault is None and not way.missing and os.access(path, os.W_OK | os.X_OK)
    except OSError:
        return False


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that passes the trust test, so not below ``/tmp``; as root, one that other users can reach."""
    home = pwd.getpwuid(os.geteuid()).pw_dir
    bases = [base for base in ("/var/lib", "/opt", home) if is_trusted(base)]
    if not bases:
        pytest.skip(f"neither /var/lib nor /opt nor {home} can be written and is closed to others")
    path = Path(tempfile.mkdtemp(prefix="prespawn-test-", dir=bases[0])).resolve()
    path.chmod(0o755)
    umask = os.umask(0o022)
    yield path
    os.umask(umask)
    shutil.rmtree(path)


@pytest.fixture
def system(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's directory, home and no ``XDG_CONFIG_HOME``, all below ``place``."""
    monkeypatch.setattr(site_file, "SYSTEM_DIRECTORY", str(place / "etc"))
    monkeypatch.setattr(site_file, "home", lambda: str(place / "home"))
    return place / "etc"


def write(path: Path, text: str = "prespawn: site/v1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)
    return path


def refused(act: Callable[[], object]) -> tuple[str, str, str]:
    """Return id, source and message of the ``ReadError`` that ``act`` raises."""
    signal.alarm(5)  # what blocks fails
    try:
        with pytest.raises(ReadError) as raised:
            act()
    finally:
        signal.alarm(0)
    assert raised.value.message.isprintable()
    return raised.value.id, raised.value.source, raised.value.message


def as_user(act: Callable[[], object], user: int = USER) -> Any:
    """Return what ``act`` returns, or id and message of what it raises, in a forked process of an ordinary user."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            result: object = act()
        except ReadError as error:
            result = (error.id, error.message)
        except BaseException as error:  # noqa: BLE001  # whatever it is, the test shall show it
            result = repr(error)
        os.write(writer, pickle.dumps(result))
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        return pickle.loads(answer.read())


def data(found: site_file.SiteFile | None) -> bytes:
    assert found is not None
    return found.data


# --- the order of places


def test_site_is_absent_when_no_place_has_one(system: Path) -> None:
    assert find(None, environ={}) is None


def test_site_first_found_wins_and_nothing_is_merged(system: Path, place: Path) -> None:
    write(system / "prespawn/site.yaml", "system")
    assert data(find(None, environ={})) == b"system"
    write(place / "home/.config/prespawn/site.yaml", "user")
    assert data(find(None, environ={})) == b"user"
    environ = {"XDG_CONFIG_HOME": str(place / "xdg")}
    assert (
        data(find(None, environ=environ)) == b"system"
    )  # the user's directory is the one that is named, and it is empty
    write(place / "xdg/prespawn/site.yaml", "xdg")
    assert data(find(None, environ={"XDG_CONFIG_HOME": str(place / "xdg")})) == b"xdg"
    named = write(place / "named.yaml", "named")
    assert data(find(str(named), environ=environ)) == b"named"


def test_site_is_never_searched_in_the_current_directory(
    system: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for planted in ("prespawn.yaml", "site.yaml", "prespawn/site.yaml", ".config/prespawn/site.yaml"):
        write(place / "here" / planted)
    monkeypatch.chdir(place / "here")
    for environ in ({}, {"HOME": str(place / "here")}, {"XDG_CONFIG_HOME": "."}, {"XDG_CONFIG_HOME": ""}):
        assert find(None, environ=environ) is None


def test_site_named_must_exist(place: Path) -> None:
    assert refused(lambda: find(f"{place}/none.yaml", environ={})) == (
        "policy-unreadable",
        f"{place}/none.yaml",
        "no such file or directory; allowed: a site file; `prespawn init DIR` writes one",
    )
    for odd in ("", "a\0b", "\ud800"):
        assert refused(lambda odd=odd: find(odd, environ={}))[0] == "policy-unreadable"  # type: ignore[misc]


def test_site_named_relative_is_seen_from_the_current_directory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place / "a/site.yaml", "relative")
    monkeypatch.chdir(place / "a")
    found = find("../a/./site.yaml", environ={})
    assert found is not None
    assert (found.path, found.data) == (f"{place}/a/site.yaml", b"relative")


def test_home_is_the_password_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/elsewhere")
    assert site_file.home() == pwd.getpwuid(os.geteuid()).pw_dir
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    assert site_file.home() is None
    assert site_file.config_home({}) is None
    assert site_file.state_home({}) is None


def test_user_without_a_home_has_the_systems_site(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(system / "prespawn/site.yaml", "system")
    monkeypatch.setattr(site_file, "home", lambda: None)
    assert data(find(None, environ={})) == b"system"


def test_own_directories_are_the_named_ones_only_if_absolute_and_trusted(system: Path, place: Path) -> None:
    home = f"{place}/home"
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    write(place / "file")
    for value in (
        "",
        "relative",
        "./relative",
        "~/x",
        f"{place}/open",
        f"{place}/open/below",
        f"{place}/file",
        f"{place}/file/x",
    ):
        assert site_file.config_home({"XDG_CONFIG_HOME": value}) == f"{home}/.config"
        assert site_file.state_home({"XDG_STATE_HOME": value}) == f"{home}/.local/state"
    assert site_file.config_home({"XDG_CONFIG_HOME": f"{place}/new/dir"}) == f"{place}/new/dir"
    assert site_file.state_home({"XDG_STATE_HOME": f"{place}/new/dir"}) == f"{place}/new/dir"
    assert site_file.config_home({"XDG_CONFIG_HOME": "/tmp/new"}) == f"{home}/.config"
    assert site_file.state_home({"XDG_STATE_HOME": "/tmp/new"}) == "/tmp/new"


def test_site_below_an_untrusted_xdg_directory_is_refused_aloud(system: Path, place: Path) -> None:
    write(place / "home/.config/prespawn/site.yaml", "user")
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    environ = {"XDG_CONFIG_HOME": f"{place}/open"}
    assert data(find(None, environ=environ)) == b"user"
    write(place / "open/prespawn/site.yaml", "planted")
    id, source, message = refused(lambda: find(None, environ=environ))
    assert (id, source) == ("policy-untrusted-source", f"{place}/open/prespawn/site.yaml")
    assert message.startswith(f"`{place}/open` is writable by others (mode 0777); ")


def test_site_found_and_refused_does_not_fall_through(system: Path, place: Path) -> None:
    write(system / "prespawn/site.yaml", "system")
    write(place / "home/.config/prespawn/site.yaml", "user").chmod(0o666)
    assert refused(lambda: find(None, environ={}))[0] == "policy-untrusted-source"


# --- the trust test


@pytest.mark.parametrize("part", ["", "a", "a/b", "a/b/site.yaml"])
@pytest.mark.parametrize(("mode", "who"), [(0o020, "its group"), (0o002, "others"), (0o022, "others")])
def test_site_refused_when_others_can_write_anything_on_the_way(place: Path, part: str, mode: int, who: str) -> None:
    site = write(place / "a/b/site.yaml")
    open_to_others = place / part if part else place
    open_to_others.chmod(stat.S_IMODE(open_to_others.stat().st_mode) | mode)
    shown = str(open_to_others)
    assert refused(lambda: find(str(site), environ={})) == (
        "policy-untrusted-source",
        str(site),
        f"`{shown}` is writable by {who} (mode {stat.S_IMODE(open_to_others.stat().st_mode):04o}); allowed: {OWNER},"
        f" {NO_WRITE}; run `chmod go-w {shown}`, or use a directory of your own",
    )


def test_site_refused_below_a_sticky_directory() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as below:
        site = write(Path(below) / "site.yaml")
        refusal = refused(lambda: find(str(site), environ={}))
    assert refusal[:2] == ("policy-untrusted-source", str(site))
    assert (
        refusal[2]
        == f"`/tmp` is writable by others (mode 1777); allowed: {OWNER}, {NO_WRITE}; use a directory of your own"
    )


@as_root
@pytest.mark.parametrize("part", ["a", "a/b", "a/b/site.yaml"])
def test_site_refused_when_another_user_owns_anything_on_the_way(place: Path, part: str) -> None:
    site = write(place / "a/b/site.yaml")
    os.chown(place / part, USER + 1, 0)
    assert refused(lambda: find(str(site), environ={})) == (
        "policy-untrusted-source",
        str(site),
        f"`{place}/{part}` belongs to uid {USER + 1}; allowed: owner uid 0; use a path that root alone owns",
    )
    assert as_user(lambda: find(str(site), environ={})) == (
        "policy-untrusted-source",
        f"`{place}/{part}` belongs to uid {USER + 1}; allowed: owner uid {USER} or 0;"
        " use a path below directories of your own",
    )


@as_root
def test_site_of_root_and_of_the_user_both_pass_for_the_user(place: Path) -> None:
    site = write(place / "a/site.yaml", "mine")
    assert as_user(lambda: data(find(str(site), environ={}))) == b"mine"
    os.chown(place / "a", USER, USER)
    os.chown(site, USER, USER)
    site.chmod(0o400)
    assert as_user(lambda: data(find(str(site), environ={}))) == b"mine"
    assert refused(lambda: find(str(site), environ={}))[0] == "policy-untrusted-source"


@as_root
def test_site_that_the_user_may_not_read_is_unreadable(place: Path) -> None:
    site = write(place / "a/site.yaml")
    site.chmod(0o600)
    denied = ("policy-unreadable", "permission denied; allowed: a regular file that can be read")
    assert as_user(lambda: find(str(site), environ={})) == denied
    site.chmod(0o644)
    (place / "a").chmod(0o700)
    assert as_user(lambda: find(str(site), environ={})) == denied
    assert as_user(lambda: find(None, environ={"XDG_CONFIG_HOME": str(place / "a/b")})) == denied


def test_site_that_is_a_link_is_refused(place: Path) -> None:
    site = write(place / "real.yaml")
    (place / "site.yaml").symlink_to(site)
    (place / "dangling.yaml").symlink_to(place / "none")
    for name in ("site.yaml", "dangling.yaml"):
        assert refused(lambda name=name: find(f"{place}/{name}", environ={})) == (  # type: ignore[misc]
            "policy-untrusted-source",
            f"{place}/{name}",
            "is a symbolic link; allowed: the file itself; put the file here, or name the link's target with `--site`",
        )


def test_site_behind_linked_directories_passes_and_is_named_without_links(place: Path) -> None:
    write(place / "disk/home/me/site.yaml", "linked")
    (place / "home").symlink_to("disk/home")
    (place / "absolute").symlink_to(place / "home")
    for way in ("home/me/site.yaml", "absolute/me/site.yaml", "absolute/../home/me//site.yaml"):
        found = find(f"{place}/{way}", environ={})
        assert found is not None
        assert (found.path, found.data) == (f"{place}/disk/home/me/site.yaml", b"linked")


def test_site_behind_a_link_into_an_open_directory_is_refused(place: Path) -> None:
    write(place / "open/inner/site.yaml")
    (place / "open").chmod(0o777)
    (place / "link").symlink_to("open/inner")
    id, _, message = refused(lambda: find(f"{place}/link/site.yaml", environ={}))
    assert id == "policy-untrusted-source"
    assert message.startswith(f"`{place}/open` is writable by others (mode 0777); ")


@as_root
def test_site_behind_another_users_link_is_refused(place: Path) -> None:
    write(place / "real/site.yaml")
    (place / "link").symlink_to("real")
    os.chown(place / "link", USER, USER, follow_symlinks=False)
    id, _, message = refused(lambda: find(f"{place}/link/site.yaml", environ={}))
    assert (id, message.split(";")[0]) == ("policy-untrusted-source", f"`{place}/link` belongs to uid {USER}")


def test_site_behind_a_circle_of_links_is_unreadable(place: Path) -> None:
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    id, _, message = refused(lambda: find(f"{place}/a/site.yaml", environ={}))
    assert (id, message.split(";")[0]) == ("policy-unreadable", "too many levels of symbolic links")


def test_walk_leaves_no_descriptor_open(place: Path) -> None:
    write(place / "disk/site.yaml")
    (place / "link").symlink_to("disk")
    (place / "loop").symlink_to("loop")
    before = os.listdir("/proc/self/fd")
    find(f"{place}/link/site.yaml", environ={}, inside_of=[str(place / "none")])
    for path in ("loop/x", "link/site.yaml/x", "link/none", "link", "a\0b"):
        with pytest.raises(ReadError):
            find(f"{place}/{path}", environ={})
        with pytest.raises(ReadError):
            read_file(f"{place}/{path}", family="input")
    assert os.listdir("/proc/self/fd") == before


# --- not where a worker writes


def test_site_refused_inside_a_workspace(place: Path) -> None:
    site = write(place / "ws/sub/site.yaml")
    (place / "ws-link").symlink_to("ws")
    for root in ("ws", "ws/sub", "ws/", "ws/.", "ws-link", "none/../ws"):
        (place / "none").mkdir(exist_ok=True)
        assert refused(lambda root=root: find(str(site), environ={}, inside_of=[f"{place}/{root}"])) == (  # type: ignore[misc]
            "policy-untrusted-source",
            str(site),
            f"lies inside the workspace root `{place}/{root}`; allowed: a file outside every workspace;"
            " move it, or name another with `--site`",
        )


def test_site_refused_when_the_way_to_it_leads_through_a_workspace(place: Path) -> None:
    write(place / "config/site.yaml")
    (place / "ws").mkdir()
    (place / "ws/link").symlink_to("../config")
    id, _, message = refused(lambda: find(f"{place}/ws/link/site.yaml", environ={}, inside_of=[f"{place}/ws"]))
    assert (id, message.split(";")[0]) == ("policy-untrusted-source", f"lies inside the workspace root `{place}/ws`")


def test_site_named_from_inside_a_workspace_is_beside_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = write(place / "config/site.yaml")
    (place / "ws/sub").mkdir(parents=True)
    for here, name in (("ws", "../config/site.yaml"), ("ws/sub", ".././../config/site.yaml")):
        monkeypatch.chdir(place / here)
        found = find(name, environ={}, inside_of=[f"{place}/ws"])
        assert found is not None and found.path == str(site)


def test_site_named_by_way_of_a_directory_in_a_workspace_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place / "config/site.yaml")
    (place / "ws/sub").mkdir(parents=True)
    monkeypatch.chdir(place / "ws")
    id, _, message = refused(lambda: find("sub/../../config/site.yaml", environ={}, inside_of=[f"{place}/ws"]))
    assert (id, message.split(";")[0]) == ("policy-untrusted-source", f"lies inside the workspace root `{place}/ws`")


def test_site_beside_workspaces_passes(place: Path) -> None:
    site = write(place / "ws-config/site.yaml", "beside")
    (place / "ws").mkdir()
    roots = [f"{place}/ws", f"{place}/missing", f"{site}/below"]
    found = find(str(site), environ={}, inside_of=roots)
    assert data(found) == b"beside"
    assert found is not None
    refuse_inside(found.path, found.above, roots)
    assert refused(lambda: refuse_inside(found.path, found.above, ["/"]))[0] == "policy-untrusted-source"


def test_site_refused_when_a_workspace_cannot_be_looked_at(place: Path) -> None:
    site = write(place / "site.yaml")
    (place / "loop").symlink_to("loop")
    for root, why in ((f"{place}/loop", "too many levels of symbolic links"), ("a\0b", "no file can have this name")):
        id, _, message = refused(lambda root=root: find(str(site), environ={}, inside_of=[root]))  # type: ignore[misc]
        assert (id, message.endswith(f"cannot be looked at: {why}")) == ("policy-untrusted-source", True)


# --- reading


def make(path: Path, kind: str) -> None:
    match kind:
        case "a directory":
            path.mkdir()
        case "a FIFO":
            os.mkfifo(path, 0o600)
        case "a socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
            path.chmod(0o600)


@pytest.mark.parametrize("kind", ["a directory", "a FIFO", "a socket"])
def test_file_that_is_not_regular_is_unreadable_at_once(place: Path, kind: str) -> None:
    make(place / "x", kind)
    (place / "link").symlink_to("x")
    found = f"is {kind}; allowed: a regular file"
    assert refused(lambda: find(f"{place}/x", environ={})) == ("policy-unreadable", f"{place}/x", found)
    for name in ("x", "link"):
        path = f"{place}/{name}"
        assert refused(lambda path=path: read_file(path, family="input")) == ("input-unreadable", path, found)  # type: ignore[misc]
        assert refused(lambda path=path: read_file(path, family="policy")) == ("policy-unreadable", path, found)  # type: ignore[misc]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/full"])
def test_device_is_unreadable(device: str) -> None:
    found = "is a device; allowed: a regular file"
    assert refused(lambda: find(device, environ={})) == ("policy-unreadable", device, found)
    assert refused(lambda: read_file(device, family="input")) == ("input-unreadable", device, found)


def test_standard_input_by_name_is_unreadable_when_it_is_a_pipe() -> None:
    reader, writer = os.pipe()
    id, _, message = refused(lambda: read_file(f"/dev/fd/{reader}", family="input"))
    assert (id, message) == ("input-unreadable", "is a FIFO; allowed: a regular file")
    os.close(reader)
    os.close(writer)


def test_file_is_read_up_to_its_limit(place: Path) -> None:
    path = write(place / "x", "12345678")
    assert read_file(str(path), family="input", limit=8) == b"12345678"
    assert data(find(str(path), environ={}, limit=8)) == b"12345678"
    found = "8 bytes; allowed: up to 7"
    assert refused(lambda: read_file(str(path), family="input", limit=7)) == ("input-unreadable", str(path), found)
    assert refused(lambda: find(str(path), environ={}, limit=7)) == ("policy-unreadable", str(path), found)
    assert read_file(str(write(place / "empty", "")), family="input") == b""


def test_size_is_looked_at_before_a_byte_is_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    monkeypatch.setattr(os, "read", lambda *_: pytest.fail("a byte was read"))
    found = f"{1 << 40} bytes; allowed: up to {1 << 20}"
    assert refused(lambda: read_file(str(path), family="input")) == ("input-unreadable", str(path), found)
    assert refused(lambda: find(str(path), environ={})) == ("policy-unreadable", str(path), found)


def test_file_that_grows_while_it_is_read_is_unreadable(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(place / "x", "1234")
    read = os.read

    def growing(descriptor: int, most: int) -> bytes:
        with path.open("a") as more:
            more.write("56789")
        return read(descriptor, most)

    monkeypatch.setattr(os, "read", growing)
    id, _, message = refused(lambda: read_file(str(path), family="input", limit=8))
    assert (id, message) == ("input-unreadable", "more than 8 bytes; allowed: up to 8")


def test_kernel_file_of_no_stated_size_is_bounded_all_the_same() -> None:
    assert read_file("/proc/self/stat", family="input") != b""
    id, _, message = refused(lambda: read_file("/proc/self/stat", family="input", limit=10))
    assert (id, message) == ("input-unreadable", "more than 10 bytes; allowed: up to 10")


def test_untrusted_input_may_be_a_link_and_lie_anywhere(tmp_path: Path) -> None:
    write(tmp_path / "real", "declared").chmod(0o666)
    (tmp_path / "link").symlink_to("real")
    assert read_file(f"{tmp_path}/link", family="input") == b"declared"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "no such file or directory"),
        ("none", "no such file or directory"),
        ("x" * 300, "file name too long"),
        ("a\0b", "no file can have this name"),
        ("\ud800", "no file can have this name"),
        ("\udcff\x1b[2J", "no such file or directory"),
    ],
)
def test_input_that_cannot_be_opened_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refused(lambda: read_file(path, family="input")) == (
        "input-unreadable",
        path,
        f"{why}; allowed: a regular file that can be read",
    )


def test_site_file_shows_no_content(place: Path) -> None:
    assert repr(find(str(write(place / "x", "secret")), environ={})) == f"SiteFile(path='{place}/x')"


def test_site_file_imports_nothing_heavy() -> None:
    heavy = {"datetime", "enum", "json", "pathlib", "pwd", "re", "subprocess", "threading", "typing"}
    root = os.path.dirname(prespawn.__path__[0])  # and no site packages, whose hooks import half of these themselves
    program = (
        f"import sys; sys.path.append({root!r}); before = set(sys.modules);"
        f" import prespawn.site_file; print(sorted((set(sys.modules) - before) & {heavy!r}))"
    )
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
