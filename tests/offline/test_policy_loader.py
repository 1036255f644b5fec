"""The loader: hostile trusted files get their named error, and what is left out is denied."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from prespawn.policy.catalogue import loader, profiles
from prespawn.policy.errors import ReadError
from prespawn.policy.known import ABSENT
from prespawn.policy.reader import Document, read
from prespawn.policy.site import Site, Workspace

LOADER = loader(frozenset({"execute-cwd-mismatch", "declared-file-missing"}))
PAYLOADS = Path(__file__).parents[1] / "data" / "payloads.jsonl"

PROFILE = """\
prespawn: profile/v1
id: sandbox-v9
extends: null
launcher: bwrap
level: {minimum: logical, promises: container}
workspace: {access: write, git: read-only}
root: {system: read-only}
network: {mode: none}
process: {uid: worker, capabilities: [], no_new_privs: true, seccomp: default, user_namespaces: none}
argv: typed
environment: {fixed: {LANG: C.UTF-8}, allowed_keys: [TZ, TERM]}
limits: {wall_clock: 1h, output: 64MiB, processes: 1024, open_files: 4096, file_size: 4GiB, tmp: 1GiB, shm: 256MiB}
quotas: null
provider: none
output: {log: worker, artifact: none}
evidence: {canary: {max_age: 7d}}
activation: {requires: []}
still_allowed: []
"""
SITE = """\
prespawn: site/v1
state_dir: ~/.local/state/prespawn
workspaces: {main: {root: /srv/agent/repo, reports: reports/main, protected_paths: [], toolchains: [py311]}}
toolchains: {py311: /opt/python-3.11}
activated: [sandbox-v1]
pairs: [{adapter: exec@1, profile: sandbox-v1}]
callers: {}
approvals: {directory: approvals, require_separate_approver: false, driver_may_approve: blocker-free}
argv: {logical-v1: [[make, test]]}
env: {TZ: UTC}
images: {}
providers: {}
"""
ADAPTER = (
    "prespawn: adapter/v1\nid: exec@2\ntitle: t\nprofiles: [sandbox-v1]\ntakes: [argv]\nlevel_at_most: container\n"
)
DIGEST = f"sha256:{'0' * 64}"
APPROVAL = {
    "prespawn": "approval/v1",
    "id": "d1ge57-5a17",
    "run_id": "fix-42",
    "digests": {"declaration": DIGEST, "policy": DIGEST, "blockers": DIGEST},
    "operator": "ada",
    "uid": 1001,
    "reason": "reviewed",
    "approved_at": 100,
    "expires_at": 200,
    "accepts": ["isolation-level-unknown"],
}


def document(text: str, syntax: str = "yaml") -> Document:
    return read(text.encode(), source="file", family="policy", syntax="json" if syntax == "json" else "yaml")


def profile(text: str) -> Any:
    return LOADER.profile(document(text), profiles())


def child(text: str, parent: str = "sandbox-v1") -> Any:
    return profile(f"prespawn: profile/v1\nid: mine-v1\nextends: {parent}\n{text}\n")


def refused(call: Any, *arguments: Any) -> ReadError:
    with pytest.raises(ReadError) as error:
        call(*arguments)
    return error.value


# -- the samples of the design


def test_profile_sample_loads_in_base_units() -> None:
    loaded = profile(PROFILE)
    assert loaded.limits.wall_clock == 3_600_000
    assert loaded.limits.output == 64 << 20
    assert loaded.limits.memory is None
    assert loaded.evidence.canary.max_age == 604_800_000
    assert loaded.workspace.source == "site"
    assert (loaded.quotas, loaded.provider, loaded.state, loaded.image) == (ABSENT, ABSENT, ABSENT, None)


def test_site_sample_loads_as_records() -> None:
    site = LOADER.site(document(SITE))
    assert site.workspaces == {"main": Workspace(root="/srv/agent/repo", reports="reports/main", toolchains=("py311",))}
    assert site.argv == {"logical-v1": (("make", "test"),)}
    assert site.toolchains == {"py311": "/opt/python-3.11"}
    assert site.approvals.driver_may_approve == "blocker-free"


def test_site_toolchain_may_be_a_mapping_with_a_path() -> None:
    text = SITE.replace("{py311: /opt/python-3.11}", "{py311: {path: ~/.pyenv/versions/3.11.7}}")
    assert LOADER.site(document(text)).toolchains == {"py311": "~/.pyenv/versions/3.11.7"}


def test_site_names_may_be_called_unknown() -> None:
    site = LOADER.site(document(SITE.replace("{main: {root", "{unknown: {root").replace("{TZ: UTC}", "{unknown: x}")))
    assert list(site.workspaces) == ["unknown"]
    assert isinstance(site, Site)
    assert site.env == {"unknown": "x"}


def test_approval_loads_and_may_name_core_blockers() -> None:
    fields = LOADER.approval(document(json.dumps({**APPROVAL, "accepts": ["execute-cwd-mismatch"]}), "json"))
    assert fields["accepts"] == ["execute-cwd-mismatch"]
    assert "prespawn" not in fields


def test_approval_that_ends_before_it_begins_is_refused() -> None:
    error = refused(LOADER.approval, document(json.dumps({**APPROVAL, "expires_at": 100}), "json"))
    assert error.id == "policy-range"
    assert error.message == f"`expires_at` is `100`; allowed here: 101 to {2**53 - 1}"


def test_approval_of_a_driver_accepts_nothing() -> None:
    error = refused(LOADER.approval, document(json.dumps({**APPROVAL, "origin": "driver"}), "json"))
    assert error.id == "policy-value"
    assert error.message == "`accepts` names blockers, and no operator decided; allowed here: nothing"
    driver = {**APPROVAL, "origin": "driver", "accepts": [], "run_id": None}
    assert LOADER.approval(document(json.dumps(driver), "json"))["origin"] == "driver"


# -- empty and absent lists of what is allowed (M12)


def test_absent_lists_of_a_profile_allow_nothing() -> None:
    text = PROFILE.replace("environment: {fixed: {LANG: C.UTF-8}, allowed_keys: [TZ, TERM]}\n", "")
    loaded = profile(text.replace("capabilities: [], ", ""))
    assert (loaded.environment.fixed, loaded.environment.allowed_keys) == ({}, ())
    assert (loaded.process.capabilities, loaded.provider, loaded.state, loaded.proves) == ((), ABSENT, ABSENT, ())


def test_absent_lists_of_a_site_allow_nothing() -> None:
    site = LOADER.site(document("prespawn: site/v1\nstate_dir: /var/lib/p\nworkspaces: {}\n"))
    assert (site.workspaces, site.activated, site.pairs, site.argv, site.env) == ({}, (), (), {}, {})
    assert (site.toolchains, site.images, site.providers, site.callers) == ({}, {}, {}, {})
    assert site.approvals.driver_may_approve == "nothing"


@pytest.mark.parametrize(
    "key", ["network", "process", "root", "workspace", "limits", "argv", "level", "output", "activation"]
)
def test_profile_must_say_what_holds_a_run(key: str) -> None:
    lines = [line for line in PROFILE.splitlines() if not line.startswith(f"{key}:")]
    error = refused(profile, "\n".join(lines))
    assert (error.id, error.message) == ("policy-missing-key", f"`{key}` is missing; add it")


# -- hostile files, group Y


@pytest.mark.parametrize(
    ("old", "new", "id"),
    [
        ("mode: none", "mode: no", "policy-type"),  # Y06
        ("mode: none", "mode: off", "policy-type"),
        ("network: {mode: none}", "network: none", "policy-type"),
        ("network: {mode: none}", "network: ~", "policy-type"),
        ("no_new_privs: true", "no_new_privs: yes", "policy-type"),
        ("no_new_privs: true", "no_new_privs: 'true'", "policy-type"),
        ("minimum: logical", "minimum: y", "policy-type"),
        ("processes: 1024", "processes: 010", "policy-number"),  # Y07
        ("processes: 1024", "processes: 1_000", "policy-number"),
        ("processes: 1024", "processes: 1:30", "policy-number"),
        ("processes: 1024", "processes: 0x1F", "policy-number"),
        ("processes: 1024", "processes: +1", "policy-number"),
        ("processes: 1024", "processes: 1e3", "policy-number"),
        ("processes: 1024", "processes: 1.0", "policy-number"),
        ("processes: 1024", "processes: '1024'", "policy-type"),
        ("processes: 1024", "processes: true", "policy-type"),
        ("processes: 1024", "processes: .inf", "policy-non-finite"),  # Y08
        ("processes: 1024", "processes: -1", "policy-range"),  # Y10
        ("processes: 1024", "processes: 0", "policy-range"),
        ("processes: 1024", f"processes: {10**30}", "policy-range"),
        ("processes: 1024", f"processes: {2**63}", "policy-range"),
        ("processes: 1024", f"processes: {2**63 - 1}", "policy-range"),
        ("processes: 1024", f"processes: {'9' * 5000}", "policy-range"),
        ("output: 64MiB", "output: 0", "policy-range"),
        ("output: 64MiB", "output: -1", "policy-range"),
        ("output: 64MiB", "output: 0MiB", "policy-range"),
        ("output: 64MiB", f"output: {10**30}MiB", "policy-range"),
        ("output: 64MiB", f"output: {2**53}", "policy-range"),
        ("output: 64MiB", "output: -1MiB", "policy-pattern"),
        ("output: 64MiB", "output: 64MB", "policy-pattern"),
        ("output: 64MiB", "output: null", "policy-type"),
        ("wall_clock: 1h", "wall_clock: 3600", "policy-type"),
        ("wall_clock: 1h", "wall_clock: 0s", "policy-range"),
        ("max_age: 7d", "max_age: 1000000d", "policy-range"),
        ("launcher: bwrap", "1: bwrap", "policy-key-type"),  # Y15
        ("launcher: bwrap", "launchre: bwrap", "policy-missing-key"),  # Y16
        ("mode: none", "mode: none, mod: none", "policy-unknown-key"),
        ("max_age: 7d", "max_age: 7d, maxAge: 7d", "policy-unknown-key"),
        ("still_allowed: []", "still_allowed: [{act: a, reason: b, reasno: c}]", "policy-unknown-key"),
        ("id: sandbox-v9", 'id: "sandbox-v9\\n"', "policy-pattern"),  # Y18
        ("id: sandbox-v9", "id: |\n  sandbox-v9", "policy-pattern"),
        ("id: sandbox-v9", "id: 'sandbox-v9 '", "policy-pattern"),
        ("id: sandbox-v9", "id: Sandbox-v9", "policy-pattern"),
        ("mode: none", 'mode: "none\\n"', "policy-value"),
        ("allowed_keys: [TZ, TERM]", 'allowed_keys: ["TZ\\n"]', "policy-pattern"),
        ("allowed_keys: [TZ, TERM]", "allowed_keys: [TZ, TZ]", "policy-duplicate-item"),
        ("allowed_keys: [TZ, TERM]", "allowed_keys: TZ", "policy-type"),
        ("allowed_keys: [TZ, TERM]", "allowed_keys: null", "policy-type"),
        ("launcher: bwrap", "launcher: podman", "policy-value"),
        ("provider: none", "provider: nothing", "policy-value"),
        ("prespawn: profile/v1", "prespawn: site/v1", "policy-invalid"),
        ("prespawn: profile/v1\n", "", "policy-invalid"),
    ],
)
def test_hostile_profile_gets_its_error(old: str, new: str, id: str) -> None:
    assert old in PROFILE
    assert refused(profile, PROFILE.replace(old, new)).id == id


@pytest.mark.parametrize(
    ("old", "new", "id"),
    [
        ("adapter: exec@1", 'adapter: "exec@1\\n"', "policy-pattern"),
        ("profile: sandbox-v1}", "profile: 'sandbox-v1 '}", "policy-pattern"),
        ("activated: [sandbox-v1]", "activated: [sandbox-v1@sha256:0]", "policy-pattern"),
        ("root: /srv/agent/repo", "root: srv/agent", "policy-pattern"),
        ("root: /srv/agent/repo", "root: ~root/x", "policy-pattern"),
        ("root: /srv/agent/repo", 'root: "/srv/a\\nb"', "policy-pattern"),
        ("reports: reports/main", "reports: ../reports", "policy-pattern"),
        ("reports: reports/main", "reports: /reports", "policy-pattern"),
        ("reports: reports/main", "reports: a//b", "policy-pattern"),
        ("reports: reports/main", "reports: a/./b", "policy-pattern"),
        ("reports: reports/main", "reports: a/", "policy-pattern"),
        ("protected_paths: []", "protected_paths: [a/..]", "policy-pattern"),
        ("[[make, test]]", "[[]]", "policy-length"),
        ("[[make, test]]", "[make]", "policy-type"),
        ("[[make, test]]", "[[make, 5]]", "policy-type"),
        ("env: {TZ: UTC}", "env: {A=B: x}", "policy-pattern"),
        ("env: {TZ: UTC}", "env: {TZ: 5}", "policy-type"),
        ("images: {}", "images: {py: python:3.11}", "policy-pattern"),
        ("{py311: /opt/python-3.11}", "{py311: {path: /opt/x, mode: rw}}", "policy-unknown-key"),
        ("{py311: /opt/python-3.11}", "{py311: [x]}", "policy-type"),
        ("callers: {}", "callers: {}\nworkspace: {}", "policy-unknown-key"),
    ],
)
def test_hostile_site_gets_its_error(old: str, new: str, id: str) -> None:
    assert old in SITE
    assert refused(LOADER.site, document(SITE.replace(old, new))).id == id


def test_site_error_never_shows_a_value_of_the_environment() -> None:
    error = refused(LOADER.site, document(SITE.replace("TZ: UTC", f"TZ: {'hunter2' * 20_000}, PGPASSWORD: [hunter2]")))
    assert [one.id for one in (error, *error.others)] == ["policy-length", "policy-type"]
    assert all("hunter2" not in one.message for one in (error, *error.others))


def test_loader_reports_every_fault_of_a_file_in_order() -> None:
    text = PROFILE.replace("mode: none", "mode: net").replace("64MiB", "64MB").replace("launcher", "lancher")
    error = refused(profile, text)
    assert [(one.id, one.line) for one in (error, *error.others)] == [
        ("policy-missing-key", 1),
        ("policy-unknown-key", 4),
        ("policy-value", 8),
        ("policy-pattern", 12),
    ]


@pytest.mark.parametrize("root", ["null", "[]", "x", "7", "true"])
def test_root_that_is_no_mapping_is_a_type_error(root: str) -> None:
    assert refused(profile, root).id == "policy-type"


@pytest.mark.parametrize("kind", ["profile", "adapter", "site", "levels", "named_list", "approval"])
def test_payloads_are_refused_in_every_format(kind: str) -> None:
    load = (lambda one: LOADER.profile(one, {})) if kind == "profile" else getattr(LOADER, kind)
    rows = [json.loads(line) for line in PAYLOADS.read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["id"] in {"Y06", "Y07", "Y08", "Y10", "Y15", "Y16", "Y18", "Y21"}]
    rows = [row for row in rows if (row["id"], row["n"]) != ("Y21", 5)]  # a large file: its caller asks before reading
    assert len(rows) == 42
    for row in rows:
        data = base64.b64decode(row["data"])
        error = refused(lambda data: load(read(data, source="x", family="policy", syntax="yaml")), data)
        assert error.id in row["expect"], row


# -- extends (Y23)


def test_child_states_only_what_it_changes() -> None:
    loaded = child("limits: {wall_clock: 30m}\nenvironment: {allowed_keys: []}\nprovider: none")
    parent = profiles()["sandbox-v1"]
    assert loaded == parent.replace(
        id="mine-v1", title="", extends="sandbox-v1", limits=parent.limits.replace(wall_clock=1_800_000),
        environment=parent.environment.replace(allowed_keys=()),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "at", "new", "old"),
    [
        ("limits: {wall_clock: 2h}", "limits.wall_clock", "2h", "1h"),
        ("limits: {processes: null}", "limits.processes", "null", "1024"),
        ("limits: {tmp: 1025MiB}", "limits.tmp", "1025MiB", "1GiB"),
        ("network: {mode: host}", "network.mode", "host", "none"),
        ("launcher: local", "launcher", "local", "bwrap"),
        ("environment: {fixed: {LANG: hunter2}}", "environment.fixed.LANG", "(not shown)", "(not shown)"),
        ("process: {seccomp: none}", "process.seccomp", "none", "default"),
        ("process: {capabilities: [CAP_CHOWN]}", "process.capabilities", '["CAP_CHOWN"]', "[]"),
        (
            "provider: {requests: 1, request_bytes: 1KiB, response_bytes: 1KiB, tokens: 1, deadline: 1s}",
            "provider",
            '{"deadline":1000,"request_bytes":1024,"requests":1,"response_bytes":1024,"tokens":1}',
            "null",
        ),
    ],
)
def test_child_that_widens_is_refused_with_field_and_values(text: str, at: str, new: str, old: str) -> None:
    error = refused(child, text)
    message = f"`{at}` is `{new}` where `sandbox-v1`, which it extends, has `{old}`; allowed here: the same or narrower"
    assert (error.id, error.line, error.message) == ("policy-widened", 4, message)


def test_every_widening_is_reported() -> None:
    error = refused(child, "network: {mode: host}\nargv: listed\nroot: {system: host}\nlimits: {tmp: 2GiB}")
    assert [one.message.split(" ")[0] for one in (error, *error.others)] == [
        "`root.system`",
        "`network.mode`",
        "`limits.tmp`",
    ]


@pytest.mark.parametrize(
    ("parent", "shown", "hint"),
    [
        ("mine-v1", "mine-v1", "allowed here: `logical-v1`, `sandbox-v1`, `workspace-v1`"),
        ("../x", "../x", "allowed here: `logical-v1`, `sandbox-v1`, `workspace-v1`"),
        ("/etc/passwd", "/etc/passwd", "allowed here: `logical-v1`, `sandbox-v1`, `workspace-v1`"),
        ("sandbox-v3", "sandbox-v3", "did you mean `sandbox-v1`"),
        ('"sandbox-v1\\n"', r"sandbox-v1\x0a", "did you mean `sandbox-v1`"),
    ],
)
def test_unknown_parent_is_refused(parent: str, shown: str, hint: str) -> None:
    error = refused(child, "", parent)
    message = f"`extends` is `{shown}`, which is no other profile; {hint}"
    assert (error.id, error.message, error.line) == ("policy-unknown-profile", message, 3)


def test_parent_of_another_type_is_refused() -> None:
    error = refused(child, "", "[sandbox-v1]")
    assert (error.id, error.message) == ("policy-type", "`extends` is a list; allowed here: text or null")


def extending(id: str, parent: str, rest: str = "") -> Document:
    return document(f"prespawn: profile/v1\nid: {id}\nextends: {parent}\n{rest}\n")


def test_profiles_extend_each_other_in_any_order() -> None:
    loaded = LOADER.profiles(
        [extending("c-v1", "b-v1", "limits: {tmp: 1MiB}"), extending("b-v1", "sandbox-v1", "limits: {tmp: 2MiB}")],
        profiles(),
    )
    assert {id: one.limits.tmp for id, one in loaded.items()} == {"b-v1": 2 << 20, "c-v1": 1 << 20}


def test_grandchild_may_not_widen_its_parent() -> None:
    found = [extending("b-v1", "sandbox-v1", "limits: {tmp: 1MiB}"), extending("c-v1", "b-v1", "limits: {tmp: 2MiB}")]
    error = refused(LOADER.profiles, found, profiles())
    assert (error.id, error.message.split(";")[0]) == (
        "policy-widened", "`limits.tmp` is `2MiB` where `b-v1`, which it extends, has `1MiB`",
    )  # fmt: skip


@pytest.mark.parametrize("ring", [["a-v1"], ["a-v1", "b-v1"], ["a-v1", "b-v1", "c-v1"]])
def test_cycle_is_refused(ring: list[str]) -> None:
    found = [extending(id, parent) for id, parent in zip(ring, [*ring[1:], ring[0]], strict=True)]
    error = refused(LOADER.profiles, found, profiles())
    assert {one.id for one in (error, *error.others)} == {"policy-unknown-profile"}
    assert len(error.others) == len(ring) - 1


def test_second_profile_of_a_name_is_refused() -> None:
    error = refused(LOADER.profiles, [document(PROFILE), document(PROFILE)], {})
    assert (error.id, error.message) == ("policy-duplicate-id", "there is a profile `sandbox-v9` already")


def test_shipped_profile_cannot_be_redefined() -> None:
    error = refused(LOADER.profiles, [document(PROFILE.replace("sandbox-v9", "sandbox-v1"))], profiles())
    assert (error.id, error.message, error.line) == (
        "policy-duplicate-id",
        "there is a profile `sandbox-v1` already",
        2,
    )


# -- nobody overrides a core blocker (Y23)


@pytest.mark.parametrize(
    "line",
    [
        "blockers: {execute-cwd-mismatch: ignore}",
        "blockers: [execute-cwd-mismatch]",
        "blockers: [exec/execute-cwd-mismatch]",
        "overrides: {execute-cwd-mismatch: ignore}",
        "overrides: [{id: execute-cwd-mismatch}]",
        "execute-cwd-mismatch: ignore",
        "tools: {a: {b: [{execute-cwd-mismatch: pass}]}}",
    ],
)
def test_adapter_cannot_override_a_core_blocker(line: str) -> None:
    error = refused(LOADER.adapter, document(f"{ADAPTER}{line}\n"))
    assert (error.id, error.line) == ("policy-cannot-override-core", 7)
    assert "names the core blocker `" in error.message
    assert error.message.endswith("execute-cwd-mismatch`, which nobody overrides; leave it out")


@pytest.mark.parametrize("load", [profile, lambda text: LOADER.site(document(text))])
def test_other_trusted_files_cannot_override_one_either(load: Any) -> None:
    text = PROFILE if load is profile else SITE
    assert refused(load, f"{text}overrides: {{declared-file-missing: never}}\n").id == "policy-cannot-override-core"


def test_adapter_blockers_stand_below_its_own_name() -> None:
    assert LOADER.adapter(document(f"{ADAPTER}blockers: [exec/no-terminal]\n")).blockers == ("exec/no-terminal",)
    error = refused(LOADER.adapter, document(f"{ADAPTER}blockers: [exec/a, pi/b]\n"))
    assert (error.id, error.message, error.column) == ("policy-value", "`pi/b` is not below `exec/`", 20)
    assert refused(LOADER.adapter, document(f"{ADAPTER}blockers: [no-terminal]\n")).id == "policy-pattern"


# -- levels and lists

LEVELS = """\
prespawn: levels/v1
base: low
boundaries: {cwd: where it starts}
levels:
  - {id: none-v, title: nothing, claims: []}
  - {id: low, title: some, claims: [{id: a, boundary: cwd, strength: observed, confirmed: check, declared: null}]}
