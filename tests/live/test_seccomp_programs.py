"""Everyday programs in the sandbox that a launch makes, its filter included: they work as if it were not there."""

from __future__ import annotations

import os
import shutil
from glob import glob
from pathlib import Path
from typing import Any

import pytest
from support import plans
from support.sandboxes import OWNER, Sandbox, bwrap, sandbox
from support.seccomp import TABLES

__all__ = ["bwrap", "sandbox"]  # the fixtures

pytestmark = pytest.mark.skipif(plans.MACHINE not in TABLES, reason=f"no table for {plans.MACHINE}")

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
MAKE = """
set -e
printf 'all: a.o b.o\\n\\tcat a.o b.o | tail -1\\n%%.o:\\n\\techo done > $@\\n' > Makefile
make -s -j2
"""
CURL = """
set -e
echo done > page
/usr/bin/python3 -I -m http.server --bind 127.0.0.1 8123 2> served & server=$!
for i in 1 2 3 4 5 6 7 8 9 10; do curl -sf http://127.0.0.1:8123/page && break; sleep 0.2; done
kill $server
"""
PROGRAMS = {
    "/usr/bin/python3": PYTHON,
    "git": GIT,
    "gcc": GCC,
    "make": MAKE,
    "curl": CURL,
    "node": NODE,
    "perl": PERL,
    "java": JAVA,
    "sh": SHELL,
}
NEEDED = {"java": sorted(glob("/etc/java-*-openjdk"))}  # Debian's keeps its configuration outside the system tree
INTERPRETERS = ("/usr/bin/python3", "node", "perl")  # their scripts are not the shell's


@pytest.mark.parametrize("program", PROGRAMS, ids=os.path.basename)
def test_program_does_its_work(program: str, sandbox: Sandbox) -> None:
    if shutil.which(program, path=":".join(plans.SEARCH_PATH)) is None:
        pytest.skip(f"no `{program}` on this host")
    script = PROGRAMS[program]
    if program in INTERPRETERS:
        Path(sandbox.workspace, "script").write_text(script, "utf-8")
        script = f"{program} script"
    granted = tuple(plans.bind(path, path, writable=False) for path in NEEDED.get(program, ()))
    said = sandbox.inside(script, {"processes": 1024, "open_files": 4096}, toolchains=granted)
    assert said.split()[-1:] == ["done"]


def test_filter_is_on_every_process_of_the_sandbox(sandbox: Sandbox) -> None:
    lines = sandbox.inside("cat /proc/1/status /proc/self/status").splitlines()
    assert [line.split()[1] for line in lines if line.startswith(("Seccomp:", "NoNewPrivs:"))] == ["1", "2"] * 2
    with open("/proc/self/status", encoding="ascii") as own:
        outside = next((int(line.split()[1]) for line in own if line.startswith("Seccomp_filters:")), 0)
    assert [line.split()[1] for line in lines if line.startswith("Seccomp_filters:")] == [str(outside + 1)] * 2


def test_limits_are_the_plans_beside_the_filter(sandbox: Sandbox) -> None:
    limits = {"processes": 77, "open_files": 88, "file_size": 99 << 20}
    lines = sandbox.inside("grep -h '^Max \\(proc\\|open\\|file s\\|core\\)' /proc/1/limits /proc/self/limits", limits)
    seen = {tuple(line.split()[1:-1]) for line in lines.splitlines()}
    assert seen == {
        ("processes", "77", "77"), ("open", "files", "88", "88"), ("file", "size", str(99 << 20), str(99 << 20)),
        ("core", "file", "size", "0", "0"),
    }  # fmt: skip


def test_program_cannot_do_what_the_filter_refuses(sandbox: Sandbox) -> None:
    said = sandbox.inside("touch f; chmod u+s f; unshare -r true; mknod d c 0 0; ls")
    assert said.count("Operation not permitted") == 3
    assert os.listdir(sandbox.workspace) == ["f"]
    assert os.stat(f"{sandbox.workspace}/f").st_mode & 0o6000 == 0


def test_worker_without_the_filter_could(sandbox: Sandbox) -> None:
    """Or the test above would show nothing."""
    process = plans.PROFILE.process.replace(seccomp="none")
    unfiltered: dict[str, Any] = {"filter": None, "profile": plans.PROFILE.replace(process=process)}
    if sandbox.parent == OWNER:  # where a setuid file would be root's, such a plan is refused
        with pytest.raises(AssertionError, match="allowed here: a profile with a filter of system calls"):
            sandbox.inside("touch f", **unfiltered)
        return
    sandbox.inside("touch f; chmod u+s f; mknod d c 0 0", **unfiltered)
    assert os.stat(f"{sandbox.workspace}/f").st_mode & 0o6000 == 0o4000
    assert os.lstat(f"{sandbox.workspace}/d").st_rdev == 0
