"""What of the host can be reached from inside, beside the launchers of the field: nothing, for root and for a user.

The rows are those of a measured comparison of launchers. Each probe is made against something that is really there and
that the same probe reaches from outside, so that a broken probe shows. The last row is the control inside.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import runtimes
from support.sandboxes import Sandbox, sandbox

from prespawn.gate import Gate
from prespawn.pumps import Streams

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["sandbox"]  # the fixture

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "exposure.txt"
SECRET = "canary-of-the-host"
PROBES = """
import json, os, socket, sys
asked = json.load(open(sys.argv[1]))

def read(path):
    with open(path, "rb") as file:
        return file.read()

def connect(family, address):
    with socket.socket(family) as client:
        client.settimeout(2)
        client.connect(address)
        return True

def written(path):
    with open(path, "wb") as file:
        file.write(b"x")
    return True

probes = {
    "environment of the parent": lambda: any(asked["secret"] in value for value in os.environ.values()),
    "environment of the parent, by way of init": lambda: asked["secret"].encode() in read("/proc/1/environ"),
    "a file of the home": lambda: read(asked["home"]),
    "a key below ~/.ssh": lambda: read(asked["key"]),
    "a file outside the workspace, written": lambda: written(asked["outside"]),
    "a server on the host's 127.0.0.1": lambda: connect(socket.AF_INET, ("127.0.0.1", asked["port"])),
    "a unix socket outside the workspace": lambda: connect(socket.AF_UNIX, asked["socket"]),
    "a socket where the Docker daemon listens": lambda: connect(socket.AF_UNIX, asked["docker"]),
    "an abstract unix socket": lambda: connect(socket.AF_UNIX, "\\0" + asked["abstract"]),
    "processes of the host": lambda: any(
        name.isdigit() and asked["vector"].encode() in read(f"/proc/{name}/cmdline") for name in os.listdir("/proc")
    ),
    "a descriptor that the parent left open": lambda: os.fstat(asked["descriptor"]),
    "interfaces beside loopback": lambda: set(name for _, name in socket.if_nameindex()) - {"lo"},
    "the workspace": lambda: read(asked["own"]),
}

def answer(probe):
    try:
        return "reached" if probe() else "nothing"
    except (OSError, UnicodeError):
        return "nothing"

print(json.dumps({name: answer(probe) for name, probe in probes.items()}))
"""


@pytest.fixture
def bwrap() -> str:
    """The one bubblewrap that a gate finds here."""
    return runtimes.needed(next(iter(runtimes.bubblewraps()), None))


@pytest.fixture
def host(sandbox: Sandbox) -> Iterator[dict[str, Any]]:
    """Something of each kind on the host, reachable by the very user that the worker will be."""
    with ExitStack() as stack:
        home = f"{sandbox.home}/home"
        os.makedirs(f"{home}/.ssh")
        os.chmod(home, 0o777)
        for path in (f"{home}/file", f"{home}/.ssh/id_ed25519", f"{sandbox.workspace}/own"):
            Path(path).write_text(SECRET)
        listeners = [stack.enter_context(socket.socket(family)) for family in (socket.AF_INET, *(socket.AF_UNIX,) * 3)]
        abstract = f"prespawn-test-{os.getpid()}"
        addresses: list[Any] = [("127.0.0.1", 0), f"{home}/socket", f"{home}/docker.sock", f"\0{abstract}"]
        for listener, address in zip(listeners, addresses, strict=True):
            listener.bind(address)
            listener.listen()
        for name in ("socket", "docker.sock"):
            os.chmod(f"{home}/{name}", 0o777)
        port = listeners[0].getsockname()[1]
        yield {
            "secret": SECRET, "home": f"{home}/file", "key": f"{home}/.ssh/id_ed25519", "outside": f"{home}/written",
            "port": port, "socket": f"{home}/socket", "docker": docker(f"{home}/docker.sock"), "abstract": abstract,
            "vector": "pytest", "descriptor": 9, "own": "own",
        }  # fmt: skip


def docker(stand_in: str) -> str:
    """Return the daemon's own socket where there is one that anybody here could reach, else one like it."""
    return "/var/run/docker.sock" if os.path.exists("/var/run/docker.sock") else stand_in


def probed(workspace: str, state: str, asked: dict[str, Any], inside: bool) -> dict[str, str]:
    """Make all probes, from this process or from a sandbox that it launches."""
    os.chdir(workspace)
    os.environ.update({"XDG_STATE_HOME": state, "SECRET": SECRET})
    os.dup2(os.open("/", os.O_RDONLY), asked["descriptor"], inheritable=True)
    out = os.memfd_create("out")
    words = ("/usr/bin/python3", "probes.py", "asked.json")
    if inside:
        gate = Gate.load().reviewing("sandbox-v1", words)
        declaration = {
            "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".",
            "declared_files": [], "env_keys": [], "execution": {"argv": list(words)}, "execute": True,
            "file_contract": {"mode": "mutation", "allowed_paths": ["**"]},
        }  # fmt: skip
        run = gate.launch_typed(declaration, operator="ada", streams=Streams(stdout=out))
        assert run.outcome is not None and run.outcome.status == 0, (run.verdict.blockers, run.outcome)
    else:
        actions = [(os.POSIX_SPAWN_DUP2, out, 1)]
        pid = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
        assert os.waitpid(pid, 0)[1] == 0
    found: dict[str, str] = json.loads(os.pread(out, 1 << 16, 0))
    return found


def table(found: dict[str, str]) -> str:
    return "".join(f"{name:48} {answer}\n" for name, answer in found.items())


def test_nothing_of_the_host_is_within_reach(sandbox: Sandbox, host: dict[str, Any]) -> None:
    Path(sandbox.workspace, "probes.py").write_text(PROBES)
    Path(sandbox.workspace, "asked.json").write_text(json.dumps(host))
    state = f"{sandbox.home}/state"
    os.mkdir(state)
    os.chown(state, os.stat(sandbox.workspace).st_uid if sandbox.parent == "user" else -1, -1)
    outside = sandbox.call(probed, sandbox.workspace, state, host, False)
    unreachable = {name for name, answer in outside.items() if answer == "nothing"}
    assert unreachable <= {
        "environment of the parent, by way of init", "interfaces beside loopback",
        "a socket where the Docker daemon listens",
    }, "a probe that reaches nothing from outside says nothing about the inside"  # fmt: skip
    if os.path.exists(host["outside"]):
        os.unlink(host["outside"])
    assert table(sandbox.call(probed, sandbox.workspace, state, host, True)) == GOLDEN.read_text("utf-8")
    assert not os.path.exists(host["outside"])
