"""The keeper of one host run: a process of its own that starts the worker and ends everything that comes of it.

It is started as a script and imports nothing of the package. Whoever detaches from the worker (``setsid``, a double
fork) becomes the keeper's child, as it is the subreaper of all its descendants; so when the worker is gone, or the
parent says stop or is gone itself, it kills every child that it has until there is none. It is a process and no
thread because a subreaper is a whole process, and the caller's children are none of its business.

On descriptor 3 it reads the length of a text in 20 digits and the text, whose fields have NUL between them: uid, gid,
path of the program, count and words of argv, count and pairs of the environment, count and pairs of limits. Then one
byte lets the worker start; the end of it means stop. On 4 it writes one line for each step: ``ready PID``,
``failed ERRNO``, ``exit N``, ``signal N``, ``empty``. Descriptors 5 and 6 are workspace and program, as they were
checked.
"""

from __future__ import annotations

import os
import resource
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
    from collections.abc import Iterator
else:
    import _signal as signals  # `signal` builds enums

CONTROL, STATUS, WORKSPACE, PROGRAM = 3, 4, 5, 6
_SUBREAPER, _NO_NEW_PRIVS = 36, 38
_SWEEPS = 3  # passes that stop before those that kill, so that who forks all the time stands still


def main() -> None:
    """Keep one run."""
    for fd in (CONTROL, STATUS, WORKSPACE, PROGRAM):
        os.set_inheritable(fd, False)
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        os._exit(1)  # a kernel that does not say whose children there are: nobody could be found
    _prctl(_SUBREAPER)
    _prctl(_NO_NEW_PRIVS)
    waking, wake = os.pipe()
    for fd in (waking, wake):
        os.set_blocking(fd, False)
    signals.signal(signals.SIGCHLD, lambda *_: None)
    signals.set_wakeup_fd(wake)
    told = _told()
    go, failure, child = _forked(told)
    _say(f"ready {child}")
    if os.read(CONTROL, 1) != b"g":
        _empty(child)
        return
    _start(go)
    failed = os.read(failure, 16)
    if failed:
        _say(f"failed {int(failed)}")
    else:
        _wait(child, waking)
    _empty(child)


def _start(go: int) -> None:
    try:
        os.write(go, b"g")
    except BrokenPipeError:  # it ended before: why stands in the other pipe
        return
    finally:
        os.close(go)


def _told() -> Iterator[str]:
    text = _read(int(_read(20)))
    return iter([os.fsdecode(word) for word in text.split(b"\0")])


def _read(length: int) -> bytes:
    text = b""
    while len(text) < length:
        piece = os.read(CONTROL, length - len(text))
        if not piece:
            os._exit(1)
        text += piece
    return text


def _forked(told: Iterator[str]) -> tuple[int, int, int]:
    """Fork the worker's process, which waits for one byte; return where to write it, and where an error comes from."""
    uid, gid, program = int(next(told)), int(next(told)), next(told)
    argv = [next(told) for _ in range(int(next(told)))]
    environment = {next(told): next(told) for _ in range(int(next(told)))}
    limits = [(next(told), int(next(told))) for _ in range(int(next(told)))]
    waiting, go = os.pipe()
    failure, failing = os.pipe()
    child = os.fork()
    if child:
        os.close(waiting)
        os.close(failing)
        for fd in (0, 1, 2):  # the worker's alone: a stream ends when nobody of the run holds it
            os.close(fd)
        return go, failure, child
    try:
        os.close(go)
        _become(uid, gid)
        os.setsid()
        os.fchdir(WORKSPACE)
        os.umask(0o022)
        for name, value in limits:
            which = getattr(resource, name)
            hard = resource.getrlimit(which)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))
        signals.set_wakeup_fd(-1)
        for number in signals.valid_signals():
            if number not in (signals.SIGKILL, signals.SIGSTOP):
                signals.signal(number, signals.SIG_DFL)
        if os.read(waiting, 1) == b"g":
            _execute(program, argv, environment)
    except OSError as error:
        os.write(failing, b"%d" % (error.errno or 5))
    finally:
        os._exit(127)


def _execute(program: str, argv: list[str], environment: dict[str, str]) -> None:
    """Execute the program that was checked, by its descriptor; a script needs a name that its interpreter can open."""
    os.execve(program if os.pread(PROGRAM, 2, 0) == b"#!" else PROGRAM, argv, environment)


def _become(uid: int, gid: int) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    if 0 in os.getresuid():
        raise PermissionError(1, "")


def _wait(child: int, waking: int) -> None:
    """Wait for the worker's end, reaping who was adopted, or for the parent's word or end."""
    poll = select.poll()
    for fd in (CONTROL, waking):
        poll.register(fd, select.POLLIN)
    while True:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                ended = os.waitstatus_to_exitcode(status)
                _say(f"exit {ended}" if ended >= 0 else f"signal {-ended}")
                return
        ready = {fd for fd, _ in poll.poll()}
        if CONTROL in ready:
            return
        try:
            os.read(waking, 1 << 12)
        except BlockingIOError:  # a signal had been read with the one before it
            continue


def _empty(child: int) -> None:
    """End every process that came of the run, and say so when none is left."""
    for _ in range(_SWEEPS):
        _each(signals.SIGSTOP)
    while True:
        _each(signals.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    _say("empty")


def _each(number: int) -> None:
    """Send a signal to every descendant: a child of ours that was reaped by nobody is still the one that it was."""
    pending = [os.getpid()]
    while pending:
        for pid in _children(pending.pop()):
            pending.append(pid)
            try:
                os.kill(pid, number)
            except ProcessLookupError:  # gone by itself, and its children are the keeper's now
                continue


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += (int(word) for word in file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # gone, and its children are the keeper's now
    return found


def _prctl(option: int) -> None:
    import ctypes

    if ctypes.CDLL(None).prctl(option, 1, 0, 0, 0) != 0:
        os._exit(1)


def _say(line: str) -> None:
    try:
        os.write(STATUS, line.encode("ascii") + b"\n")
    except BrokenPipeError:
        return


if __name__ == "__main__":
    signals.signal(signals.SIGPIPE, signals.SIG_IGN)
    sys.stdin = sys.stdout = sys.stderr = None  # they are the worker's
    main()
    os._exit(0)
