"""The rows about mounts and profiles that can be decided before a spawn, and the public bug reports: each its blocker.

As far as today's formats can say it: the only trees that a site grants beside a workspace are toolchains. What a row
asks of leases and images is held by the cases of its blocker.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from support.cli import ROOT, WORKER, Shell, runtime, shell
from support.world import pages

from prespawn import Gate

if TYPE_CHECKING:
    pass

__all__ = ["runtime", "shell"]  # the fixtures

PAGES = pages()
DECLARED: dict[str, Any] = {
    "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".", "declared_files": [],
    "env_keys": [], "execution": {"argv": ["ls"]}, "file_contract": {"mode": "read-only"},
}  # fmt: skip


def blocked(**fields: Any) -> dict[str, str]:
    """Return the fields of the blockers of a declaration, by id; each of them failed."""
    verdict = Gate.load().check({**DECLARED, **fields})
    assert {blocker.because for blocker in verdict.blockers} <= {"fail"}
    return {blocker.id: blocker.field for blocker in verdict.blockers}


def granted(shell: Shell, path: str) -> dict[str, str]:
    """Return the same where the site grants a toolchain."""
    main = {"root": str(shell.workspace), "reports": "reports", "toolchains": ["tool"]}
    shell.write_site(toolchains={"tool": path}, workspaces={"main": main})
    return blocked()


@pytest.mark.usefixtures("runtime")
def test_what_the_rows_change_is_allowed_as_it_stands(shell: Shell) -> None:
    (shell.top / "tool").mkdir()
    assert granted(shell, str(shell.top / "tool")) == {}


FORBIDDEN = {
    "image": "x", "entrypoint": ["sh"], "mounts": ["/:/host"], "uid": 0, "user": "root", "capabilities": ["SYS_ADMIN"],
    "devices": ["/dev/kvm"], "network": "host", "env": {"A": "1"}, "extensions": ["/x"], "budget": 1,
    "provider": "http://x", "runtime": "runsc", "privileged": True, "gid": 0, "caps": [], "cap_add": ["ALL"],
    "security_opt": ["seccomp=unconfined"], "pid": "host", "ipc": "host",
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN)
@pytest.mark.usefixtures("shell", "runtime")
def test_m01_field_of_trusted_configuration_is_forbidden_alone(name: str) -> None:
    assert blocked(**{name: FORBIDDEN[name]}) == {"request-field-forbidden": name}
    below = {"argv": ["ls"], name: FORBIDDEN[name]}
    assert blocked(execution=below) == {"request-field-forbidden": f"execution.{name}"}


@pytest.mark.usefixtures("runtime")
def test_m02_tree_that_is_a_link_to_the_root_is_the_root(shell: Shell) -> None:
    (shell.top / "tool").symlink_to("/")
    assert granted(shell, str(shell.top / "tool")) == {
        "mount-forbidden-source": "toolchains[tool]",
        "registry-not-parent-controlled": "registry_path",
    }


@pytest.mark.parametrize("path", ["/proc", "/proc/sys", "/sys", "/dev", "/etc", "/run", "/root", "/home", "/var/run"])
@pytest.mark.usefixtures("runtime")
def test_m03_place_of_the_host_is_no_source(path: str, shell: Shell) -> None:
    wanted = {"mount-forbidden-source": "toolchains[tool]"}
    if shell.state.is_relative_to(os.path.realpath(path)):  # an ordinary user's state lies below `/home`
        wanted["registry-not-parent-controlled"] = "registry_path"
    assert granted(shell, path) == wanted
    (shell.top / "linked").symlink_to(path)
    assert granted(shell, str(shell.top / "linked")) == wanted


@pytest.mark.parametrize(
    "path",
    [
        "/proc", "/sys", "/dev", "/etc", "/run", "/sys/fs/cgroup", "/var/run/docker.sock", "/run/docker.sock",
        "/run/containerd", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/dbus",
        "/run/user/1000/bus", "/home/ada", "/root",
    ],
)  # fmt: skip
def test_m03_lint_says_so_wherever_the_site_is_written(path: str, shell: Shell) -> None:
    main = {"root": "/srv/ws", "reports": "reports", "toolchains": ["tool"]}
    shell.write_site(state_dir="/srv/state", toolchains={"tool": path}, workspaces={"main": main})
    result = shell.run("lint", "--format", "json", str(shell.site))
    assert [finding["id"] for finding in result.json["findings"]] == ["mount-forbidden-source"]
    assert (result.code, result.is_quiet) == (1, True)


@pytest.mark.parametrize("below", [".", "..", "sub", "../link"])
@pytest.mark.usefixtures("runtime")
def test_m10_tree_that_is_holds_or_lies_in_the_workspace_overlaps(below: str, shell: Shell) -> None:
    (shell.workspace / "sub").mkdir()
    (shell.top / "link").symlink_to("ws/sub")
    found = granted(shell, os.path.normpath(shell.workspace / below))
    if below == "..":  # the more special word for a tree that holds the state directory as well
        assert set(found) == {"mount-forbidden-source", "registry-not-parent-controlled"}
    else:
        assert found == {"lease-overlap": "toolchains[tool]"}


@pytest.mark.parametrize("name", [".env", "id_rsa", ".npmrc", ".git-credentials", ".aws", "key.pem", ".netrc", ".ssh"])
@pytest.mark.usefixtures("runtime")
def test_m11_credentials_are_found_by_name_and_not_shown(name: str, shell: Shell) -> None:
    tool = shell.top / "tool"
    tool.mkdir()
    if name == ".aws":
        shell.file(str(shell.workspace / ".aws" / "credentials"), "S3CRET")
        assert blocked() == {"workspace-holds-credentials": "workspace"}
    else:
        (tool / name).write_text("S3CRET")
        assert granted(shell, str(tool)) == {"lease-contains-credentials": "toolchains[tool]"}
    result = shell.run("check", "-", stdin=b"")
    assert "S3CRET" not in result.out + result.err


@pytest.mark.parametrize(
    ("site", "fields", "ids"),
    [
        ({"activated": []}, {}, {"profile-not-activated"}),
        ({"pairs": []}, {}, {"adapter-profile-not-allowed"}),
        (
            {
                "activated": ["logical-v1"],
                "pairs": [{"adapter": "exec@1", "profile": "logical-v1"}],
                "argv": {"logical-v1": []},
            },
            {"profile": "logical-v1"},
            {"execution-preview-not-allowed"},
        ),
        ({}, {"env_keys": ["FOO"]}, {"env-key-not-allowed"}),
    ],
    ids=["activated", "pairs", "argv", "keys"],
)
@pytest.mark.usefixtures("runtime")
def test_m12_empty_list_denies_all(site: dict[str, Any], fields: dict[str, Any], ids: set[str], shell: Shell) -> None:
    shell.write_site(**site)
    assert set(blocked(**fields)) == ids


def test_m12_profile_without_allowed_keys_allows_none(shell: Shell, runtime: str) -> None:
    environment = "environment: {fixed: {LANG: C.UTF-8}, allowed_keys: []}"
    text = f"prespawn: profile/v1\nid: bare-v1\nextends: sandbox-v1\n{environment}\n"
    shell.file(str(shell.site.parent / "profiles" / "bare.yaml"), text)
    shell.write_site(activated=["bare-v1"], pairs=[{"adapter": "exec@1", "profile": "bare-v1"}], env={"TZ": "UTC"})
    assert blocked(profile="bare-v1") == {}
    assert blocked(profile="bare-v1", env_keys=["TZ"]) == {"env-key-not-allowed": "env_keys[0]"}
    assert runtime


# --- public bug reports


REPORTS: dict[str, tuple[str, ...]] = {
    "the worker types into the caller's terminal": ("attestation-mismatch",),
    "a sibling whose name begins with the root's": (
        "declared-file-outside-workspace", "log-path-outside-workspace", "registry-path-outside-workspace",
        "execute-cwd-mismatch",
    ),
    "a linked directory passes a check made on text": ("declared-file-outside-workspace", "declared-file-symlink"),
    "a newline is a second command": (
        "execution-preview-shell-interpolation", "execution-preview-interpreter", "execution-preview-not-allowed",
    ),
    "the sandbox is silently off": (
        "bwrap-missing", "user-namespaces-refused", "docker-daemon-unreachable", "image-missing", "launcher-missing",
    ),
    "the host's git runs what the worker wrote": ("file-contract-git-internal",),
    "the timeout kills the client only": ("limit-not-enforceable",),
    "duplicate keys": ("declaration-invalid",),
    "a list of forbidden variables": ("env-key-not-allowed", "env-key-loader", "env-key-host-exposure",
                                      "env-key-invalid"),
    "the daemon's socket": ("mount-forbidden-source", "mount-holds-socket"),
}  # fmt: skip
"""Each report and the blockers that stop what it tells of, as far as it is seen before a worker's first instruction."""


