"""A parent that is root, and a workspace of root's below a home that nobody else may enter.

The worker works on root's files and is never root. What it must not be able to leave behind is tried inside and, as
the control, by root itself outside: there every act leaves what it is about.
"""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import plans, runtimes
from support.sandboxes import MAPPED, OWNER, Sandbox, bwrap, sandbox
from support.scenarios import Scenario, played, shell
from support.seccomp import RAW

from prespawn import idmap, kernel
from prespawn.gate import Gate
from prespawn.policy.errors import HostError
from prespawn.pumps import Streams
from prespawn.supervise import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from prespawn.hold import Ready

__all__ = ["bwrap", "sandbox"]  # the fixtures

pytestmark = [
    pytest.mark.skipif(not runtimes.ROOT, reason="needs root as the parent"),
    pytest.mark.parametrize("sandbox", [OWNER], indirect=True),
]
TRUE = Scenario("true", ("true",), {})
NUMBERS: dict[str, int] = RAW[os.uname().machine]["numbers"]
ACTS = """
import ctypes, os, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
numbers = {numbers}

def call(name, *arguments):
    if libc.syscall(numbers[name], *arguments) < 0:
        raise OSError(ctypes.get_errno(), name)

def fresh(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    return path.encode()

HERE, NEW = -100, os.O_CREAT | os.O_WRONLY
acts = {{
    "chmod": lambda path: os.chmod(fresh(path), 0o4755),
    "chmod for a group": lambda path: os.chmod(fresh(path), 0o2755),
    "fchmod": lambda path: os.fchmod(os.open(fresh(path), os.O_WRONLY), 0o4755),
    "fchmodat": lambda path: call("fchmodat", HERE, fresh(path), 0o4755),
    "fchmodat2": lambda path: call("fchmodat2", HERE, fresh(path), 0o4755, 0),
    "openat": lambda path: call("openat", HERE, path.encode(), NEW, 0o4755),
    "openat2": lambda path: call("openat2", HERE, path.encode(), struct.pack("=QQQ", NEW, 0o4755, 0), 24),
    "mknodat of a file": lambda path: call("mknodat", HERE, path.encode(), 0o104755, 0),
    "mknodat of a whiteout": lambda path: call("mknodat", HERE, path.encode(), 0o020666, 0),
    "mknodat of a device": lambda path: call("mknodat", HERE, path.encode(), 0o020666, os.makedev(1, 3)),
    "renameat2 with a whiteout": lambda path: call(
        "renameat2", HERE, fresh(path), HERE, path.encode() + b" moved", 4
    ),
}}
if "creat" in numbers:
    acts["creat"] = lambda path: call("creat", path.encode(), 0o4755)
    acts["open"] = lambda path: call("open", path.encode(), NEW, 0o4755)
os.umask(0)
for name, act in acts.items():
    try:
        act(name)
    except OSError as error:
        print(name, error.errno)
os.chmod(fresh("chmod without a bit"), 0o755)
os.mkdir("directory", 0o755)
os.mkfifo("fifo")
"""


def dangerous(top: str) -> set[str]:
    """Return what below a directory is a setuid or setgid file or a device, by name."""
    found = set()
    for directory, _, files in os.walk(top):
        for name in files:
            mode = os.lstat(f"{directory}/{name}").st_mode
            if (stat.S_ISREG(mode) and mode & 0o6000) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                found.add(name)
    return found


def test_worker_leaves_no_setuid_file_and_no_device_where_root_would(sandbox: Sandbox) -> None:
    names = ("chmod", "fchmodat", "fchmodat2", "openat", "openat2", "mknodat", "renameat2", "creat", "open")
    text = ACTS.format(numbers={name: NUMBERS[name] for name in names if name in NUMBERS})
    outside = f"{sandbox.home}/outside"
    os.mkdir(outside)
    for place in (outside, sandbox.workspace):
        Path(place, "acts.py").write_text(text)
    subprocess.run([sys.executable, "-P", "acts.py"], cwd=outside, check=True)
    left = dangerous(outside)
    assert len(left) >= 11  # the control: every act works for root
    refused = sandbox.inside("python3 acts.py").splitlines()
    assert {line.rpartition(" ")[0] for line in refused} == left
    assert dangerous(sandbox.workspace) == set()
    kinds = {
        name: os.lstat(f"{sandbox.workspace}/{name}").st_mode for name in ("chmod without a bit", "directory", "fifo")
    }
    assert [oct(mode) for mode in kinds.values()] == ["0o100755", "0o40755", "0o10666"]


def test_worker_reads_and_writes_what_root_alone_may(sandbox: Sandbox) -> None:
    root = Path(sandbox.workspace)
    (root / "private").mkdir(0o700)
    (root / "private" / "file").write_text("root's\n")
    (root / "private" / "file").chmod(0o600)
    text = sandbox.inside("cat private/file; echo worker >> private/file; mkdir -m 700 new; echo x > new/file; ls -ln")
    assert text.startswith("root's\n")
    assert {tuple(line.split()[2:4]) for line in text.splitlines()[2:]} == {("1000", "1000")}
    assert (root / "private" / "file").read_text() == "root's\nworker\n"
    for name in ("private/file", "new", "new/file"):
        status = (root / name).stat()
        assert (status.st_uid, status.st_gid) == (0, 0), name


