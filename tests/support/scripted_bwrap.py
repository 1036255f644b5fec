"""A runtime that stands in for bubblewrap where none may be: same options, same forks, same records, no sandbox.

It reads the options that a real bubblewrap reads, refuses what that would refuse, forks an init which forks the
payload, reports through the status descriptor, and takes every descendant with it when init dies (a subreaper that
kills its children does here what a pid namespace does there). ``MODE`` makes it misbehave. ``install`` writes it as a
program; each contract test that runs against it has a live twin against the real one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

MODE = ""
MODES = (
    "", "never reads its options", "unknown option", "namespaces refused", "root fails", "garbage records", "no record",
    "floods stderr", "stays after init",
)  # fmt: skip

ARITY = {
    "--unshare-user": 0, "--unshare-pid": 0, "--unshare-net": 0, "--unshare-ipc": 0, "--unshare-uts": 0,
    "--unshare-cgroup": 0, "--uid": 1, "--gid": 1, "--hostname": 1, "--cap-drop": 1, "--disable-userns": 0,
    "--new-session": 0, "--die-with-parent": 0, "--json-status-fd": 1, "--ro-bind": 2, "--symlink": 2, "--perms": 1,
    "--file": 2, "--proc": 1, "--dev": 1, "--size": 1, "--tmpfs": 1, "--remount-ro": 1, "--dir": 1, "--bind-fd": 2,
    "--ro-bind-fd": 2, "--seccomp": 1, "--setenv": 2, "--chdir": 1,
}  # fmt: skip
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, SIGKILL = 1, 36, 9


def install(directory: str, mode: str = "") -> str:
    """Write the runtime as an executable below a directory, as deep as a real one lies, and return its path."""
    assert mode in MODES
    home = os.path.join(directory, "runtime", "bin")
    os.makedirs(home, exist_ok=True)
    path = os.path.join(home, "bwrap")
    with open(__file__, encoding="utf-8") as own, open(path, "w", encoding="utf-8") as file:
        program = os.path.realpath(sys.executable)
        file.write(f"#!{program} -IS\n" + own.read().replace('\nMODE = ""\n', f"\nMODE = {mode!r}\n", 1))
    os.chmod(path, 0o755)
    return path


def die(text: str) -> None:
    """End as bubblewrap does when it cannot go on."""
    os.write(2, f"bwrap: {text}\n".encode())
    os._exit(1)


def parsed(words: list[str]) -> list[list[str]]:
    """Return the options with their arguments, split as bubblewrap splits them."""
    options = []
    while words:
        name = words[0]
        if name not in ARITY:
            die(f"Unknown option {name}")
        count = ARITY[name] + 1
        if len(words) < count:
            die(f"{name} takes {ARITY[name]} arguments")
        options.append(words[:count])
        words = words[count:]
    return options


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> None:
    """Be bubblewrap."""
    assert sys.argv[1:2] == ["--args"] and sys.argv[3] == "--", sys.argv
    if MODE == "never reads its options":
        os.read(os.pipe()[0], 1)
    if MODE == "unknown option":
        die("Unknown option --bind-fd")
    content = b""
    while piece := os.read(int(sys.argv[2]), 1 << 16):
        content += piece
    os.close(int(sys.argv[2]))
    if MODE == "floods stderr":
        while True:
            os.write(2, b"x" * 4096)
    options = parsed([word.decode("utf-8", "surrogateescape") for word in content.split(b"\0")[:-1]])
    if MODE == "namespaces refused":
        die("No permissions to create new namespace, likely because the kernel does not allow it")
    status = next(int(option[1]) for option in options if option[0] == "--json-status-fd")
    environment = {option[1]: option[2] for option in options if option[0] == "--setenv"}
    monitor(status, environment, sys.argv[4:])


def monitor(status: int, environment: dict[str, str], argv: list[str]) -> None:
    """The process outside: starts init, writes the records, and ends what init leaves."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    told, tell = os.pipe()
    init = os.fork()
    if init == 0:
        os.close(told)
        os.close(status)
        as_init(tell, environment, argv)
    os.close(tell)
    prctl(PR_SET_PDEATHSIG, SIGKILL)
    os.write(status, b'{ "child-pid": %d }\n' % init)
    if MODE == "garbage records":
        os.write(status, b'{"exit-code": -1}\nexit-code: 0\n{ "exit-code": 0' + b"\0" * 5000)
    answer = os.read(told, 4)
    if answer and MODE not in ("no record", "garbage records"):
        os.write(status, b'{ "exit-code": %d }\n' % int(answer))
    os.waitpid(init, 0)
    end_all()
    if MODE == "stays after init":
        os.read(os.pipe()[0], 1)
    os._exit(int(answer or 1))


def end_all() -> None:
    """Kill and reap children, the orphans of init among them, until there is none."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
        if not children:
            return
        for pid in children:
            os.kill(pid, SIGKILL)
        os.waitpid(-1, 0)


def as_init(tell: int, environment: dict[str, str], argv: list[str]) -> None:
    """The first process inside: starts the payload and stays until nothing is left."""
    prctl(PR_SET_PDEATHSIG, SIGKILL)
    if MODE == "root fails":
        die("Can't make symlink at /proc/alias: No such file or directory")
    os.setsid()
    executed, failed = os.pipe()
    payload = os.fork()
    if payload == 0:
        os.closerange(3, failed)
        os.closerange(failed + 1, 1 << 10)  # the plan's own descriptors, as bubblewrap closes them once they are used
        as_payload(failed, environment, argv)
    os.close(failed)
    never_ran = os.read(executed, 1)
    status = os.waitpid(payload, 0)[1]
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    if not never_ran:
        os.write(tell, b"%d" % code)
    os.close(tell)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        os._exit(code)


def as_payload(failed: int, environment: dict[str, str], argv: list[str]) -> None:
    """The worker's program."""
    prctl(PR_SET_PDEATHSIG, SIGKILL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so across an exec
    os.environ.clear()
    os.environ.update(environment)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(failed, b"x")
        die(f"execvp {argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
