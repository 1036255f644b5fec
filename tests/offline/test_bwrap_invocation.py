"""What a plan means for bubblewrap, word for word; nothing here starts anything.

The golden files hold whole invocations. ``PRESPAWN_WRITE_GOLDEN=1`` writes them anew: the difference is then a
reviewer's to judge.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support import plans, scripted_bwrap
from support.seccomp import DEFAULT, TABLES

from prespawn.checker.facts import SystemEntry
from prespawn.checker.plan import Bind, Identity
from prespawn.launchers.bwrap import described, invocation
from prespawn.launchers.invocation import Invocation
from prespawn.launchers.seccomp import compile_filter
from prespawn.policy.canonical import digest_bytes
from prespawn.policy.errors import HostError
from prespawn.policy.known import ABSENT
from prespawn.policy.profile import NetworkRule, ProcessRule, RootRule

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
SYSTEM = (
    SystemEntry(path="/usr", kind="directory", link=ABSENT),
    SystemEntry(path="/bin", kind="link", link="usr/bin"),
    SystemEntry(path="/lib32", kind="directory", link=ABSENT),
    SystemEntry(path="/etc/alternatives", kind="directory", link=ABSENT),
    SystemEntry(path="/etc/ld.so.cache", kind="file", link=ABSENT),
)
WORKSPACE = Bind(source="/srv/agent/repo", target="/workspace", device=41, inode=42, writable=True)
TOOLCHAIN = Bind(source="/opt/python-3.11", target="/opt/python-3.11", device=41, inode=43, writable=False)
EVERYTHING: dict[str, Any] = {
    "argv": ("pytest", "-q", "--", "--bind"),
    "workspace": WORKSPACE,
    "alias": "/srv/agent/repo",
    "read_only": (".git",),
    "toolchains": (TOOLCHAIN,),
    "system": SYSTEM,
    "zoneinfo": "/usr/share/zoneinfo/Etc/UTC",
    "environment": (("LANG", "C.UTF-8"), ("TZ", "--unshare-nothing")),
    "filter": plans.filter("x86_64"),
}
UNBOUNDED = {"processes": None, "open_files": None, "file_size": None, "tmp": None, "home": None, "shm": None}
UNFILTERED = plans.PROFILE.replace(process=plans.PROFILE.process.replace(seccomp="none"))
CASES: dict[str, dict[str, Any]] = {
    "everything": EVERYTHING,
    "smallest": {
        "workspace": None,
        "alias": None,
        "cwd": "/",
        "limits": UNBOUNDED,
        "profile": UNFILTERED,
        "filter": None,
    },
    "read-only": {**EVERYTHING, "workspace": WORKSPACE.replace(writable=False), "toolchains": (), "alias": None},
}


def rendered(of: Invocation) -> str:
    """Return a whole invocation as text, one part a line."""
    lines = [f"program {of.program}", f"argv0 {of.argv0}", f"identity {of.identity}", f"vector {list(of.vector)}"]
    lines += [" ".join(("option", *option)) for option in of.options]
    lines += [f"source {source}" for source in of.sources]
    lines += [f"file {file}" for file in of.files if file.target is not None]
    lines += [
        f"filter descriptor={file.descriptor} {len(file.content) // 8} instructions {digest_bytes(file.content)}"
        for file in of.files
        if file.target is None
    ]
    lines += [f"rlimit {name} {value}" for name, value in of.rlimits]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_invocation_is_the_golden_one(name: str) -> None:
    path, text = GOLDEN / f"bwrap-{name}.txt", rendered(invocation(plans.plan(**CASES[name])))
    if os.environ.get("PRESPAWN_WRITE_GOLDEN") == "1":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_invocation_is_the_same_for_the_same_plan() -> None:
    first, second = invocation(plans.plan(**EVERYTHING)), invocation(plans.plan(**EVERYTHING))
    assert rendered(first) == rendered(second)
    assert first.arguments == second.arguments


HOSTILE = ("--bind", "--share-net", "--", "--cap-add", "-", "--setenv", "--args")


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "where", ["environment value", "environment key", "link", "zoneinfo", "read-only", "cwd", "run id", "alias", "argv"]
)
def test_value_that_looks_like_an_option_stays_a_value(value: str, where: str) -> None:
    every: dict[str, dict[str, Any]] = {
        "environment value": {"environment": (("LANG", value),)},
        "environment key": {"environment": ((value, "x"),)},
        "link": {"system": (SystemEntry(path="/bin", kind="link", link=value),)},
        "zoneinfo": {"zoneinfo": value},
        "read-only": {"read_only": (value,)},
        "cwd": {"cwd": value},
        "run id": {"run_id": value},
        "alias": {"alias": value},
        "argv": {"argv": ("true", value)},
    }
    told = invocation(plans.plan(**{**EVERYTHING, **every[where]}))
    words = told.arguments.decode().split("\0")[:-1]
    assert scripted_bwrap.parsed(words) == [list(option) for option in told.options]  # read as it was written
    assert {option[0] for option in told.options} <= set(scripted_bwrap.ARITY)
    assert told.vector[:3] == ("--args", "3", "--")


@pytest.mark.parametrize(
    "changes",
    [
        {"environment": (("LANG", "C\0--bind\0/\0/host"),)},
        {"environment": (("LANG\0--share-net", "C"),)},
        {"argv": ("true\0", "x")},
        {"cwd": "/workspace\0--share-net"},
        {"alias": "/srv\0--share-net"},
        {"workspace": WORKSPACE.replace(target="/w\0--share-net")},
        {"zoneinfo": "/usr\0--share-net"},
    ],
    ids=str,
)
def test_value_with_nul_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(HostError, match="a value of the plan holds NUL") as raised:
        invocation(plans.plan(**{**EVERYTHING, **changes}))
    assert raised.value.id == "plan-not-expressible"


def test_environment_values_never_stand_in_the_argument_vector() -> None:
    told = invocation(plans.plan(**{**EVERYTHING, "environment": (("LANG", "canary-value"),)}))
    assert "canary-value" not in " ".join(told.vector)
    assert b"\0--setenv\0LANG\0canary-value\0" in told.arguments
    assert "canary-value" not in repr(told)
    assert "canary-value" not in " ".join(described(told))
    assert described(told)[-5:] == ("--", "pytest", "-q", "--", "--bind")


def test_worker_as_host_root_is_refused() -> None:
    with pytest.raises(HostError, match="the worker's uid on the host is `0`") as raised:
        invocation(plans.plan(identity=Identity(uid=0, gid=0, inner_uid=1000, inner_gid=1000)))
    assert raised.value.id == "privilege-host-uid-zero"


def test_plan_without_a_program_is_refused() -> None:
    with pytest.raises(HostError) as raised:
        invocation(plans.plan(runtime=plans.runtime(None)))
    assert raised.value.id == "bwrap-missing"


PROCESS = dict(plans.PROFILE.process)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"launcher": "docker"}, "launcher is `docker`; the launcher `bwrap` can express: `bwrap`"),
        (
            {"profile": plans.PROFILE.replace(network=NetworkRule(mode="host"))},
            "network.mode is `host`; the launcher `bwrap` can express: `none`",
        ),
        (
            {"profile": plans.PROFILE.replace(root=RootRule(system="host"))},
            "root.system is `host`; the launcher `bwrap` can express: `read-only`",
        ),
        (
            {"profile": plans.PROFILE.replace(process=ProcessRule(**{**PROCESS, "capabilities": ("CAP_KILL",)}))},
            "process.capabilities is `('CAP_KILL',)`; the launcher `bwrap` can express: `()`",
        ),
        (
            {"profile": plans.PROFILE.replace(process=ProcessRule(**{**PROCESS, "no_new_privs": False}))},
            "process.no_new_privs is `False`; the launcher `bwrap` can express: `True`",
        ),
        (
            {"profile": plans.PROFILE.replace(process=ProcessRule(**{**PROCESS, "user_namespaces": "one"}))},
            "process.user_namespaces is `one`; the launcher `bwrap` can express: `none`",
        ),
        ({"filter": None}, "process.seccomp is `default`; the launcher `bwrap` can express: `none`"),
        ({"profile": UNFILTERED}, "process.seccomp is `none`; the launcher `bwrap` can express: `default`"),
    ],
    ids=lambda value: value.split(" ")[0] if isinstance(value, str) else None,
)
def test_part_of_a_plan_without_an_option_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(HostError) as raised:
        invocation(plans.plan(**changes))
    assert (raised.value.id, str(raised.value)) == ("plan-not-expressible", message)


@pytest.mark.parametrize(
    ("limits", "bounds"),
    [
        ({"processes": 9}, ()),
        ({"processes": 9, "memory": 5}, (("memory", 5), ("processes", 9))),
        ({"processes": None, "memory": 5}, (("memory", 5),)),
        ({"processes": 9, "cpu": 7}, (("cpu", 7), ("processes", 9))),
        ({"processes": 9, "cpu": 7, "memory": 5}, (("memory", 5), ("cpu", 7), ("processes", 9))),
    ],
)
def test_bounds_on_the_whole_run_are_those_that_need_a_control_group(limits: dict[str, Any], bounds: Any) -> None:
    assert invocation(plans.plan(limits=limits)).bounds == bounds


def test_mapped_workspace_needs_a_filter_and_maps_what_lies_over_it() -> None:
    workspace = Bind(source="/srv/x", target="/workspace", device=1, inode=2, writable=True, mapped=0)
    told = invocation(plans.plan(workspace=workspace, read_only=(".git",)))
    assert [(source.target, source.mapped) for source in told.sources] == [("/workspace", 0), ("/workspace/.git", 0)]
    with pytest.raises(HostError) as raised:
        invocation(plans.plan(workspace=workspace, filter=None, profile=UNFILTERED))
    assert raised.value.id == "plan-not-expressible"


def test_workspace_at_its_own_host_path_needs_no_second_name() -> None:
    told = invocation(plans.plan(alias="/workspace"))
    assert not [option for option in told.options if option[0] == "--symlink"]


def test_hardening_comes_first_and_the_root_is_closed_after_every_mount() -> None:
    names = [option[0] for option in invocation(plans.plan(**EVERYTHING)).options]
    assert names[:6] == [f"--unshare-{name}" for name in ("user", "pid", "net", "ipc", "uts", "cgroup")]
    closing = max(index for index, name in enumerate(names) if name == "--remount-ro")
    assert set(names[closing + 1 :]) == {"--setenv", "--chdir"}
    assert not [name for name in names if name.endswith("-try")]


def test_filter_is_read_from_a_descriptor_of_its_own() -> None:
    told = invocation(plans.plan(**EVERYTHING))
    (given,) = [file for file in told.files if file.target is None]
    assert [option for option in told.options if option[0] == "--seccomp"] == [("--seccomp", str(given.descriptor))]
    assert given.content == compile_filter(DEFAULT, TABLES["x86_64"])
    numbers = [source.descriptor for source in told.sources] + [file.descriptor for file in told.files]
    assert given.descriptor == max(numbers) and len(set(numbers)) == len(numbers)
    assert ("--file", str(given.descriptor)) not in [option[:2] for option in told.options]


def test_filter_is_that_of_the_machine() -> None:
    told = {machine: invocation(plans.plan(filter=plans.filter(machine))) for machine in TABLES}
    programs = {machine: [file.content for file in of.files if file.target is None] for machine, of in told.items()}
    assert programs == {machine: [compile_filter(DEFAULT, TABLES[machine])] for machine in TABLES}