def test_files_of_others_are_nobodys_and_stay_theirs(sandbox: Sandbox) -> None:
    for name, owner, mode in (("closed", 1234, 0o600), ("open", 1234, 0o644), ("worker's", MAPPED, 0o600)):
        Path(sandbox.workspace, name).write_text(name)
        os.chmod(f"{sandbox.workspace}/{name}", mode)
        os.chown(f"{sandbox.workspace}/{name}", owner, owner)
    script = (
        'for f in *; do stat -c \'%u %g\' "$f"; cat "$f" 2>/dev/null && echo;'
        ' echo x 2>/dev/null >"$f" || echo kept; done'
    )
    nobody = "65534 65534\n"
    assert sandbox.inside(script) == f"{nobody}kept\n{nobody}open\nkept\n{nobody}kept\n"


def test_nothing_of_a_run_is_root_on_the_host(sandbox: Sandbox) -> None:
    def play() -> list[tuple[list[str], list[str]]]:
        seen = []

        def look(held: Ready) -> None:
            for pid in (held.runtime, held.init, held.payload):
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                ids = [word for line in lines if line.startswith(("Uid", "Gid", "Groups")) for word in line.split()[1:]]
                seen.append((ids, Path(f"/proc/{pid}/uid_map").read_text().split()))

        run(plans.plan(**sandbox.fields(TRUE)), on_held=look)
        return seen

    runtime, init, payload = sandbox.call(play)
    assert {*runtime[0], *init[0], *payload[0]} == {str(MAPPED)}
    assert payload[1] == ["1000", str(MAPPED), "1"]


def test_mounts_of_a_run_are_its_own(sandbox: Sandbox) -> None:
    def play() -> tuple[bool, list[str]]:
        before = Path("/proc/self/mountinfo").read_text()
        inside: list[str] = []

        def look(held: Ready) -> None:
            table = Path(f"/proc/{held.payload}/mountinfo").read_text().splitlines()
            inside.extend(line.split()[5] for line in table if line.split()[4].startswith("/workspace"))
            assert Path("/proc/self/mountinfo").read_text() == before

        run(plans.plan(**sandbox.fields(TRUE)), on_held=look)
        return Path("/proc/self/mountinfo").read_text() == before, inside

    os.mkdir(f"{sandbox.workspace}/.git")
    same, options = sandbox.call(play)
    assert same
    assert [set(of.split(",")) >= {"rw", "nosuid", "nodev", "idmapped"} for of in options] == [True]


# -- what is refused before anything starts


def blocked(sandbox: Sandbox) -> list[tuple[str, str, object]]:
    """Return the blockers of a typed line in the built-in site, in a process of its own."""

    def check() -> list[tuple[str, str, object]]:
        os.chdir(sandbox.workspace)
        os.environ["XDG_STATE_HOME"] = f"{sandbox.home}/state"
        spawned: list[object] = []
        sys.addaudithook(lambda event, what: spawned.append(what) if event in ("prespawn.spawn", "os.fork") else None)
        declaration = {
            "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".",
            "declared_files": [], "env_keys": [], "execution": {"argv": ["true"]},
            "file_contract": {"mode": "read-only"},
        }  # fmt: skip
        verdict = Gate.load().check(declaration)
        assert spawned == []
        return [(blocker.id, blocker.because, blocker.found) for blocker in verdict.blockers]

    found: list[tuple[str, str, object]] = sandbox.call(check)
    return found


def test_workspace_of_roots_is_no_blocker(sandbox: Sandbox) -> None:
    assert blocked(sandbox) == []


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6700])
def test_setuid_file_that_was_there_before_is_named(mode: int, sandbox: Sandbox) -> None:
    os.makedirs(f"{sandbox.workspace}/build/bin")
    Path(sandbox.workspace, "build", "bin", "tool").touch()
    os.chmod(f"{sandbox.workspace}/build/bin/tool", mode)
    assert blocked(sandbox) == [("workspace-holds-setuid", "fail", ["build/bin/tool"])]


def test_file_with_capabilities_that_was_there_before_is_named(sandbox: Sandbox) -> None:
    path = Path(sandbox.workspace, "ping")
    path.touch()
    net_raw = (0x02000001).to_bytes(4, "little") + (1 << 13).to_bytes(4, "little") + bytes(12)
    os.setxattr(path, "security.capability", net_raw)
    assert blocked(sandbox) == [("workspace-holds-setuid", "fail", ["ping"])]


@pytest.mark.parametrize(("kind", "number"), [(stat.S_IFCHR, (0, 0)), (stat.S_IFCHR, (1, 3)), (stat.S_IFBLK, (254, 0))])
def test_device_that_was_there_before_is_named(kind: int, number: tuple[int, int], sandbox: Sandbox) -> None:
    os.mknod(f"{sandbox.workspace}/node", kind | 0o600, os.makedev(*number))
    assert blocked(sandbox) == [("workspace-holds-device", "fail", ["node"])]


