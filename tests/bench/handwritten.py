"""The same gate as one would write it without rules as data: the yardstick of ``bench_decide``.

Straight-line Python over the same declaration, facts and policy records: it asks every question that the blockers of
the ``check`` pass ask, tells what is unknown from what is wrong, appraises the same claims and returns the same verdict
document. Each number, sentence and exception stands where it is needed, twice if need be: that is what it is fast by,
and why the product is not written so. It is made for bubblewrap's profiles and reads no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prespawn.checker.functions.scripts import sed_executes
from prespawn.policy.canonical import canonical, digest
from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.spelling import is_canonical, is_env_key, is_printable_name, is_run_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prespawn.checker.declaration import Declaration
    from prespawn.checker.facts import Facts
    from prespawn.policy.bundle import Policy
    from prespawn.policy.profile import Profile

LOGICAL = ("cwd", "declaredFiles", "envKeys", "logPath", "registry", "executionPreview", "fileContract")
LEVELS = ("unknown", "logical", "workspace", "worktree", "container")
LIMITS = (
    "wall_clock", "output", "diagnostics", "trace", "processes", "open_files", "file_size", "memory", "cpu", "tmp",
    "home", "shm", "argv", "declared_files", "env_keys", "env_bytes", "tree_entries",
)  # fmt: skip
ENV_KEY = "letters, digits and `_`, not beginning with a digit"
PATTERNS = ["`src/app.py`", "`src/**`", "`**`"]


class Blocked(list[dict[str, Any]]):
    """What was found so far; ``silent`` has the elements for which something more special has failed."""

    def __init__(self) -> None:
        super().__init__()
        self.bad_paths: set[str] = set()
        self.bad_keys: set[str] = set()

    def report(
        self,
        id: str,
        boundary: str,
        field: str,
        found: object,
        allowed: list[Any],
        cause: object,
        operator: str = "never",
    ) -> None:
        """Add a blocker: unknown where its ``cause`` is, nothing where that does not apply."""
        if cause is ABSENT:
            return
        unknown = isinstance(cause, Unknown)
        self.append({
            "id": id, "boundary": boundary, "field": field, "found": None if unknown else encode(found),
            "allowed": allowed, "because": "unknown" if unknown else "fail",
            "reason": cause.reason if isinstance(cause, Unknown) else "", "operator": operator,
        })  # fmt: skip


class HandWritten:
    """One policy, its lists taken apart once."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.site = policy, policy.site
        lists = policy.lists
        self.operators = frozenset(lists["shell-operators"].names)
        self.metacharacters = frozenset(lists["shell-metacharacters"].names)
        self.shells = frozenset(lists["shells"].names)
        self.multi_call = frozenset(lists["multi-call"].names)
        self.wrappers, self.wrapper_prefixes = frozenset(lists["wrappers"].names), lists["wrappers"].prefixes
        self.loader, self.exposure = lists["env-loader"], lists["env-host-exposure"]
        self.loader_names, self.exposure_names = frozenset(self.loader.names), frozenset(self.exposure.names)
        self.code_options = by_program(lists["code-options"].names)
        self.exec_options = by_program(lists["exec-options"].names)
        self.module_options = by_program(lists["module-options"].names)
        self.global_options = by_program(lists["global-options"].names)
        self.value_options = by_program(lists["value-options"].names)
        self.exact_options = by_program(lists["exact-options"].names)
        self.dashless, self.affixes = (frozenset(lists[id].names) for id in ("dashless-options", "program-affixes"))
        self.script_programs = frozenset(lists["script-programs"].names)
        self.pairs = {(pair.adapter, pair.profile) for pair in self.site.pairs}
        self.not_claimed = {
            "unknown": sorted(policy.levels.boundaries),
            "logical": sorted(set(policy.levels.boundaries) - set(LOGICAL)),
        }

    def verdict(self, declaration: Declaration, facts: Facts) -> dict[str, Any]:
        """Return ``verdict/v1`` of the ``check`` pass as a JSON value."""
        profile = self.policy.profiles[declaration.profile]  # type: ignore[index]  # made for known profiles only
        adapter = self.policy.adapters[declaration.adapter]  # type: ignore[index]  # and known adapters
        assert profile.launcher == "bwrap"
        site, blocked = self.site, Blocked()

        # -- policy
        if (adapter.id, profile.id) not in self.pairs or profile.id not in adapter.profiles:
            allowed = [f"{pair.adapter} with {pair.profile}" for pair in site.pairs]
            blocked.report(
                "adapter-profile-not-allowed", "policy", "profile", f"{adapter.id} with {profile.id}", allowed, True
            )
        if profile.id not in site.activated:
            pinned = any(entry.partition("@")[0] == profile.id for entry in site.activated)
            found = f"{profile.id}@{digest(profile)}" if pinned else profile.id
            if found not in site.activated:
                blocked.report("profile-not-activated", "policy", "profile", found, list(site.activated), True)
        if facts.declaration != declaration.digest:
            blocked.report(
                "facts-mismatch", "policy", "facts.declaration", facts.declaration,
                ["the digest that the present verdict shows"], facts.declaration,
            )  # fmt: skip
        for forbidden in declaration.forbidden:
            blocked.report(
                "request-field-forbidden",
                "policy",
                forbidden.at,
                forbidden.name,
                ["the fields of `declaration/v1`"],
                True,
            )
        takes = adapter.takes
        for name, part, given in (
            ("argv", "execution", declaration.execution), ("input", "input", declaration.input),
            ("model", "model", declaration.model), ("session", "session", declaration.session),
        ):  # fmt: skip
            if given is not ABSENT and name not in takes:
                blocked.report(
                    "request-field-not-taken",
                    "policy",
                    part,
                    f"a field that {adapter.id} does not take",
                    list(takes),
                    True,
                )
        inactivatable = False
        for kind in profile.activation.requires:
            if isinstance(facts.evidence, Unknown) or kind not in facts.evidence:
                inactivatable = inactivatable or not isinstance(facts.evidence, Unknown)
                found = f"no evidence `{kind}` on this host"
                blocked.report("profile-not-activatable", "policy", "profile", found, [], facts.evidence)
        if not profile.activation.requires and isinstance(facts.evidence, Unknown):
            blocked.report("profile-not-activatable", "policy", "profile", None, [], facts.evidence)

        # -- the workspace and where the run starts
        asked: Any = declaration.workspace
        workspace = site.workspaces.get(asked) if isinstance(asked, str) else None
        if asked is ABSENT and len(site.workspaces) == 1:
            ((asked, workspace),) = site.workspaces.items()
        if profile.workspace is not ABSENT:
            at = facts.workspace.place
            if workspace is None:
                found = "nothing" if asked is ABSENT else asked
                blocked.report("workspace-unknown", "cwd", "workspace", found, sorted(site.workspaces), True)
            if at.kind != "directory":
                blocked.report("workspace-missing", "cwd", "workspace", at.kind, ["a directory"], at.kind, "once")
            covers, credentials = facts.workspace.covers, facts.workspace.credentials
            forbidden_root = covers != () and covers is not ABSENT
            if forbidden_root:
                only = ["a directory that holds the work and nothing else"]
                blocked.report("workspace-root-forbidden", "cwd", "workspace", covers, only, covers)
                forbidden_root = not isinstance(covers, Unknown)
            if credentials != () and not forbidden_root:
                only = ["a directory without these names at its top"]
                blocked.report(
                    "workspace-holds-credentials", "credentials", "workspace", credentials, only, credentials, "once"
                )
            mounts, git, enterable = facts.workspace.mounts, facts.workspace.git, facts.workspace.enterable
            if mounts != () and not forbidden_root:
                blocked.report("workspace-holds-mount", "mounts", "workspace", mounts, ["a tree on one mount"], mounts)
            if git not in (ABSENT, "directory", "file") and not forbidden_root:
                found, only = (
                    f"a `.git` that is a {git}",
                    ["a directory, a file (as `git worktree` makes one)", "nothing"],
                )
                blocked.report("workspace-git-special", "mounts", "workspace", found, only, git)
            missing = at.kind != "directory" and not isinstance(at.kind, Unknown)
            if enterable not in (ABSENT, True) and not (forbidden_root or missing or workspace is None):
                found, only = f"{at.path}: closed to the worker", ["a directory that its owner may read and enter"]
                blocked.report("workspace-not-enterable", "cwd", "workspace", found, only, enterable)
            self._starts_elsewhere(declaration, facts, blocked, workspace is None)
            sockets = facts.workspace.sockets
            if sockets != () and profile.root.system in ("read-only", "image") and not forbidden_root:
                only = ["a tree without sockets"]
                blocked.report("mount-holds-socket", "mounts", "workspace", sockets, only, sockets, "once")

        # -- names, files, variables, places that the parent writes, the program, the contract
        protected = () if workspace is None else workspace.protected_paths
        self._paths(declaration, blocked)
        self._files(declaration, facts, profile, protected, blocked)
        self._environment(declaration, facts, profile, blocked)
        self._log(declaration, facts, blocked)
        self._registry(declaration, facts, blocked)
        if "argv" in takes:
            self._argv(declaration, facts, profile, blocked)
        self._contract(declaration, protected, blocked)
        self._mounts(facts, blocked)

        # -- the host
        host, runtime = facts.host, facts.runtime
        if (host.worker_uid == 0 and profile.process.uid == "worker") or isinstance(host.worker_uid, Unknown):
            blocked.report(
                "privilege-host-uid-zero", "process", "workspace", "host uid 0 for the worker",
                ["a workspace that an ordinary user owns", "an ordinary user as caller"], host.worker_uid,
            )  # fmt: skip
        owner = facts.workspace.place.owner
        if isinstance(owner, Unknown):
            blocked.report(
                "identity-switch-missing", "process", "runtime", None, ["the program `setpriv` of util-linux"], owner
            )
        elif owner is not ABSENT and host.identity_switch is not True:
            only = ["the program `setpriv` of util-linux"]
            blocked.report("identity-switch-missing", "process", "runtime", "no `setpriv`", only, host.identity_switch)
        if runtime.found is not True:
            only = ["bubblewrap 0.8 or later"]
            blocked.report("bwrap-missing", "process", "runtime", "no `bwrap`", only, runtime.found)
        if runtime.found is not False:
            if runtime.reachable is not True:
                only = ["a program that the worker's user can reach and execute"]
                blocked.report("bwrap-unreachable", "process", "runtime", runtime.path, only, runtime.reachable)
            if runtime.works is not True:
                found, only = "user namespaces refused", ["user namespaces for bubblewrap"]
                blocked.report("user-namespaces-refused", "process", "runtime", found, only, runtime.works, "once")
        if facts.image is not ABSENT and facts.image.present is not True:
            only = ["an image that the site pins by id and that is present"]
            blocked.report("image-missing", "image", "image", facts.image.name, only, facts.image.present)
        if not inactivatable:
            self._enforced(facts, profile, blocked)

        # -- claims, the level, and what the level itself blocks
        answers: dict[str, str] = {}
        for found_one in blocked:
            if answers.get(found_one["boundary"]) != "fail":
                answers[found_one["boundary"]] = found_one["because"]
        claims = claimed(profile, answers)
        unknown = {found_one["id"] for found_one in blocked if found_one["because"] == "unknown"}
        level = self._level(declaration, facts, profile, adapter.level_at_most, claims, unknown)
        self._level_blockers(declaration, facts, level, unknown, blocked)

        blockers: list[dict[str, Any]] = blocked
        if blocked:
            blockers = sorted(blocked, key=lambda one: (one["id"], one["field"], canonical(one["found"])))
        return {
            "prespawn": "verdict/v1",
            "phase": "check",
            "allowed": not blockers,
            "undecided": bool(blockers) and all(one["because"] == "unknown" for one in blockers),
            "run_id": declaration.run_id if isinstance(declaration.run_id, str) else None,
            "workspace": asked if workspace is not None else None,
            "profile": profile.id,
            "adapter": adapter.id,
            "level": level,
            "claims": claims,
            "blockers": list(blockers),
            "accepted": [],
            "not_claimed": self.not_claimed[level["earned"]],
            "digests": {
                "declaration": declaration.digest,
                "policy": self.policy.digest,
                "blockers": digest([[one["id"], one["field"], one["because"]] for one in blockers]),
                "facts": digest(facts),
            },
        }

    def _starts_elsewhere(self, declaration: Declaration, facts: Facts, blocked: Blocked, silent: bool) -> None:
        here, root, given = facts.cwd, facts.workspace.place, declaration.cwd
        if isinstance(given, str):
            numbers = (here.device, here.inode, root.device, root.inode)
            cause: object = next((number for number in numbers if isinstance(number, Unknown)), True)
            if cause is True and (here is ABSENT or root is ABSENT):
                return
            if cause is True and here.inode is not ABSENT and numbers[:2] == numbers[2:]:
                return
        else:
            cause = True
        if not silent:
            allowed = [root.path if isinstance(root.path, str) else None]
            blocked.report("execute-cwd-mismatch", "cwd", "cwd", given, allowed, cause, "once")

    def _paths(self, declaration: Declaration, blocked: Blocked) -> None:
        files = declaration.declared_files
        for index, path in enumerate(files if isinstance(files, list) else ()):
            if isinstance(path, str) and path and not is_printable_name(path):
                blocked.bad_paths.add(f"declared_files[{index}]")
                field = f"declared_files[{index}]"
                blocked.report("path-invalid", "declaredFiles", field, path, ["a printable name"], True)
        for field, path in (("log_path", declaration.log_path), ("registry_path", declaration.registry_path)):
            if isinstance(path, str) and path and not is_printable_name(path):
                blocked.bad_paths.add(field)
                blocked.report("path-invalid", "declaredFiles", field, path, ["a printable name"], True)

    def _files(
        self, declaration: Declaration, facts: Facts, profile: Profile, protected: tuple[str, ...], blocked: Blocked
    ) -> None:
        files, most = declaration.declared_files, profile.limits.declared_files
        if not isinstance(files, list):
            blocked.report(
                "declared-file-invalid", "declaredFiles", "declared_files", files, ["a list of relative paths"], True
            )
            return
        too_many = len(files) > most
        if too_many:
            only = [f"at most {most} files"]
            blocked.report("declared-files-limit", "declaredFiles", "declared_files", "more than the limit", only, True)
        for index, (path, fact) in enumerate(zip(files, facts.declared_files, strict=True)):
            field = f"declared_files[{index}]"
            if field not in blocked.bad_paths:
                self._file(field, path, fact, protected, too_many, blocked)

    def _file(
        self, field: str, path: object, fact: Any, protected: tuple[str, ...], too_many: bool, blocked: Blocked
    ) -> None:
        text = path if isinstance(path, str) else ""
        outside = text.startswith("/") or (".." in text and ".." in text.split("/"))
        if outside or fact.leaves is not False:
            cause = True if outside else fact.leaves
            only = ["a relative path below the workspace root"]
            blocked.report("declared-file-outside-workspace", "declaredFiles", field, path, only, cause, "once")
            if outside or fact.leaves is True:
                return
        invalid = not isinstance(path, str) or not is_canonical(path)
        if invalid and not too_many:
            only = ["a relative path in canonical spelling"]
            blocked.report("declared-file-invalid", "declaredFiles", field, path, only, True)
        for place in protected:
            if not invalid and (text == place or text.startswith(f"{place}/")):
                only = [f"paths outside `{place}`"]
                blocked.report("protected-path-declared", "declaredFiles", field, path, only, True)
        if fact.linked is not False:
            blocked.report(
                "declared-file-symlink", "declaredFiles", field, path, ["a path without links"], fact.linked, "once"
            )
        if fact.present is not True and not invalid and fact.linked is not True:
            blocked.report(
                "declared-file-missing", "declaredFiles", field, path, ["a file that exists"], fact.present, "once"
            )
        if fact.kind != "file":
            blocked.report("declared-file-special", "declaredFiles", field, fact.kind, ["file"], fact.kind, "once")
        if fact.links != 1:
            found = f"{fact.links} names for {path}"
            blocked.report(
                "declared-file-hardlink", "declaredFiles", field, found, ["a file with one name"], fact.links, "once"
            )

    def _environment(self, declaration: Declaration, facts: Facts, profile: Profile, blocked: Blocked) -> None:
        keys, entries, limits = declaration.env_keys, facts.environment, profile.limits
        if not isinstance(keys, list):
            found = "a mapping" if isinstance(keys, dict) else "nothing" if keys is ABSENT else "no list"
            blocked.report("env-key-invalid", "envKeys", "env_keys", found, ["a list of names"], True, "once")
            return
        if isinstance(entries, Unknown):
            self._unseen_environment(entries, blocked)
            return
        if len(keys) > limits.env_keys:
            only = [f"at most {limits.env_keys} keys"]
            blocked.report("env-limit", "envKeys", "env_keys", f"{len(keys)} keys", only, True, "once")
            return
        total = 0
        for entry in entries:
            if isinstance(entry.size, Unknown):
                blocked.report("env-limit", "envKeys", "env_keys", None, [], entry.size, "once")
                break
            total += entry.size + (len(entry.key.encode("utf-8", "surrogatepass")) if isinstance(entry.key, str) else 0)
        if total > limits.env_bytes:
            only = [f"at most {limits.env_bytes} bytes"]
            blocked.report("env-limit", "envKeys", "env_keys", f"{total} bytes", only, True, "once")
            return
        for index, (key, entry) in enumerate(zip(keys, entries, strict=True)):
            self._variable(f"env_keys[{index}]", key, entry, profile, blocked)

    def _unseen_environment(self, cause: Unknown, blocked: Blocked) -> None:
        for id, boundary, field, allowed, operator in (
            ("env-limit", "envKeys", "env_keys", [], "once"),
            ("env-key-invalid", "envKeys", "env_keys", ["a list of names"], "once"),
            ("env-key-loader", "envKeys", "env_keys", ["keys that only carry data"], "never"),
            ("env-key-host-exposure", "envKeys", "env_keys", ["keys that name nothing of the host"], "never"),
            ("env-key-not-allowed", "envKeys", "env_keys", [], "never"),
            ("env-value-credential-shaped", "credentials", "env_keys", ["a value that is no secret"], "once"),
        ):
            blocked.report(id, boundary, field, None, allowed, cause, operator)

    def _variable(self, field: str, key: object, entry: Any, profile: Profile, blocked: Blocked) -> None:
        invalid = not isinstance(key, str) or not is_env_key(key)
        if invalid:
            blocked.report("env-key-invalid", "envKeys", field, key, [ENV_KEY], True, "once")
        if isinstance(entry.valid, Unknown):
            blocked.report("env-key-invalid", "envKeys", "env_keys", None, ["a list of names"], entry.valid, "once")
        elif entry.valid is False:
            found, only = "a value that no environment can hold", ["a value without NUL"]
            blocked.report("env-key-invalid", "envKeys", field, found, only, True, "once")
            invalid = True
        if invalid or not isinstance(key, str):
            return
        lower = key.lower()
        if key not in profile.environment.allowed_keys and key not in profile.environment.fixed:
            only_these = [list(profile.environment.allowed_keys)]
            blocked.report("env-key-not-allowed", "envKeys", field, key, only_these, True)
        elif key in self.loader_names or key.startswith(self.loader.prefixes) or key.endswith(self.loader.suffixes):
            blocked.report("env-key-loader", "envKeys", field, key, ["keys that only carry data"], True)
        elif (
            lower in self.exposure_names
            or lower.startswith(self.exposure.prefixes)
            or lower.endswith(self.exposure.suffixes)
        ):
            only = ["keys that name nothing of the host"]
            blocked.report("env-key-host-exposure", "envKeys", field, key, only, True)
        else:
            if entry.source in ("none", ABSENT) or isinstance(entry.source, Unknown):
                found, only = f"{key} without a value", ["a key for which the site or the profile has a value"]
                blocked.report("env-value-missing", "envKeys", field, found, only, entry.source, "once")
            if entry.shape is not ABSENT:
                found, only = f"a value that looks like {entry.shape}", ["a value that is no secret"]
                blocked.report("env-value-credential-shaped", "credentials", field, found, only, entry.shape, "once")

    def _log(self, declaration: Declaration, facts: Facts, blocked: Blocked) -> None:
        path, log = declaration.log_path, facts.log
        if path is ABSENT or "log_path" in blocked.bad_paths:
            return
        wrong = not isinstance(path, str) or path.startswith("/") or ".." in path.split("/")
        if wrong or log.leaves is not False:
            only = [f"a path below {'unknown' if isinstance(log.root, Unknown) else log.root}"]
            cause = True if wrong else log.leaves
            blocked.report("log-path-outside-workspace", "logPath", "log_path", path, only, cause, "once")
            if cause is True:
                return
        if not is_canonical(str(path)):
            only = ["a relative path in canonical spelling"]
            blocked.report("log-path-invalid", "logPath", "log_path", path, only, True)
            return
        if log.exists is not False:
            only = ["a name that is not there yet"]
            blocked.report("log-path-exists", "logPath", "log_path", path, only, log.exists, "once")
        if log.ready is not True:
            only = ["a path whose directory exists below the reports directory"]
            blocked.report("log-directory-missing", "logPath", "log_path", path, only, log.ready, "once")

    def _registry(self, declaration: Declaration, facts: Facts, blocked: Blocked) -> None:
        state, path, run_id = facts.state, declaration.registry_path, declaration.run_id
        if state.controlled is not True or state.exposed is not ABSENT:
            failed = state.controlled is False or not (state.exposed is ABSENT or isinstance(state.exposed, Unknown))
            unseen = state.controlled if isinstance(state.controlled, Unknown) else state.exposed
            only = ["a directory that the caller alone can write and no worker sees"]
            blocked.report(
                "registry-not-parent-controlled", "registry", "registry_path", state.place.path, only,
                True if failed else unseen,
            )  # fmt: skip
        if state.writable is not True:
            only = ["a directory that the caller can write"]
            blocked.report("registry-not-written", "registry", "registry_path", state.place.path, only, state.writable)
        corrupt = state.registry == "corrupt"
        if corrupt or isinstance(state.registry, Unknown):
            found, only = f"{state.place.path}/registry.db", ["a registry of this version, or none yet"]
            blocked.report("registry-corrupt", "registry", "registry_path", found, only, state.registry)
        if path is not ABSENT and "registry_path" not in blocked.bad_paths:
            wrong = not isinstance(path, str) or path.startswith("/") or ".." in path.split("/")
            if wrong or facts.registry.leaves is not False:
                cause = True if wrong else facts.registry.leaves
                only = [f"a path below {facts.registry.root}"]
                blocked.report(
                    "registry-path-outside-workspace", "registry", "registry_path", path, only, cause, "once"
                )
            elif path != "registry.db":
                blocked.report("registry-path-mismatch", "registry", "registry_path", path, ["registry.db"], True)
        if run_id is not ABSENT:
            if not isinstance(run_id, str) or not is_run_id(run_id):
                only = ["1 to 63 lower-case letters, digits and `-`, not beginning with `-`"]
                blocked.report("run-id-invalid", "registry", "run_id", run_id, only, True)
            elif facts.run_id_used is not False and not corrupt:
                only = ["an id that was never used"]
                blocked.report("run-id-reused", "registry", "run_id", run_id, only, facts.run_id_used)

    def _argv(self, declaration: Declaration, facts: Facts, profile: Profile, blocked: Blocked) -> None:
        argv, before = declaration.argv, len(blocked)
        report = blocked.report
        if isinstance(argv, str):
            only = ["a list of strings that begins with a program"]
            report(
                "execution-preview-shell-interpolation", "executionPreview", "execution.argv", "one string", only, True
            )
            return
        if not isinstance(argv, list) or not argv:
            only = ["a list of strings that begins with a program"]
            found = "an empty list" if isinstance(argv, list) else "nothing"
            report("execution-preview-argv-invalid", "executionPreview", "execution.argv", found, only, True)
            return
        listed = self.site.argv.get(profile.id, ())
        reviewed, size = tuple(argv) in listed, 0
        for index, element in enumerate(argv):
            field = f"execution.argv[{index}]"
            if not isinstance(element, str) or "\0" in element or (index == 0 and not element):
                found = "a string with NUL or a lone surrogate" if element else "an empty string"
                found = found if isinstance(element, str) else "a number"
                only = ["a string without NUL"]
                report("execution-preview-argv-invalid", "executionPreview", field, found, only, True)
                return
            encoded = element.encode("utf-8", "surrogatepass")
            size += len(encoded) + 1
            if not reviewed and index == 0 and not self.metacharacters.isdisjoint(element):
                only = ["a program name or path without blanks and metacharacters"]
                report("execution-preview-shell-interpolation", "executionPreview", field, element, only, True)
            elif not reviewed and index and element in self.operators:
                only = ["an argument that is no shell operator"]
                report("execution-preview-shell-interpolation", "executionPreview", field, element, only, True)
        if size > profile.limits.argv:
            found, only = f"{size} bytes", [f"at most {profile.limits.argv} bytes"]
            report("execution-preview-argv-limit", "executionPreview", "execution.argv", found, only, True)
        if len(blocked) > before:
            return
        if profile.argv == "listed" and not reviewed:
            found = f"{argv[0]} with {len(argv) - 1} argument{'' if len(argv) == 2 else 's'}"
            only = [" ".join(vector) for vector in listed]
            report("execution-preview-not-allowed", "executionPreview", "execution.argv", found, only, True)
            return
        program = facts.program
        if not reviewed:
            given, real = argv[0].rstrip("/").rpartition("/")[2], program.name
            cause: object = True
            found = self._runs_code(given, argv)
            if found:
                found = f"{given}, {found}"
            elif isinstance(real, Unknown):
                cause, found = real, "unknown"
            elif isinstance(real, str) and real not in self.multi_call:
                found = self._runs_code(real, argv)
                found = f"{given} -> {real}, {found}" if found else ""
            if found:
                only = ["a program", "a vector that the site lists whole"]
                field = "execution.argv[0]"
                report("execution-preview-interpreter", "executionPreview", field, found, only, cause, "once")
                if cause is True:
                    return
        if program.found is not True:
            field, only = (
                "execution.argv[0]",
                ["a program on the fixed search path, in a toolchain or in the workspace"],
            )
            report("execution-program-not-found", "executionPreview", field, program.given, only, program.found, "once")
            if program.found is False:
                return
        origin, at_host = program.origin, profile.launcher in ("local", "worktree")
        if origin not in ("search-path", "absolute", "workspace") or (origin == "workspace" and at_host):
            field, only = (
                "execution.argv[0]",
                ["a program of the system or a toolchain, in a sandbox also one of the workspace"],
            )
            report("execution-program-outside", "executionPreview", field, program.given, only, origin, "once")
            if origin is not ABSENT and not isinstance(origin, Unknown):
                return
        if program.executable is not True:
            field, only = "execution.argv[0]", ["a program or a script with `#!` that the worker's user may execute"]
            report(
                "execution-program-not-executable", "executionPreview", field, program.given, only, program.executable
            )

    def _runs_code(self, program: str, argv: list[str]) -> str:
        parts = program.split("-")
        while len(parts) > 1 and parts[0] in self.affixes:
            del parts[0]
        while len(parts) > 1 and (parts[-1] in self.affixes or not parts[-1].strip("0123456789.")):
            del parts[-1]
        bare = "-".join(parts)
        if bare.rstrip("dmtu")[-1:].isdigit():
            bare = bare.rstrip("dmtu")
        for name in dict.fromkeys((program, bare.rstrip("0123456789.-"))):
            if name in self.shells:
                return "a shell"
            if name in self.wrappers or name.startswith(self.wrapper_prefixes):
                return "a wrapper that starts another program"
            words = argv[1:]
            if name in self.dashless and words and not words[0].startswith("-"):
                words[0] = f"-{words[0]}"
            exact, values = self.exact_options.get(name, ()), self.value_options.get(name, ())
            if name in self.code_options:
                leading = words_before_script(words, self.module_options.get(name, ()), values)
                for option in self.code_options[name]:
                    if carried(leading, option, exact, values):
                        return f"an interpreter with `{option}`"
            if name in self.global_options:
                leading = words_before_script(words, (), values)
                for option in self.global_options[name]:
                    if any(carries(word, option, exact) for word in leading):
                        return f"a program that `{option}` makes start another"
            for option in self.exec_options.get(name, ()):
                if carried(words, option, exact, values):
                    return f"a program that `{option}` makes start another"
            if name in self.script_programs and sed_executes(words):
                return "a program whose script starts another"
        return ""

    def _contract(self, declaration: Declaration, protected: tuple[str, ...], blocked: Blocked) -> None:
        mode, paths = declaration.mode, declaration.allowed_paths
        invalid = "file-contract-invalid"
        if mode not in ("read-only", "mutation"):
            found = "nothing" if mode is ABSENT else mode
            blocked.report(invalid, "fileContract", "file_contract.mode", found, ["read-only", "mutation"], True)
        elif mode == "read-only" and paths is not ABSENT and paths != []:
            only = ["nothing beside `read-only`"]
            blocked.report(invalid, "fileContract", "file_contract.allowed_paths", paths, only, True)
        elif mode == "mutation" and (not isinstance(paths, list) or not paths):
            found, only = "nothing" if paths is ABSENT else paths, ["a list that is not empty"]
            blocked.report(invalid, "fileContract", "file_contract.allowed_paths", found, only, True)
        for index, pattern in enumerate(paths if isinstance(paths, list) else ()):
            field = f"file_contract.allowed_paths[{index}]"
            if pattern == "**":
                continue
            base = pattern.removesuffix("/**") if isinstance(pattern, str) else ""
            if not is_canonical(base) or not is_printable_name(base) or any(char in "*?[]{}!\\" for char in base):
                blocked.report(invalid, "fileContract", field, pattern, PATTERNS, True)
                continue
            if ".git" in base.lower().split("/"):
                only = ["paths outside `.git`"]
                blocked.report("file-contract-git-internal", "fileContract", field, pattern, only, True)
            for place in protected:
                if f"{base}/".startswith(f"{place}/") or (base != pattern and f"{place}/".startswith(f"{base}/")):
                    only = [f"paths outside `{place}`"]
                    blocked.report("protected-path-in-contract", "fileContract", field, pattern, only, True)

    def _mounts(self, facts: Facts, blocked: Blocked) -> None:
        for mount in facts.mounts:
            field, place = f"{mount.purpose}[{mount.name}]", mount.place
            if mount.exposes is not ABSENT:
                found = f"{place.given}: {mount.exposes}"
                only = ["a version directory that holds programs and nothing else"]
                blocked.report("mount-forbidden-source", "mounts", field, found, only, mount.exposes, "once")
                if not isinstance(mount.exposes, Unknown):
                    continue
            if place.kind != "directory":
                found, only = f"{place.given}: {place.kind}", ["a directory that exists"]
                blocked.report("mount-source-missing", "mounts", field, found, only, place.kind, "once")
            if mount.inside is not ABSENT and mount.inside is not True:
                only = [f"a directory below {self.site.lease_root}, without a link"]
                blocked.report(
                    "mount-source-outside-lease-root", "mounts", field, place.path, only, mount.inside, "once"
                )
                if mount.inside is False:
                    continue
            if mount.overlaps is not ABSENT:
                found, only = f"{place.path}: shared with {mount.overlaps}", ["trees that share nothing"]
                blocked.report("lease-overlap", "mounts", field, found, only, mount.overlaps, "once")
            if mount.credentials != ():
                only = ["a tree without such files"]
                blocked.report(
                    "lease-contains-credentials",
                    "credentials",
                    field,
                    mount.credentials,
                    only,
                    mount.credentials,
                    "once",
                )

    def _enforced(self, facts: Facts, profile: Profile, blocked: Blocked) -> None:
        enforced, limits, found = facts.runtime.enforces, profile.limits, "no enforcer on this host"
        quotas = () if profile.quotas is ABSENT else ("workspace", "state")
        if isinstance(enforced, Unknown):
            blocked.report("limit-not-enforceable", "resources", "profile.limits", None, [None], enforced)
            if quotas:
                blocked.report("quota-not-enforceable", "resources", "profile.quotas", None, [None], enforced)
            return
        for name in LIMITS:
            if getattr(limits, name) is not None and f"limits.{name}" not in enforced:
                field = f"profile.limits.{name}"
                blocked.report("limit-not-enforceable", "resources", field, found, list(enforced), True)
        for name in quotas:
            if f"quotas.{name}" not in enforced:
                field = f"profile.quotas.{name}"
                blocked.report("quota-not-enforceable", "resources", field, found, list(enforced), True)

    def _level(
        self,
        declaration: Declaration,
        facts: Facts,
        profile: Profile,
        most: str,
        claims: list[dict[str, str]],
        unknown: set[str],
    ) -> dict[str, str]:
        asked, requested = declaration.level, profile.level.minimum
        if asked in LEVELS and LEVELS.index(str(asked)) > LEVELS.index(requested):
            requested = str(asked)
        passed = [claim["result"] == "pass" for claim in claims]
        top = min(LEVELS.index(profile.level.promises), LEVELS.index(most))
        attainable = "logical" if top else "unknown"
        attested = facts.runtime.attests is True
        exercised = attested and not isinstance(facts.evidence, Unknown) and "canary" in facts.evidence
        if top >= 2 and exercised and passed[7] and passed[8]:
            attainable = "workspace"
        if top >= 3 and all(passed[9:12]):
            attainable = "worktree"
        if top >= 4 and exercised and all(passed[12:20]) and all(passed[22:]):
            attainable = "container"
        earned = "logical" if top and not unknown and all(passed[:7]) else "unknown"
        return {"requested": requested, "earned": earned, "attainable": attainable}

    def _level_blockers(
        self, declaration: Declaration, facts: Facts, level: dict[str, str], unknown: set[str], blocked: Blocked
    ) -> None:
        requested, attainable = level["requested"], LEVELS.index(level["attainable"])
        if LEVELS.index(requested) > attainable:
            only = list(LEVELS[1 : attainable + 1])
            blocked.report("isolation-level-insufficient", "policy", "level", requested, only, True)
        if facts.reported is not ABSENT:
            word = facts.reported.level
            if isinstance(word, Unknown):
                blocked.report("isolation-level-overclaimed", "policy", "reported.level", None, [], word, "once")
                unknown.add("isolation-level-overclaimed")
                level["earned"] = "unknown"
            elif word not in LEVELS:
                only = list(LEVELS[1:])
                blocked.report("isolation-level-unknown", "policy", "reported.level", word, only, True, "once")
            elif LEVELS.index(str(word)) > LEVELS.index(level["earned"]):
                only = [level["earned"]]
                blocked.report("isolation-level-overclaimed", "policy", "reported.level", word, only, True, "once")
        if declaration.level is not ABSENT and declaration.level not in LEVELS[1:]:
            only = list(LEVELS[1:])
            blocked.report("isolation-level-unknown", "policy", "level", declaration.level, only, True, "once")
        if unknown:
            reason = Unknown(reason=", ".join(sorted(unknown)))
            blocked.report("isolation-level-unknown", "policy", "level", None, [], reason, "once")


