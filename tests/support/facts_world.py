"""What the tests of facts stand on: lists, a profile, a site, real trees, and a second identity where there is root."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prespawn import kernel
from prespawn.checker.declaration import declaration
from prespawn.facts import gather
from prespawn.policy.bundle import Policy
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.levels import Levels
from prespawn.policy.lists import NamedList, Shape
from prespawn.policy.profile import (
    ActivationRule,
    EnvironmentRule,
    EvidenceRule,
    LevelRange,
    Limits,
    NetworkRule,
    OutputRule,
    ProcessRule,
    Profile,
    RootRule,
    WorkspaceRule,
)
from prespawn.policy.site import Site, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prespawn.checker.declaration import Declaration
    from prespawn.checker.facts import Facts
    from prespawn.facts import Held

MINE, STRANGER = os.geteuid(), 60002
IS_ROOT = MINE == 0
MOST = 10_000


def _list(id: str, **words: Any) -> NamedList:
    return NamedList(id=id, title=id, **words)


def lists(**changes: NamedList) -> dict[str, NamedList]:
    """Return lists like the shipped ones, short; a keyword replaces one (``_`` for ``-``)."""
    path = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
    tree = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ssl/certs")
    known = {
        "search-path": _list("search-path", names=path),
        "system-tree": _list("system-tree", names=(*tree, "/etc/ld.so.cache")),
        "credential-entries": _list("credential-entries", names=(".ssh", ".aws", ".gnupg")),
        "credential-files": _list(
            "credential-files", names=(".env", "id_rsa", ".npmrc", ".aws/credentials"), suffixes=(".pem",)
        ),
        "credential-shapes": _list(
            "credential-shapes",
            shapes=(
                Shape(name="an api key", pattern=r"\bsk-[A-Za-z0-9-]{16,}"),
                Shape(name="a url", pattern="://[^/]+@"),
            ),
        ),
        "forbidden-mounts": _list(
            "forbidden-mounts", names=("/proc", "/sys", "/dev", "/run", "/etc", "/home"), prefixes=("/proc/", "/sys/")
        ),
        "runtime-sockets": _list(
            "runtime-sockets", names=("/var/run/docker.sock", "/run/docker.sock"), suffixes=("/docker.sock",)
        ),
    }
    return {**known, **{id.replace("_", "-"): replaced for id, replaced in changes.items()}}


def profile(**changes: Any) -> Profile:
    """Return a profile like ``sandbox-v1``."""
    bounds: dict[str, Any] = dict.fromkeys(Limits._fields)
    bounds |= {"wall_clock": 1, "output": 1, "argv": 1, "declared_files": 1, "env_keys": 1, "env_bytes": 1}
    whole: dict[str, Any] = {
        "id": "sandbox-v1", "title": "", "extends": None, "launcher": "bwrap",
        "level": LevelRange(minimum="logical", promises="container"),
        "workspace": WorkspaceRule(access="write", git="read-only", source="site"), "state": ABSENT,
        "root": RootRule(system="read-only"), "network": NetworkRule(mode="none"),
        "process": ProcessRule(
            uid="worker", capabilities=(), no_new_privs=True, seccomp="default", user_namespaces="none"
        ),
        "image": None, "argv": "typed",
        "environment": EnvironmentRule(fixed={"LANG": "C.UTF-8"}, allowed_keys=("TZ", "TERM")),
        "limits": Limits(**bounds), "quotas": ABSENT, "provider": ABSENT,
        "output": OutputRule(log="worker", artifact="none"), "proves": (),
        "evidence": EvidenceRule(canary=ABSENT), "activation": ActivationRule(requires=()), "still_allowed": (),
    }  # fmt: skip
    return Profile(**{**whole, **changes})


LEASED = {"workspace": WorkspaceRule(access="write", git="none", source="lease")}


def policy(site: Site, *profiles: Profile, **changed_lists: NamedList) -> Policy:
    """Return a bundle around a site."""
    known = {each.id: each for each in profiles or (profile(),)}
    levels, words = Levels(base="logical", boundaries={}, levels=()), lists(**changed_lists)
    return Policy(site=site, profiles=known, adapters={}, levels=levels, lists=words, digest="sha256:0")


def declare(**fields: Any) -> Declaration:
    """Return a declaration for ``sandbox-v1`` that asks for nothing."""
    whole = {"profile": "sandbox-v1", "adapter": "exec@1", "declared_files": [], "env_keys": [],
             "file_contract": {"mode": "read-only"}}  # fmt: skip
    return declaration({**whole, **fields})


def payloads(*rows: str) -> list[dict[str, Any]]:
    """Return the hostile inputs of some rows."""
    text = (Path(__file__).parents[1] / "data" / "payloads.jsonl").read_text()
    return [payload for payload in map(json.loads, text.splitlines()) if payload["id"] in rows]


class World:
    """An area with a workspace ``ws``, a state directory ``state`` and what else a test puts there."""

    def __init__(self, top: str) -> None:
        self.top, self.root, self.state = top, f"{top}/ws", f"{top}/state"
        os.mkdir(self.root)
        os.mkdir(self.state, 0o700)
        os.mkdir(f"{self.state}/reports")
        self.site = Site(state_dir=self.state, workspaces={"main": Workspace(root=self.root, reports="reports")})

    def file(self, path: str, text: str = "") -> str:
        """Write a file below the area, with its directories, and return its path."""
        whole = f"{self.top}/{path}"
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w") as file:
            file.write(text)
        return whole

    def directory(self, path: str, mode: int = 0o755) -> str:
        """Make a directory below the area and return its path."""
        whole = f"{self.top}/{path}"
        os.makedirs(whole, exist_ok=True)
        os.chmod(whole, mode)
        return whole

    def link(self, path: str, text: str) -> str:
        """Make a link below the area and return its path."""
        whole = f"{self.top}/{path}"
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        os.symlink(text, whole)
        return whole

    def grant(self, **toolchains: str) -> None:
        """Let the site grant toolchains to the workspace."""
        main = self.site.workspaces["main"].replace(toolchains=tuple(toolchains))
        self.site = self.site.replace(toolchains=toolchains, workspaces={"main": main})

    def lease(self, **paths: str) -> None:
        """Make the workspace a leased one: ``root`` and ``state`` below ``lease_root``."""
        main = Workspace(root=paths["root"], reports="reports", state=paths.get("state"))
        self.site = self.site.replace(lease_root=paths["lease_root"], workspaces={"main": main})

    def held(self, *profiles: Profile, look: dict[str, Any] | None = None, **fields: Any) -> Held:
        """Gather for a declaration of these fields; ``look`` are keywords of ``gather``, lists among them."""
        given = dict(look or {})
        changed = {id: given.pop(id) for id in tuple(given) if id.replace("_", "-") in lists()}
        asked = {"now": 1, "run_id_used": False, "registry": "absent", "most_entries": MOST,
                 "launchers": {"bwrap": ("limits.wall_clock",)}, **given}  # fmt: skip
        return gather(declare(**fields), policy(self.site, *profiles, **changed), **asked)

    def facts(self, *profiles: Profile, look: dict[str, Any] | None = None, **fields: Any) -> Facts:
        """Gather, close, and return the facts."""
        with self.held(*profiles, look=look, **fields) as held:
            return held.facts


@contextmanager
def area() -> Iterator[str]:
    """Make a directory that every account can enter, and remove it whatever became of its modes."""
    top = os.path.realpath(tempfile.mkdtemp(prefix="facts-"))
    os.chmod(top, 0o755)
    try:
        yield top
    finally:
        for directory, below, _ in os.walk(top):
            for path in (f"{directory}/{name}" for name in below):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(top)


def lost(value: object) -> str | None:
    """Return why a value is unknown, or None for one that is known."""
    return value.reason if isinstance(value, Unknown) else None


def as_stranger(ask: Callable[[], Any]) -> Any:
    """Answer in a child that is an ordinary account with no rights of ours; needs root. The answer is plain values."""
    return _in_child(_become_stranger, ask)


def with_own_mounts(ask: Callable[[], Any]) -> Any:
    """Answer in a child whose mounts nobody else sees; needs root. The answer is plain values."""
    return _in_child(kernel.private_mounts, ask)


def _become_stranger() -> None:
    os.setgroups([])
    os.setresgid(STRANGER, STRANGER, STRANGER)
    os.setresuid(STRANGER, STRANGER, STRANGER)


def _in_child(prepare: Callable[[], None], ask: Callable[[], Any]) -> Any:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            prepare()
            answer = ask()
        except BaseException as crash:  # noqa: BLE001  # it is raised again on the other side
            answer = crash
        with open(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pickle.load(pipe)
    os.waitpid(child, 0)
    if isinstance(answer, BaseException):
        raise answer
    return answer
