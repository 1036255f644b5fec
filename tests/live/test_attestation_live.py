"""A launcher that does anything else than its plan means is caught at the hold, by name, and nothing of the work runs.

The first half leaves out one option after the other, the second adds and exchanges. Except where it says otherwise, the
launcher's word is as planned and only its deed differs, so that it is the kernel's records that tell.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from support import held, plans, runtimes
from support.held import before_the_last, exchanged, without
from support.sandboxes import GROUP, OWNER, WORKER, Sandbox, bwrap, sandbox

from prespawn import start
from prespawn.checker.plan import Identity
from prespawn.launchers.bwrap import invocation
from prespawn.launchers.invocation import File

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.held import Change, Looked, Option

__all__ = ["bwrap", "sandbox"]  # the fixtures

RUNTIME, ROOT, PROGRAM = "setup-failed runtime", "setup-failed root", "setup-failed program"
LEAKED = "descriptor-leaked"
FELL = (RUNTIME, ROOT, PROGRAM, LEAKED)


def both(*names: str) -> set[str]:
    return {f"{who}.{name}" for who in ("payload", "init") for name in names}


LEFT_OUT: Mapping[str, set[str] | str] = {
    "--unshare-user": RUNTIME,  # no ids of its own without
    "--unshare-pid": {
        *both("namespaces.pid", "pid"), "init.descriptors", "init.environment", "init.program", "mounts./proc.flags",
    },
    "--unshare-net": {*both("namespaces.net"), "network.interfaces", "network.routes"},
    "--unshare-ipc": both("namespaces.ipc"),
    "--unshare-uts": RUNTIME,  # no name of its own without
    "--unshare-cgroup": both("namespaces.cgroup"),
    "--uid": both("uid_map"),
    "--gid": both("gid_map"),
    "--new-session": both("session", "process_group"),
    "--seccomp": LEAKED,  # nobody has read the filter
    "--json-status-fd": LEAKED,
    "--proc": {"mounts./proc"},
    "--dev": ROOT,
    "--file": RUNTIME,  # its mode has nothing to stand for then
    "--tmpfs": RUNTIME,
    "--bind-fd": LEAKED,
    "--ro-bind-fd": LEAKED,
    "--chdir": {"payload.cwd", "payload.other_values"},
    "--remount-ro /dev": {"mounts./dev.access"},
    "--remount-ro /": {"mounts./.access"},
    "--size of /dev/shm": {"mounts./dev/shm.size"},
    "--size of /tmp": {"mounts./tmp.size"},
    "--size of /home/worker": {"mounts./home/worker.size"},
    "--perms of /dev/shm": {"mounts./dev/shm.mode"},
    "--perms of /tmp": {"mounts./tmp.mode"},
    "--perms of /home/worker": {"mounts./home/worker.mode"},
    "--perms of /etc/passwd": {"tree./etc/passwd"},
    "--perms of /etc/group": {"tree./etc/group"},
    "--perms of /etc/hosts": {"tree./etc/hosts"},
    "--perms of /etc/nsswitch.conf": {"tree./etc/nsswitch.conf"},
    "--perms of /etc/ld.so.cache": {"tree./etc/ld.so.cache"},
    "--setenv HOME": {"payload.environment", "payload.other_values"},
    "--setenv PATH": {"payload.environment", "payload.other_values"},
    "--setenv LANG": {"payload.environment", "payload.other_values"},
    "--symlink /etc/localtime": {"tree./etc/localtime"},
    "--symlink alias": {"tree.alias"},
    "--ro-bind /usr": PROGRAM,
    "--ro-bind /etc/alternatives": {"mounts./etc/alternatives"},
    "--ro-bind /etc/ssl/certs": {"mounts./etc/ssl/certs", "tree./etc/ssl"},
}  # fmt: skip
"""By option: the places that give it away, or where the run falls before anybody can look."""

SAID = {
    "--hostname", "--cap-drop", "--disable-userns", "--die-with-parent", "--dir",
}  # fmt: skip
"""Options whose effect no record shows, or that change nothing in this plan: what the launcher says is all there is."""


def keyed(options: tuple[Option, ...], workspace: str) -> dict[str, int]:
    """Return every option by a name that says what it is about, with its place."""
    found: dict[str, int] = {}
    for place, (name, *words) in enumerate(options):
        key = name
        if name in ("--size", "--perms"):
            of = next(option[-1] for option in options[place:] if option[0] in ("--file", "--tmpfs"))
            key = f"{name} of {of}"
        elif name == "--setenv":
            key = f"{name} {words[0]}"
        elif name in ("--symlink", "--ro-bind", "--remount-ro"):
            key = f"{name} {'alias' if words[-1] == workspace else words[-1]}"
        while key in found:
            key += " "
        found[key] = place
    return found


def caught(sandbox: Sandbox, looked: Looked, fields: set[str]) -> None:
    """Assert that exactly these places gave a launcher away, and that nothing of the work ran."""
    assert (looked.fell, looked.fields, looked.released) == ("", fields, False), looked
    assert not any(reason for _, _, reason in looked.differences.values())
    assert not os.path.exists(f"{sandbox.workspace}/{held.MARK}")


def test_launcher_that_does_what_the_plan_means_is_released(sandbox: Sandbox) -> None:
    looked = sandbox.call(held.looked, held.values(sandbox))
    assert looked == held.Looked({}, "", True)


def every_option(values: dict[str, Any]) -> dict[str, tuple[Looked, Looked]]:
    """Leave out one option after the other, once in deed alone and once in word and deed."""
    plan = plans.plan(**values)
    assert plan.workspace is not None
    return {
        key: (held.looked(values, without(place)), held.looked(values, without(place), says=True))
        for key, place in keyed(invocation(plan).options, plan.workspace.source).items()
        if key.strip() not in SAID
    }


def test_launcher_that_leaves_any_option_out_is_caught_by_what_it_did(sandbox: Sandbox) -> None:
    found = sandbox.call(every_option, held.values(sandbox))
    seen = {key: looked.fell or looked.fields for key, (looked, _) in found.items()}
    named = {f"tree.{sandbox.workspace}": "tree.alias"}
    seen = {key: of if isinstance(of, str) else {named.get(one, one) for one in of} for key, of in seen.items()}
    system = {f"--symlink {entry.path}" for entry in plans.system() if entry.kind == "link"}
    for key, of in seen.items():
        if key in system:  # which of them a program needs to begin with is the host's affair
            assert of in (PROGRAM, {f"tree.{key.split()[1]}"}), key
        else:
            assert of == LEFT_OUT[key.strip()], key
    assert {key.strip() for key in seen} >= LEFT_OUT.keys()
    assert not any(looked.released for pair in found.values() for looked in pair)


@pytest.mark.parametrize("option", sorted(SAID))
def test_launcher_that_leaves_out_what_no_record_shows_is_caught_by_what_it_says(option: str, sandbox: Sandbox) -> None:
    values = held.values(sandbox)
    options = invocation(plans.plan(**values)).options
    place = next(place for place, words in enumerate(options) if words[0] == option)
    looked = sandbox.call(lambda: held.looked(values, without(place), says=True))
    caught(sandbox, looked, {f"told.{option.removeprefix('--')}"})


ADDED: Mapping[str, tuple[Change, set[str]]] = {
    "a directory of the host": (before_the_last(("--ro-bind", "/var", "/var")), {"mounts./var"}),
    "a directory of the host, writable": (before_the_last(("--bind", "/tmp", "/host")), {"mounts./host"}),
    "a file of the host": (before_the_last(("--ro-bind", "/etc/fstab", "/etc/fstab")), {"mounts./etc/fstab"}),
    "a tmpfs": (before_the_last(("--tmpfs", "/run")), {"mounts./run"}),
    "a second proc": (before_the_last(("--proc", "/proc2")), {"mounts./proc2"}),
    "a mount over another": (
        before_the_last(("--tmpfs", "/home/worker")),
        {"mounts./home/worker (again)", "mounts./home/worker.mode"},
    ),
    "a device": (
        exchanged("--remount-ro", "/dev", ("--dev-bind", "/dev/null", "/dev/kvm"), ("--remount-ro", "/dev")),
        {"mounts./dev/kvm"},
    ),
    "a link": (before_the_last(("--symlink", "/proc/1/root", "/door")), {"tree./door"}),
    "a directory": (before_the_last(("--dir", "/run")), {"tree./run"}),
    "a variable": (before_the_last(("--setenv", "LD_PRELOAD", "/workspace/x.so")), {"payload.environment"}),
    "the host's network": (before_the_last(("--share-net",)), {
        *both("namespaces.net"), "network.interfaces", "network.routes",
    }),
    "a capability": (before_the_last(("--cap-add", "CAP_NET_ADMIN")), {
        "payload.capabilities.permitted", "payload.capabilities.effective", "payload.capabilities.bounding",
        "payload.capabilities.inheritable", "payload.capabilities.ambient", "init.capabilities.bounding",
    }),
}  # fmt: skip


@pytest.mark.parametrize("what", ADDED)
def test_launcher_that_adds_something_is_caught(what: str, sandbox: Sandbox) -> None:
    change, fields = ADDED[what]
    caught(sandbox, sandbox.call(held.looked, held.values(sandbox), change), fields)


CHANGED: Mapping[str, tuple[Change, set[str]]] = {
    "a system directory that can be written": (
        exchanged("--ro-bind", "/usr", ("--bind", "/usr", "/usr")), {"mounts./usr.access"},
    ),
    "another directory in a planned place": (
        exchanged("--ro-bind", "/etc/ssl/certs", ("--ro-bind", "/var", "/etc/ssl/certs")),
        {"mounts./etc/ssl/certs.identity"},
    ),
    "an empty directory in a planned place": (
        exchanged("--ro-bind", "/etc/ssl/certs", ("--tmpfs", "/etc/ssl/certs")),
        {f"mounts./etc/ssl/certs.{name}" for name in ("access", "identity", "mode", "size")},
    ),
    "the inner uid of root": (exchanged("--uid", "1000", ("--uid", "0")), both("uid_map")),
    "a larger scratch space": (exchanged("--size", "33554432", ("--size", "67108864")), {"mounts./tmp.size"}),
    "another value of a variable": (
        exchanged("--setenv", ":".join(plans.SEARCH_PATH), ("--setenv", "PATH", "/workspace/bin:/usr/bin:/bin")),
        {"payload.other_values"},
    ),
    "another working directory": (exchanged("--chdir", "/workspace", ("--chdir", "/tmp")), {
        "payload.cwd", "payload.other_values",
    }),
    "another text of a link": (exchanged("--symlink", "/sbin", ("--symlink", "tmp", "/sbin")), {"tree./sbin"}),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGED)
def test_launcher_that_puts_something_else_in_place_is_caught(what: str, sandbox: Sandbox) -> None:
    change, fields = CHANGED[what]
    caught(sandbox, sandbox.call(held.looked, held.values(sandbox), change), fields)


# -- what stands beside the options


def test_workspace_that_is_another_directory_is_caught(sandbox: Sandbox) -> None:
    values = held.values(sandbox)
    other = f"{sandbox.home}/other"
    os.mkdir(other)
    os.mkdir(f"{other}/.git")
    os.chown(other, *sandbox.ids)
    status = os.stat(other)
    sources = tuple(
        source.replace(path=other, identity=(status.st_dev, status.st_ino)) if source.target == "/workspace" else source
        for source in invocation(plans.plan(**values)).sources
    )
    looked = sandbox.call(lambda: held.looked(values, told={"sources": sources}))
    caught(sandbox, looked, {"mounts./workspace.identity", "mounts./workspace/.git.identity"})


@pytest.mark.parametrize("name", ["RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_CORE"])
def test_limit_that_is_not_set_is_caught(name: str, sandbox: Sandbox) -> None:
    field = {"RLIMIT_NPROC": "processes", "RLIMIT_NOFILE": "open_files", "RLIMIT_FSIZE": "file_size"}.get(name, "core")
    values = held.values(sandbox)
    rlimits = tuple(limit for limit in invocation(plans.plan(**values)).rlimits if limit[0] != name)
    caught(sandbox, sandbox.call(lambda: held.looked(values, told={"rlimits": rlimits})), both(f"limits.{field}"))


def test_filter_that_was_left_out_with_all_that_belongs_to_it_is_caught(sandbox: Sandbox) -> None:
    values = held.values(sandbox)
    honest = invocation(plans.plan(**values))
    place = next(place for place, option in enumerate(honest.options) if option[0] == "--seccomp")
    files = tuple(file for file in honest.files if file.target is not None)
    looked = sandbox.call(lambda: held.looked(values, without(place), told={"files": files}))
    caught(sandbox, looked, {*both("seccomp.mode", "seccomp.filters"), "filter"})


def test_filter_that_is_another_one_is_caught(sandbox: Sandbox) -> None:
    allow = (6).to_bytes(2, "little") + bytes(2) + (0x7FFF0000).to_bytes(4, "little")
    values = held.values(sandbox)
    honest = invocation(plans.plan(**values))
    files = tuple(file if file.target is not None else file.replace(content=allow) for file in honest.files)
    caught(sandbox, sandbox.call(lambda: held.looked(values, told={"files": files})), {"filter.program"})


@pytest.mark.skipif(not runtimes.ROOT, reason="only root maps the ids of files")
@pytest.mark.parametrize("sandbox", [OWNER], indirect=True)
def test_workspace_whose_ids_are_not_mapped_is_caught(sandbox: Sandbox) -> None:
    values = held.values(sandbox)
    os.chmod(sandbox.workspace, 0o755)  # else bubblewrap could not even mount it
    sources = tuple(source.replace(mapped=None) for source in invocation(plans.plan(**values)).sources)
    looked = sandbox.call(lambda: held.looked(values, told={"sources": sources}))
    caught(sandbox, looked, {"mounts./workspace.flags", "mounts./workspace/.git.flags"})


@pytest.mark.skipif(not runtimes.ROOT, reason="only root starts a worker as somebody else")
@pytest.mark.parametrize("sandbox", ["root"], indirect=True)
def test_worker_that_is_another_user_is_caught(sandbox: Sandbox) -> None:
    other = Identity(uid=WORKER + 1, gid=GROUP + 1, inner_uid=1000, inner_gid=1000)
    looked = sandbox.call(lambda values: held.looked(values, told={"identity": other}), held.values(sandbox))
    caught(sandbox, looked, both("uids", "gids", "uid_map", "gid_map"))


def test_other_program_and_other_arguments_are_caught(sandbox: Sandbox) -> None:
    values = held.values(sandbox)
    command = invocation(plans.plan(**values)).command
    for other in (("/usr/bin/true",), (*command, "more"), ("/usr/bin/env", *command), (command[0], "-c", "true")):
        caught(sandbox, sandbox.call(lambda other=other: held.looked(values, told={"command": other})), {
            "payload.program",
        })  # fmt: skip


def test_descriptor_that_leaks_is_caught_before_anything_else(sandbox: Sandbox) -> None:
    values = held.values(sandbox)
    files = invocation(plans.plan(**values)).files
    unread = File(descriptor=max(file.descriptor for file in files) + 1, target=None, content=b"secret", copied=None)
    looked = sandbox.call(lambda: held.looked(values, told={"files": (*files, unread)}))
    assert (looked.fell, looked.released) == (LEAKED, False)


def exchanged_streams(values: dict[str, Any]) -> Looked:
    pipes = start._pipes

    def crossed(own: Any) -> Any:
        theirs, ours = pipes(own)
        return {**theirs, 1: theirs[2], 2: theirs[1]}, ours

    with mock.patch("prespawn.start._pipes", crossed):
        return held.looked(values)


def test_streams_that_are_exchanged_are_caught(sandbox: Sandbox) -> None:
    caught(sandbox, sandbox.call(exchanged_streams, held.values(sandbox)), both("descriptors"))


def with_an_environment(values: dict[str, Any]) -> Looked:
    spawned = os.posix_spawn

    def leaking(program: str, vector: Any, environment: Any, **more: Any) -> int:
        return spawned(program, vector, {"API_KEY": "canary"}, **more)

    with mock.patch("os.posix_spawn", leaking):
        return held.looked(values)


def test_environment_of_the_parent_that_leaks_is_caught_by_its_keys_alone(sandbox: Sandbox) -> None:
    looked = sandbox.call(with_an_environment, held.values(sandbox))
    caught(sandbox, looked, both("environment"))
    assert looked.differences["init.environment"][:2] == ([], ["API_KEY"])
    assert "canary" not in repr(looked)


def test_worker_that_becomes_init_itself_is_caught(sandbox: Sandbox) -> None:
    looked = sandbox.call(held.looked, held.values(sandbox), before_the_last(("--as-pid-1",)))
    assert not looked.released
    assert {"payload.pid", "init.environment", "init.program"} <= looked.fields


# -- what cannot be read


@pytest.mark.skipif(not runtimes.ROOT, reason="only root can make a program that its user may not read")
@pytest.mark.parametrize("sandbox", ["user"], indirect=True)
def test_program_that_its_parent_may_not_read_is_not_attested_and_never_runs(sandbox: Sandbox) -> None:
    tools = f"{sandbox.home}/tools"
    values = held.values(sandbox)
    shutil.copy("/usr/bin/touch", f"{tools}/touch")
    os.chmod(f"{tools}/touch", 0o711)
    values["argv"] = (f"{tools}/touch", f"/workspace/{held.MARK}")
    looked = sandbox.call(held.looked, values)
    assert looked == held.Looked({}, "worker-unreadable", False)
    os.chmod(f"{tools}/touch", 0o755)
    assert sandbox.call(held.looked, values).released  # it was the mode alone


# -- scripts


def script(sandbox: Sandbox, name: str, first_line: str) -> str:
    path = f"{sandbox.home}/tools/{name}"
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{first_line}\ntouch /workspace/{held.MARK}\n")
    os.chmod(path, 0o755)
    return path


@pytest.mark.parametrize("first_line", ["#!/bin/sh", "#! /bin/sh -e ", "#!/usr/bin/env sh", "#!{tools}/nested"])
def test_script_is_the_program_that_was_planned(first_line: str, sandbox: Sandbox) -> None:
    values = held.values(sandbox)
    script(sandbox, "nested", "#!/bin/sh")
    path = script(sandbox, "job", first_line.format(tools=f"{sandbox.home}/tools"))
    values["argv"] = (path, "a", "b")
    values["program"] = plans.program(path)
    assert sandbox.call(held.looked, values).fields == set()


def test_wrapper_in_front_of_a_script_is_another_program(sandbox: Sandbox) -> None:
    values = held.values(sandbox)
    path = script(sandbox, "job", "#!/bin/sh")
    other = script(sandbox, "other", "#!/bin/sh")
    values["argv"], values["program"] = (path, "a"), plans.program(path)
    for command in (("/usr/bin/env", path, "a"), ("/bin/sh", "-x", path, "a"), (other, "a"), (path, "b")):
        told = {"command": command}
        caught(sandbox, sandbox.call(lambda told=told: held.looked(values, told=told)), {"payload.program"})