def claimed(profile: Profile, answers: dict[str, str]) -> list[dict[str, str]]:
    """Return every claim of the table, appraised."""
    process, root = profile.process, profile.root.system

    def decided(claim: str, boundary: str) -> dict[str, str]:
        result = answers.get(boundary, "pass")
        return {"claim": claim, "boundary": boundary, "result": result, "strength": "observed", "seen": "facts"}

    def promised(claim: str, boundary: str, holds: bool) -> dict[str, str]:
        result = "pass" if holds else "fail"
        return {"claim": claim, "boundary": boundary, "result": result, "strength": "declared", "seen": "profile"}

    worktree, contained = profile.launcher == "worktree", root in ("read-only", "image")
    return [
        decided("cwd", "cwd"),
        decided("declared-files", "declaredFiles"),
        decided("env-keys", "envKeys"),
        decided("log-path", "logPath"),
        decided("registry", "registry"),
        decided("execution-preview", "executionPreview"),
        decided("file-contract", "fileContract"),
        promised("workspace-root", "cwd", profile.workspace is not ABSENT),
        promised("held-to-workspace", "mounts", profile.workspace is not ABSENT and root != "host"),
        promised("throwaway-checkout", "lifecycle", worktree),
        promised("cleanup", "lifecycle", worktree),
        promised("touched-files", "fileContract", worktree),
        promised("root", "mounts", contained),
        promised("mounts", "mounts", contained),
        promised("binds", "mounts", contained),
        promised("network", "network", profile.network.mode in ("none", "broker")),
        promised("namespaces", "process", process.uid == "worker" and process.user_namespaces == "none"),
        promised("capabilities", "process", not process.capabilities),
        promised("no-new-privs", "process", process.no_new_privs is True),
        promised("seccomp", "process", process.seccomp != "none"),
        decided("runtime-digest", "image"),
        decided("root-identity", "image"),
        promised("filter-bytes", "process", process.seccomp != "none"),
        promised("artifact-policy", "artifacts", profile.output.artifact in ("none", "text")),
    ]


