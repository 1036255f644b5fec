"""Everyday programs under bubblewrap with the shipped filter: they do their work as if it were not there."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest
from support import as_user, runtimes
from support.seccomp import DEFAULT, TABLES

from prespawn.launchers.seccomp import compile_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(platform.machine() not in TABLES, reason=f"no table for {platform.machine()}")

SETPRIV = ("setpriv", "--reuid", str(as_user.USER), "--regid", str(as_user.USER), "--clear-groups", "--")

PYTHON = """
import multiprocessing, os, pty, socket, sqlite3, ssl, subprocess, tempfile, threading
assert ssl.create_default_context().cert_store_stats() is not None
database = sqlite3.connect("data.db")
database.execute("create table t (x)"); database.execute("insert into t values (1)"); database.commit()
assert database.execute("select x from t").fetchall() == [(1,)]
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [-1, -2, -3]) == [1, 2, 3]
thread = threading.Thread(target=print); thread.start(); thread.join()
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname()); taken, _ = server.accept()
client.sendall(b"x"); assert taken.recv(1) == b"x"
assert socket.create_server(("::1", 0), family=socket.AF_INET6)
assert ("lo" in [name for _, name in socket.if_nameindex()])
left, right = socket.socketpair(); left.close(); right.close()
assert subprocess.run(["sh", "-c", "echo on"], capture_output=True).stdout == b"on\\n"
with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile() as file:
    os.chmod(directory, 0o750); file.write(b"x")
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "stty size < /dev/tty; tty"])
said = b""
try:
    while chunk := os.read(fd, 4096): said += chunk
except OSError: pass
assert b"/dev/pts/" in said, said
try: os.chmod("data.db", 0o4755)
except PermissionError: print("done")
"""
GIT = """
set -e
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
git init -q repo; cd repo
git config user.email a@b; git config user.name c
echo one > file; git add file; git commit -q -m one
git checkout -q -b other; echo two >> file; git commit -q -am two; git merge -q other
git gc -q; git worktree add -q ../tree HEAD; git -C ../tree status --short; git fsck 2>/dev/null
git clone -q . ../clone; test "$(git -C ../clone log --format=%s | head -1)" = two; echo done
"""
GCC = """
set -e
echo '#include <stdio.h>\nint main(void) { puts("done"); }' > main.c
gcc -O2 -pipe main.c -o main; ./main
"""
NODE = """
const os = require('os'), net = require('net'), cp = require('child_process'), fs = require('fs');
const { Worker } = require('worker_threads');
if (!os.networkInterfaces()) throw 1;
if (cp.execSync('echo on').toString() !== 'on\\n') throw 2;
fs.writeFileSync('f', 'x'); fs.copyFileSync('f', 'g'); fs.watch('.').close();
const server = net.createServer(s => s.end('x')).listen(0, '127.0.0.1', () =>
  net.connect(server.address().port, '127.0.0.1').on('data', () => { server.close();
    const worker = new Worker('require("worker_threads").parentPort.postMessage(1)', { eval: true });
    worker.on('message', () => console.log('done')); }));
"""
PERL = r"""
use strict; use IO::Socket::INET; use File::Temp; use POSIX;
my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die;
my $pid = fork;
if (!$pid) { my $c = IO::Socket::INET->new('127.0.0.1:' . $server->sockport) or die; print $c "x"; exit 0 }
my $taken = $server->accept; my $line = <$taken>; waitpid $pid, 0;
my $file = File::Temp->new; print $file `uname`; print "done\n" if $line eq 'x';
"""
SHELL = """
set -e
mkdir -p a/b; echo x > a/b/f; ln -s b a/l; mkfifo a/p; cp -a a c; cp --reflink=auto a/b/f g; mv c d; install -m 0755 g h
tar -cf t.tar a; mkdir e; tar -xf t.tar -C e; find . -type f | sort | xargs sha256sum > sums; sed -i s/x/y/ g
truncate -s 1M s; dd if=/dev/zero of=z bs=4096 count=4 status=none; chmod -R u+rwX,g-w .; touch -d yesterday g
rm -rf a d e; timeout 5 sh -c 'sleep 0.01 & wait'; nice -n 5 true; (ulimit -n 64; true)
yes | head -1 > /dev/null; echo done
"""
JAVA = """
set -e
echo 'class Main { public static void main(String[] a) throws Exception {
java.net.NetworkInterface.getNetworkInterfaces(); new java.net.ServerSocket(0).close();
System.out.println("done"); } }' > Main.java
java -Xshare:auto -Djava.io.tmpdir=/tmp Main.java
"""
PROGRAMS = [
    ("/usr/bin/python3", ("-I", "-c", PYTHON)),
    ("git", GIT),
    ("gcc", GCC),
    ("node", ("-e", NODE)),
    ("perl", ("-e", PERL)),
    ("java", JAVA),
    ("sh", SHELL),
]


@pytest.fixture
def workspace() -> Iterator[str]:
    directory = tempfile.mkdtemp(prefix="prespawn-test-")
    if runtimes.ROOT:
        os.chown(directory, as_user.USER, as_user.USER)
    yield directory
    shutil.rmtree(directory)


def sandboxed(bwrap: str, workspace: str, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run a command in a plain sandbox with the filter; under root as an ordinary user."""
    program = compile_filter(DEFAULT, TABLES[platform.machine()])
    reading, writing = os.pipe()
    os.write(writing, program)  # far less than a pipe holds
    os.close(writing)
    options = (
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--cap-drop",
        "ALL",
        "--new-session",
    )
    root = (
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "--bind",
        workspace,
        workspace,
    )
    vector = (bwrap, *options, *root, "--chdir", workspace, "--seccomp", str(reading), "--", *command)
    try:
        return subprocess.run(
            (*SETPRIV, *vector) if runtimes.ROOT else vector,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
            pass_fds=(reading,),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(reading)


BUBBLEWRAPS: list[str | None] = [*runtimes.bubblewraps()]


@pytest.fixture(params=BUBBLEWRAPS or [None], ids=str)
def bwrap(request: pytest.FixtureRequest) -> str:
    return runtimes.needed(request.param)


@pytest.mark.parametrize(("program", "script"), PROGRAMS, ids=[os.path.basename(program) for program, _ in PROGRAMS])
def test_program_does_its_work(program: str, script: str | tuple[str, ...], bwrap: str, workspace: str) -> None:
    if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
        pytest.skip(f"no `{program}` on this host")
    command = ("sh", "-c", script) if isinstance(script, str) else (program, *script)
    ended = sandboxed(bwrap, workspace, command)
    assert (ended.returncode, ended.stdout.split()[-1:]) == (0, ["done"]), ended.stdout + ended.stderr


def test_filter_is_on_every_process_of_the_sandbox(bwrap: str, workspace: str) -> None:
    ended = sandboxed(bwrap, workspace, ("sh", "-c", "cat /proc/1/status /proc/self/status"))
    lines = ended.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith(("Seccomp:", "NoNewPrivs:"))] == ["1", "2"] * 2
    assert [line.split()[1] for line in lines if line.startswith("Seccomp_filters:")] == ["1"] * 2


def test_program_cannot_do_what_the_filter_refuses(bwrap: str, workspace: str) -> None:
    ended = sandboxed(bwrap, workspace, ("sh", "-c", "touch f; chmod u+s f; unshare -r true; mknod d c 0 0; ls -l"))
    assert ended.stderr.count("Operation not permitted") == 3
    assert os.listdir(workspace) == ["f"]
    assert os.stat(f"{workspace}/f").st_mode & 0o6000 == 0
