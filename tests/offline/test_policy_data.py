"""The shipped data: what stands in the lists, profiles and levels, and that nothing in them refers to nothing."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from prespawn.policy import shipped
from prespawn.policy.canonical import digest
from prespawn.policy.catalogue import adapters, built_in_site, levels, named_lists, profiles
from prespawn.policy.codec import encode
from prespawn.policy.levels import STRENGTHS

LISTS = named_lists()
ROWS = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data" / "payloads.jsonl").read_text("utf-8").splitlines()
]


def words(text: str) -> list[str]:
    return text.split()


def keys(*rows: str) -> list[str]:
    return [key for row in ROWS if row["id"] in rows for key in row["data"]]


# -- environment


@pytest.mark.parametrize("key", keys("E02", "E03"))
def test_loader_list_holds_every_payload(key: str) -> None:
    assert LISTS["env-loader"].holds(key)


RELATIVES = words(
    """
    LD_DEBUG LD_BIND_NOT DYLD_INSERT_LIBRARIES HOSTALIASES RES_OPTIONS MALLOC_CONF BASH_FUNC_x%% BASH_XTRACEFD
    BASHOPTS PS1 CDPATH ZDOTDIR FPATH SHELL PATH PYTHONUSERBASE PYTHONINSPECT PYTEST_ADDOPTS PERLLIB PERL_MM_OPT
    RUBYLIB RUBYSHELL GEM_PATH BUNDLE_GEMFILE NODE_EXTRA_CA_CERTS NODE_V8_COVERAGE TS_NODE_PROJECT _JAVA_OPTIONS
    JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS DOTNET_STARTUP_HOOKS CORECLR_PROFILER_PATH COMPlus_EnableDiagnostics
    LUA_INIT R_PROFILE_USER JULIA_LOAD_PATH GOFLAGS RUSTC_WRAPPER CARGO_BUILD_RUSTC CC CXX CFLAGS LDFLAGS
    GCC_EXEC_PREFIX LIBRARY_PATH MAKEFLAGS CMAKE_TOOLCHAIN_FILE PKG_CONFIG_PATH GIT_SSH_COMMAND GIT_CONFIG_COUNT
    GIT_EXTERNAL_DIFF GIT_PAGER MANPAGER SYSTEMD_PAGER LESS LESSCLOSE LESSKEYIN VISUAL SUDO_EDITOR BROWSER
    GH_BROWSER SUDO_ASKPASS SSH_ASKPASS VIMINIT EXINIT TAR_OPTIONS RSYNC_RSH CVS_RSH SVN_SSH HGRCPATH
    FZF_DEFAULT_COMMAND RIPGREP_CONFIG_PATH PARALLEL GTK_MODULES QT_PLUGIN_PATH OPENSSL_CONF OPENSSL_ENGINES
    TERMINFO TERMCAP XDG_CONFIG_HOME ASAN_SYMBOLIZER_PATH TEXMFCNF AWKLIBPATH ERL_FLAGS GHCRTS OCAMLRUNPARAM
    """
)
DATA_ONLY = words(
    """
    LANG LC_ALL LC_CTYPE LANGUAGE TZ TERM COLUMNS LINES HOME USER LOGNAME TMPDIR CI DEBUG NO_COLOR FORCE_COLOR
    CLICOLOR COLORTERM NODE_ENV RUST_LOG RUST_BACKTRACE SOURCE_DATE_EPOCH DJANGO_SETTINGS_MODULE APP_ENV LOG_LEVEL
    LDX path Path pythonpath OLD PGDATABASE HOSTNAME LS_COLORS WORKERS MAX_TOKENS FEATURE_FLAGS TEST_SEED
    """
)


@pytest.mark.parametrize("key", RELATIVES)
def test_loader_list_holds_relatives(key: str) -> None:
    assert LISTS["env-loader"].holds(key)


@pytest.mark.parametrize("key", [*keys("E05", "E06"), *(key.lower() for key in keys("E05", "E06"))])
def test_exposure_list_holds_every_payload_in_any_case(key: str) -> None:
    assert LISTS["env-host-exposure"].holds(key)


OPENINGS = words(
    """
    Https_Proxy CGI_HTTP_PROXY RSYNC_PROXY SOCKS_SERVER GPG_AGENT_INFO FOO_AUTH_SOCK DBUS_SYSTEM_BUS_ADDRESS
    CONTAINER_HOST PODMAN_USERNS CONTAINERD_ADDRESS KUBERNETES_SERVICE_HOST XAUTHORITY SESSION_MANAGER PULSE_SERVER
    NOTIFY_SOCKET LISTEN_FDS TMUX STY VSCODE_IPC_HOOK_CLI SSH_CONNECTION KRB5CCNAME GNUPGHOME AWS_SECRET_ACCESS_KEY
    AZURE_CLIENT_SECRET GCLOUD_PROJECT GITHUB_TOKEN ACTIONS_RUNTIME_TOKEN CI_JOB_TOKEN VAULT_ADDR
    NPM_CONFIG_USERCONFIG npm_config__authToken NODE_AUTH_TOKEN PIP_INDEX_URL TWINE_PASSWORD PGPASSFILE PGPASSWORD
    DATABASE_URL REDIS_URL SENTRY_DSN MYSQL_PWD OPENAI_API_KEY ANTHROPIC_BASE_URL LETTA_API_KEY HF_TOKEN MY_SECRET
    SMTP_PASSWORD STRIPE_SECRET_KEY SUDO_COMMAND WSL_INTEROP
    """
)


@pytest.mark.parametrize("key", OPENINGS)
def test_exposure_list_holds_relatives(key: str) -> None:
    assert LISTS["env-host-exposure"].holds(key)


@pytest.mark.parametrize("key", DATA_ONLY)
def test_neither_list_holds_a_key_that_only_carries_data(key: str) -> None:
    assert not LISTS["env-loader"].holds(key)
    assert not LISTS["env-host-exposure"].holds(key)


def test_no_profile_or_site_lets_a_key_of_the_two_lists_pass() -> None:
    for profile in profiles().values():
        for key in (*profile.environment.fixed, *profile.environment.allowed_keys):
            assert not LISTS["env-loader"].holds(key)
            assert not LISTS["env-host-exposure"].holds(key)
    assert built_in_site().env == {}


# -- credentials

SECRETS = {
    "a model provider's key": ["sk-proj-abcdefghijklmnopqrstuvwx", "key sk-ant-api03-" + "a" * 30, "gsk_" + "a1" * 20],
    "a GitHub token": ["gho_" + "a" * 36, "ghs_" + "b" * 36, "https://x@github.com?t=ghu_" + "c" * 36],
    "an AWS access key": ["ASIA" + "ABCD1234" * 2],
    "a Slack token": ["xoxp-1234567890-abc", "https://hooks.slack.com/services/T0/B0/x"],
    "a package registry token": ["npm_" + "a" * 36, "pypi-AgEIcHlwaS5vcmcCJ"],
    "a payment key": ["sk_live_" + "a1" * 8, "rk_test_" + "a1" * 8],
    "a service token": ["SG." + "a" * 22 + "." + "b" * 43, "hvs." + "C" * 24],
    "a JSON web token": ["Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "eyJhbGciOiJub25lIn0.eyJhIjoxfQ"],
    "a key or certificate block": [
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl",
        "x\n-----BEGIN PGP PRIVATE KEY BLOCK-----",
    ],
    "an address with a password": [
        "amqp://guest:guest@mq:5672/",
        "HTTPS://u:p%40@h",
        "redis://:pw@cache/0",
        "http://u:p@127.0.0.1:1",
    ],
    "an authorization header": ["Authorization: Basic dTpw", "bearer abcdefghijklmnop1234"],
    "a password in a setting": [
        "Server=db;Password=hunter2",
        "host=db password=hunter2 user=x",
        "machine h login u password p",
    ],
    "a password hash": ["$6$saltsalt$" + "a" * 40, "$2b$12$" + "a" * 53],
    "a long hexadecimal secret": ["a" * 40, "0123456789ABCDEF" * 4, "key=" + "0f" * 20],
    "a long random secret": ["aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7d"],
}
ORDINARY = [
    "C.UTF-8",
    "en_US.UTF-8",
    "UTC",
    "Europe/Berlin",
    "xterm-256color",
    "screen.xterm-256color",
    "1.2.3",
    "v10.20.30-rc.1+build.5",
    "3.11.7",
    "true",
    "0",
    "development",
    "/usr/local/bin:/usr/bin:/bin",
    "/srv/agent/repo/src/login.py",
    "src/login.py",
    "deadbeef",
    "67f4580",
    "0123456789abcdef0123456789abcde",
    "123e4567-e89b-12d3-a456-426614174000",
    "https://example.org/a/b?c=d#e",
    "http://localhost:8080/path@v1",
    "registry:5000/image:tag",
    "git@github.com:owner/repo.git",
    "user@example.org",
    "80x24",
    "2026-11-30T22:10:37Z",
    "sha256:" + "0" * 64,
    "sk-learn",
    "task-force-1",
    "eyJ",
    "-----",
    "Basic authentication is off",
    "token",
    "password",
    "no password needed",
    "AKIA",
    "ghp_short",
    "a=b,c=d",
    "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20",
    "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
    "this-is-a-long-slug-of-lower-case-words-without-numbers",
    "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35",
    "postgres://db/name",
    "ssh://git@host/repo",
    "file:///srv/x",
    "9999999999999999999999",
]


@pytest.mark.parametrize("value", [value for row in ROWS if row["id"] == "E07" for value in row["data"].values()])
def test_shapes_find_every_payload(value: str) -> None:
    assert LISTS["credential-shapes"].shape_of(value) is not None


@pytest.mark.parametrize(("shape", "value"), [(shape, value) for shape, found in SECRETS.items() for value in found])
def test_shapes_find_relatives_and_name_them(shape: str, value: str) -> None:
    assert LISTS["credential-shapes"].shape_of(value) == shape


@pytest.mark.parametrize("value", ORDINARY)
def test_shapes_pass_ordinary_values(value: str) -> None:
    assert LISTS["credential-shapes"].shape_of(value) is None


def test_shapes_pass_what_profiles_fix() -> None:
    for profile in profiles().values():
        assert {LISTS["credential-shapes"].shape_of(value) for value in profile.environment.fixed.values()} <= {None}


@pytest.mark.parametrize(
    "value",
    [
        "a" * 200_000,
        "a." * 100_000,
        "a:" * 100_000,
        "a://:" * 40_000,
        "://" * 70_000,
        "eyJ" * 70_000,
        "Aa0_" * 50_000,
        "a=" * 100_000,
    ],
)
def test_shapes_take_time_in_proportion(value: str) -> None:
    before = process_time()
    LISTS["credential-shapes"].shape_of(value[:4096])
    short = process_time() - before
    before = process_time()
    LISTS["credential-shapes"].shape_of(value[:65536])
    assert process_time() - before < 64 * short + 0.25  # 16 times the length; a square would be 256


@pytest.mark.parametrize(
    "name", [".ssh", ".gnupg", ".aws", ".kube", ".docker", ".netrc", ".git-credentials", "id_ed25519"]
)
def test_workspace_list_holds_what_makes_a_home(name: str) -> None:
    assert LISTS["credential-entries"].holds(name)


@pytest.mark.parametrize(
    "name", [".env", ".npmrc", ".git", ".github", ".venv", ".config", "src", "README.md", ".cargo", ".vscode"]
)
def test_workspace_list_passes_what_projects_have(name: str) -> None:
    assert not LISTS["credential-entries"].holds(name)


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        "id_rsa",
        ".npmrc",
        ".git-credentials",
        ".aws/credentials",
        "server.pem",
        "tls.key",
        "deploy_ed25519",
        ".kube/config",
    ],
)
def test_lease_list_holds_files_with_credentials(name: str) -> None:
    assert LISTS["credential-files"].holds(name)


@pytest.mark.parametrize(
    "name", [".env.example", "main.py", "credentials.md", "key.py", "pem.txt", "package.json", "settings.xml"]
)
def test_lease_list_passes_other_files(name: str) -> None:
    assert not LISTS["credential-files"].holds(name)


# -- mounts and fields


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/proc",
        "/proc/self/root",
        "/sys",
        "/sys/fs/cgroup",
        "/dev",
        "/dev/shm",
        "/run",
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/user/1000/podman/podman.sock",
        "/run/crio/crio.sock",
        "/run/dbus/system_bus_socket",
        "/home",
        "/root",
        "/etc",
        "/srv/x/docker.sock",
        "/home/u/.ssh",
        "/home/u/.docker",
        "/tmp/.X11-unix",
        "/var/lib/docker",
    ],
)
def test_forbidden_mounts_hold_what_opens_the_host(path: str) -> None:
    assert LISTS["forbidden-mounts"].holds(path)


@pytest.mark.parametrize(
    "path", ["/opt/python-3.11", "/usr/lib/jvm/java-17", "/home/u/.pyenv/versions/3.11.7", "/procs", "/runner"]
)
def test_forbidden_mounts_pass_a_version_directory(path: str) -> None:
    assert not LISTS["forbidden-mounts"].holds(path)


def test_every_socket_of_a_runtime_or_its_directory_is_forbidden_as_a_mount() -> None:
    mounts = LISTS["forbidden-mounts"]
    above = {name: {name, *map(str, Path(name).parents)} - {"/"} for name in LISTS["runtime-sockets"].names}
    assert [name for name, paths in above.items() if not any(map(mounts.holds, paths))] == []


def names_of(table: Any) -> set[str]:
    """Return every key that a format has, at any depth."""
    found: set[str] = set()
    for rule in table:
        if rule[0] == "dict":
            found |= set(rule[1]).union(*(names_of(field[1]) for field in rule[1].values()))
        elif rule[0] == "list":
            found |= names_of(rule[1])
    return found


def test_no_key_of_a_declaration_is_forbidden() -> None:
    known = names_of(shipped.TABLES["declaration/v1"])
    assert {"argv", "allowed_paths", "prompt", "intent"} < known
    assert not known & set(LISTS["forbidden-fields"].names)


@pytest.mark.parametrize(
    "name",
    words(
        """
        image entrypoint mount mounts volumes binds env environment uid gid user cap_add capabilities privileged
        devices network network_mode runtime security_opt host_path root writable_roots extension extensions
        provider_url base_url route credential credentials api_key budget max_tokens limits seccomp sandbox capAdd
        networkMode securityOpt hostPath writableRoots providerUrl baseUrl apiKey maxTokens env_file gpus pid_mode
        ipc tmpfs sysctls launcher quotas provider broker_budget extension_path runtime_flags image_id entry_point
        cap-add
        """
    ),
)
def test_forbidden_fields_hold_what_no_declaration_brings(name: str) -> None:
    assert LISTS["forbidden-fields"].holds(name)


# -- levels

SEVEN = ("cwd", "declaredFiles", "envKeys", "logPath", "registry", "executionPreview", "fileContract")
LEVELS = levels()
CLAIMS = {level.id: level.claims for level in LEVELS.levels}


def test_levels_are_the_five_in_their_order() -> None:
    assert [level.id for level in LEVELS.levels] == ["unknown", "logical", "workspace", "worktree", "container"]
    assert LEVELS.base == "logical"


def test_boundaries_are_the_eighteen() -> None:
    assert tuple(LEVELS.boundaries) == (
        *SEVEN, "image", "mounts", "network", "process", "resources", "credentials", "provider", "session", "artifacts",
        "lifecycle", "policy",
    )  # fmt: skip


def test_logical_claims_the_seven_boundaries_by_the_check() -> None:
    assert [(claim.boundary, claim.strength, claim.confirmed, claim.declared) for claim in CLAIMS["logical"]] == [
        (boundary, "observed", "check", None) for boundary in SEVEN
    ]


def test_container_claims_what_the_kernel_must_show() -> None:
    by_strength: dict[str, list[str]] = {strength: [] for strength in STRENGTHS}
    for claim in CLAIMS["container"]:
        by_strength[claim.strength].append(claim.id)
    assert by_strength == {
        "declared": [],
        "observed": ["runtime-digest", "root-identity", "filter-bytes", "artifact-policy"],
        "attested": [],
        "exercised": ["root", "mounts", "binds", "network", "namespaces", "capabilities", "no-new-privs", "seccomp"],
    }


def test_worktree_is_confirmed_in_the_terminal_receipt_alone() -> None:
    assert {(claim.strength, claim.confirmed) for claim in CLAIMS["worktree"]} == {("observed", "terminal")}


def references(condition: Any) -> set[str]:
    if isinstance(condition, dict):
        ((word, argument),) = condition.items()
        if word in ("all", "any"):
            return set().union(*map(references, argument))
        return references(argument) if word == "not" else {argument if isinstance(argument, str) else argument["value"]}
    raise AssertionError(condition)


def test_conditions_of_claims_refer_to_fields_that_every_profile_has() -> None:
    conditions = [claim.declared for claims in CLAIMS.values() for claim in claims if claim.declared is not None]
    assert len(conditions) == 15
    for reference in set().union(*map(references, conditions)):
        root, *path = reference.split(".")
        assert root == "profile"
        for profile in profiles().values():
            value: Any = profile
            for name in path:
                value = getattr(value, name)


def test_words_for_levels_in_the_schemas_are_those_of_the_table() -> None:
    order = tuple(level.id for level in LEVELS.levels)
    fields = shipped.AUTHORITY["profile/v1"][1]["level"][1]
    assert fields["promises"] == ("ordered", order[1:])
    assert fields["minimum"] == ("ordered", order[:0:-1])
    assert shipped.AUTHORITY["adapter/v1"][1]["level_at_most"] == ("ordered", order)


# -- profiles, adapters, the built-in site


def test_shipped_profiles_carry_their_digests() -> None:
    for id, profile in {**profiles(), **adapters()}.items():
        assert shipped.DIGESTS[id] == digest(encode(profile))


def test_everyday_sandbox_is_what_its_page_says() -> None:
    profile = profiles()["sandbox-v1"]
    assert (profile.launcher, profile.network.mode, profile.root.system) == ("bwrap", "none", "read-only")
    assert (profile.workspace.access, profile.workspace.git, profile.workspace.source) == ("write", "read-only", "site")
    assert (profile.process.capabilities, profile.process.no_new_privs, profile.process.user_namespaces) == (
        (),
        True,
        "none",
    )


def test_leased_workspace_profile_answers_every_requirement() -> None:
    profile = profiles()["workspace-v1"]
    assert None not in (value for _, value in profile.limits)
    assert (profile.workspace.source, profile.state.access, profile.network.mode) == ("lease", "write", "broker")
    assert (profile.quotas.workspace.bytes, profile.quotas.workspace.inodes) == (8 << 30, 500_000)
    assert (profile.provider.requests, profile.provider.deadline) == (400, 3_600_000)
    assert profile.activation.requires == ("quota", "canary", "launcher")
    assert len(profile.proves) == 16
    assert profile.environment.allowed_keys == ()


def test_host_profile_runs_listed_vectors_and_promises_nothing_more() -> None:
    profile = profiles()["logical-v1"]
    assert (profile.argv, profile.level.promises, profile.root.system, profile.network.mode) == (
        "listed",
        "logical",
        "host",
        "host",
    )
    assert (profile.process.uid, profile.process.seccomp) == ("caller", "none")


def test_built_in_site_activates_the_everyday_sandbox_alone() -> None:
    site = built_in_site()
    assert (site.state_dir, site.activated) == ("~/.local/state/prespawn", ("sandbox-v1",))
    assert [(pair.adapter, pair.profile) for pair in site.pairs] == [("exec@1", "sandbox-v1")]
    assert {name: (one.root, one.reports) for name, one in site.workspaces.items()} == {"main": (".", "reports")}
    assert site.approvals.driver_may_approve == "blocker-free"
    assert "sandbox-v1" in adapters()["exec@1"].profiles