def by_program(entries: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the options of each program of a list of "program option"."""
    options: dict[str, list[str]] = {}
    for entry in entries:
        program, _, option = entry.partition(" ")
        options.setdefault(program, []).append(option)
    return options


def words_before_script(words: list[str], ends: Sequence[str], values: Sequence[str]) -> list[str]:
    """Return what stands up to the script or subcommand, a value after an option passed over."""
    found: list[str] = []
    if words and words[0] in ends:
        return found
    may_be_value = False
    for word in words:
        if word == "--":
            break
        found.append(word)
        if word.startswith("-"):
            may_be_value = not values or word in values
        elif may_be_value:
            may_be_value = False
        else:
            break
    return found


def carried(words: list[str], option: str, exact: Sequence[str], values: Sequence[str]) -> bool:
    """Say whether the steps of an option follow each other among the words."""
    step, _, rest = option.partition(" ")
    if step[0].isalnum():
        places = [at for at, word in enumerate(words_before_script(words, (), values)) if word == step]
    else:
        places = [at for at, word in enumerate(words) if carries(word, step, exact)]
    return any(not rest or carried(words[at + 1 :], rest, exact, ()) for at in places)


def carries(word: str, option: str, exact: Sequence[str]) -> bool:
    """Say whether a word is an option: whole, with a value, abbreviated, or as one of several letters."""
    if word == option or word.startswith(f"{option}="):
        return True
    if "*" in option:
        begins, _, holds = option.partition("*")
        return word.startswith(begins) and holds in word[len(begins) :]
    if option.startswith("--"):
        name = word.partition("=")[0]
        return len(name) > 2 and option.startswith(name) and name not in exact
    return len(option) == 2 and len(word) > 1 and word[0] == "-" and word[1] != "-" and option[1] in word[1:]