"""


def test_levels_load_in_their_order() -> None:
    levels = LOADER.levels(document(LEVELS))
    assert (levels.rank("none-v"), levels.rank("low"), levels.base) == (0, 1, "low")
    assert levels.levels[1].claims[0].declared is None


@pytest.mark.parametrize(
    ("old", "new", "id", "message"),
    [
        ("base: low", "base: high", "policy-value", "`base` is `high`; allowed here: `none-v`, `low`"),
        (
            "boundary: cwd",
            "boundary: net",
            "policy-value",
            "`levels[1].claims[0].boundary` is `net`; allowed here: `cwd`",
        ),
        ("id: none-v", "id: low", "policy-value", "`levels[1].id` is `low`, which stands in the list before; keep one"),
        ("strength: observed", "strength: strong", "policy-value", None),
        ("declared: null", "declared: [x]", "policy-type", None),
    ],
)
def test_levels_that_refer_to_nothing_are_refused(old: str, new: str, id: str, message: str | None) -> None:
    error = refused(LOADER.levels, document(LEVELS.replace(old, new)))
    assert error.id == id
    assert error.message == message or message is None


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("", "policy-length"),
        ("names: []", "policy-length"),
        ('names: [""]', "policy-length"),
        ("prefixes: ['']", "policy-length"),
        ("names: [A]\nignore_case: true", "policy-value"),
        ("shapes: [{name: x, pattern: '('}]", "policy-pattern"),
        ("names: [a, a]", "policy-duplicate-item"),
    ],
)
def test_list_that_does_not_mean_what_it_says_is_refused(text: str, id: str) -> None:
    assert refused(LOADER.named_list, document(f"prespawn: list/v1\nid: x\ntitle: t\n{text}\n")).id == id