def on_overlay(sandbox: Sandbox, act: Callable[[Sandbox], Any]) -> Any:
    """Act in a process whose own mount namespace has an overlayfs in the workspace's place."""

    def play() -> Any:
        kernel.private_mounts()
        mount = ctypes.CDLL(None, use_errno=True).mount
        kernel.mount_tmpfs("/mnt", "size=1m")
        for name in ("lower", "upper", "work"):
            os.mkdir(f"/mnt/{name}")
        options = b"lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work"
        assert mount(b"overlay", os.fsencode(sandbox.workspace), b"overlay", 0, options) == 0, ctypes.get_errno()
        return act(sandbox)

    return sandbox.call(play)


def test_workspace_on_overlayfs_is_blocked(sandbox: Sandbox) -> None:
    assert on_overlay(sandbox, blocked) == [("workspace-owner-not-mappable", "fail", "root's files on overlay")]


def refused(sandbox: Sandbox, scenario: Scenario = TRUE) -> tuple[str, str, int]:
    seen = played(scenario, sandbox.fields(scenario))
    return seen.error, seen.message, seen.spawns


def test_file_system_that_refuses_all_the_same_starts_nothing(sandbox: Sandbox) -> None:
    error, message, spawns = on_overlay(sandbox, refused)
    assert (error, spawns) == ("idmap-refused", 0)
    assert message.startswith(f"`{sandbox.workspace}` cannot be mounted with root's files as the worker's: invalid arg")


@pytest.mark.parametrize(
    ("program", "error", "words"),
    [
        (
            "missing",
            "identity-switch-missing",
            "which cannot be started: no such file or directory; install util-linux",
        ),
        (
            "#!/bin/sh\necho unshare: unshare failed: >&2\n",
            "idmap-refused",
            "could not be made: unshare: unshare failed:",
        ),
        ("#!/bin/sh\nexit 0\n", "idmap-refused", "could not be made: no answer"),
    ],
)
def test_mapping_that_cannot_be_made_starts_nothing(
    program: str, error: str, words: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(sandbox.home, "unshare")
    if program != "missing":
        path.write_text(program)
        path.chmod(0o755)
    monkeypatch.setattr(idmap, "UNSHARE", str(path))
    found, message, _ = sandbox.call(refused, sandbox)
    assert found == error
    assert words in message


def test_mapping_is_refused_to_a_plan_without_a_filter(sandbox: Sandbox) -> None:
    profile = plans.PROFILE.replace(process=plans.PROFILE.process.replace(seccomp="none"))
    with pytest.raises(HostError) as caught:
        run(plans.plan(**sandbox.fields(TRUE, filter=None, profile=profile)))
    assert caught.value.id == "plan-not-expressible"


# -- the mapping itself


def test_mapping_is_made_once_and_made_again_when_its_descriptor_was_closed(sandbox: Sandbox) -> None:
    def counted() -> tuple[int, bool, bool]:
        spawned: list[object] = []
        sys.addaudithook(lambda event, what: spawned.append(what) if event == "prespawn.spawn" else None)
        mapping = idmap.Mapping(owner=0, shown=61001)
        first = idmap.namespace(mapping)
        same = idmap.namespace(mapping) == first
        os.close(first)
        os.open("/dev/null", os.O_RDONLY)  # takes its number
        return len(spawned), same, os.get_inheritable(idmap.namespace(mapping))

    assert sandbox.call(counted) == (1, True, False)


def end_to_end(sandbox: Sandbox) -> tuple[str, int | None, str, set[str]]:
    os.chdir(sandbox.workspace)
    os.environ["XDG_STATE_HOME"] = f"{sandbox.home}/state"
    words = shell("id -u; echo made > made; chmod 4755 made || echo refused")
    out = os.memfd_create("out")
    declaration = {
        "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".", "declared_files": [],
        "env_keys": [], "execution": {"argv": list(words)}, "execute": True,
        "file_contract": {"mode": "mutation", "allowed_paths": ["**"]},
    }  # fmt: skip
    gate = Gate.load().reviewing("sandbox-v1", words)
    run_ = gate.launch_typed(declaration, operator="ada", streams=Streams(stdout=out))
    assert run_.outcome is not None, run_.verdict.blockers
    held = {claim.claim for claim in run_.verdict.claims if claim.strength == "attested" and claim.result == "pass"}
    return run_.outcome.how, run_.outcome.status, os.pread(out, 100, 0).decode(), held


def test_typed_line_runs_attested_in_a_workspace_of_roots(sandbox: Sandbox) -> None:
    how, status, text, held = sandbox.call(partial(end_to_end, sandbox))
    assert (how, status, text) == ("exited", 0, "1000\nrefused\n")
    assert {"binds", "mounts", "namespaces", "seccomp", "filter-bytes"} <= held
    made = os.stat(f"{sandbox.workspace}/made")
    assert (made.st_uid, made.st_gid, made.st_mode) == (0, 0, 0o100644)