@pytest.mark.parametrize("report", REPORTS)
def test_report_has_blockers_each_with_a_case(report: str) -> None:
    for id in REPORTS[report]:
        cases = PAGES[id]["cases"]
        assert any("blocks" in case for case in cases), id
        assert PAGES[id]["status"] == "active"


def linked(shell: Shell) -> None:
    (shell.workspace / "docs").mkdir()
    (shell.workspace / "docs" / "hostname").write_text("")
    for name, text in {"data": "/etc", "a": "b", "b": "a", "in": "./docs"}.items():
        (shell.workspace / name).symlink_to(text)
    (shell.top / "ws-evil").mkdir()
    (shell.top / "ws-evil" / "notes.md").write_text("")


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({"declared_files": ["../ws-evil/notes.md"]}, {"declared-file-outside-workspace"}),
        ({"log_path": "reports-old/run.log"}, {"log-path-outside-workspace"}),
        ({"log_path": "../reports/run.log"}, {"log-path-outside-workspace"}),
        ({"registry_path": "../state-old/registry.db"}, {"registry-path-outside-workspace"}),
        ({"cwd": "../ws-evil"}, {"execute-cwd-mismatch"}),
        ({"declared_files": ["data/hostname"]}, {"declared-file-outside-workspace"}),
        ({"declared_files": ["a/x"]}, {"declared-file-outside-workspace"}),
        ({"declared_files": ["in/hostname"]}, {"declared-file-symlink"}),
        ({"execution": {"argv": "git status\ntouch /tmp/x"}}, {"execution-preview-shell-interpolation"}),
        ({"execution": {"argv": ["sh", "-c", "git status $(id)"]}}, {"execution-preview-interpreter"}),
        ({"execution": {"argv": ["ls", "status; id"]}}, set()),  # a semicolon in an argument is data
        ({"file_contract": {"mode": "mutation", "allowed_paths": [".git/config"]}}, {"file-contract-git-internal"}),
        ({"env_keys": ["LANG", "PGDATABASE"]}, {"env-key-not-allowed"}),
        ({"env_keys": ["LANG", "DATABASE_URL"]}, {"env-key-not-allowed"}),  # the portable one, as in any adapter
        ({"env_keys": ["PATH\0X"]}, {"env-key-invalid"}),
        ({"env_keys": ["A=B"]}, {"env-key-invalid"}),
        ({"env_keys": ["SSH_AUTH_SOCK"]}, {"env-key-not-allowed"}),
        ({"env_keys": ["LANG"]}, set()),
        ({"tty": True}, None),
    ],
    ids=lambda value: ascii(value)[:50],
)
@pytest.mark.usefixtures("runtime")
def test_reported_input_has_its_right_answer(fields: dict[str, Any], ids: set[str] | None, shell: Shell) -> None:
    linked(shell)
    shell.write_site()
    found = set(blocked(**fields))
    assert found == ids if ids is not None else found in ({"request-field-forbidden"}, {"declaration-invalid"})


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/.", "/{}", "{}/../ws"])
@pytest.mark.usefixtures("runtime")
def test_spellings_of_the_root_give_one_verdict(spelling: str, shell: Shell) -> None:
    linked(shell)
    for files, ids in (([], set()), (["../ws-evil/notes.md"], {"declared-file-outside-workspace"})):
        gate = Gate.load(workspaces={"main": spelling.format(shell.workspace)})
        verdict = gate.check({**DECLARED, "declared_files": files})
        assert {blocker.id for blocker in verdict.blockers} == ids


@pytest.mark.parametrize(
    "text",
    [
        '{"profile": "sandbox-v1", "profile": "logical-v1"}',
        '{"profile": "sandbox-v1", "pro\\u0066ile": "logical-v1"}',
        '{"execution": {"argv": ["ls"], "argv": ["sh"]}}',
    ],
)
def test_duplicate_key_is_refused_with_its_place(text: str, shell: Shell) -> None:
    for name in ("d.json", "d.yaml"):
        (error,) = shell.run("check", shell.file(name, text)).errors
        assert error.startswith(f"{name}:1:")
        assert "stands here twice, first at line 1, column " in error
        assert error.endswith("(input-invalid)")


def test_missing_runtime_is_a_blocker_and_no_weaker_profile(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prespawn.facts.runtime.find_bwrap", lambda *_: None)
    result = shell.run("exec", "--", "ls")
    assert result.code == 125
    assert [line.split(": ")[1] for line in result.errors] == ["bwrap-missing"]
    assert result.is_quiet


@pytest.mark.usefixtures("runtime")
def test_socket_in_the_workspace_is_a_blocker(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.bind("docker.sock")
    if ROOT:
        os.chown("docker.sock", WORKER, WORKER)
    assert blocked() == {"mount-holds-socket": "workspace"}
