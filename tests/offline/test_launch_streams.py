"""What flows between a worker and its caller: slow, closed, shared and full ends on the caller's side."""

from __future__ import annotations

import fcntl
import os
import pty
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from support import plans
from support.ordinary import as_ordinary_user, fields, home
from support.scenarios import FLOOD, Scenario, records_exits, shell

from prespawn.pumps import Streams
from prespawn.supervise import run

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["home"]  # the fixture


def outcome_of(argv: tuple[str, ...], home: str, make: Callable[[], Streams], **limits: int) -> dict[str, Any]:
    """Return the outcome of a run whose streams are made in the process that runs it."""
    values = fields(Scenario("streams", argv, {}, limits=limits), home)
    outcome = as_ordinary_user(lambda: dict(run(plans.plan(**values), make())))
    assert isinstance(outcome, dict)
    return outcome


def fed(content: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return reading


def test_reader_that_never_reads_costs_no_more_than_the_deadline(home: str) -> None:
    keep: list[int] = []

    def make() -> Streams:
        keep.extend(os.pipe())
        return Streams(stdout=keep[1])

    begun = time.monotonic()
    outcome = outcome_of(shell(FLOOD), home, make, wall_clock=700)
    assert (outcome["how"], outcome["stderr"]) == ("deadline", 0)
    assert outcome["undelivered"] > 0
    assert outcome["stdout"] < 1 << 20  # what the pipes hold: the worker was held up, nothing piled up here
    assert time.monotonic() - begun < 3


def test_reader_that_never_reads_after_the_end_costs_no_more_than_the_deadline(home: str) -> None:
    def make() -> Streams:
        _reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writing, b"x" * 4096)
        return Streams(stdout=writing)

    outcome = outcome_of(shell("echo done"), home, make, wall_clock=700)
    assert (outcome["how"], outcome["status"], outcome["stdout"], outcome["undelivered"]) == ("exited", 0, 5, 5)


def test_reader_that_goes_away_ends_the_worker_as_it_would_without_us(home: str) -> None:
    def make() -> Streams:
        reading, writing = os.pipe()
        threading.Timer(0.2, os.close, (reading,)).start()
        return Streams(stdout=writing)

    outcome = outcome_of(("yes",), home, make, wall_clock=10_000)
    end = ("signalled", 13, None) if records_exits() else ("exited", None, 141)
    assert (outcome["how"], outcome["signal"], outcome["status"]) == end


@pytest.mark.parametrize("shared", [False, True])
def test_slow_reader_gets_every_byte(shared: bool, home: str) -> None:
    wanted = 300_000

    def run_it(values: dict[str, Any]) -> tuple[dict[str, Any], int]:
        reading, writing = os.pipe()
        got: list[int] = []

        def read() -> None:
            while piece := os.read(reading, 5000):
                got.append(len(piece))
                time.sleep(0.001)

        thread = threading.Thread(target=read)
        thread.start()
        outcome = run(plans.plan(**values), Streams(stdout=writing, stderr=writing if shared else None))
        os.close(writing)
        thread.join()
        return dict(outcome), sum(got)

    script = f"head -c {wanted} /dev/zero" + (f"; head -c {wanted} /dev/zero >&2" if shared else "")
    outcome, got = as_ordinary_user(run_it, fields(Scenario("slow", shell(script), {}), home))
    assert (outcome["how"], outcome["undelivered"]) == ("exited", 0)
    assert got == wanted * (1 + shared)


def test_flags_of_the_callers_descriptors_are_left_alone(home: str) -> None:
    def run_it(values: dict[str, Any]) -> list[int]:
        reading, writing = os.pipe()
        stdin = fed(b"x")
        run(plans.plan(**values), Streams(stdin=stdin, stdout=writing))
        return [fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK for fd in (reading, writing, stdin)]

    assert as_ordinary_user(run_it, fields(Scenario("cat", ("cat",), {}), home)) == [0, 0, 0]


def test_terminal_on_the_callers_side_is_written_to_and_never_handed_on(home: str) -> None:
    def run_it(values: dict[str, Any]) -> bytes:
        master, slave = pty.openpty()
        run(plans.plan(**values), Streams(stdin=b"", stdout=slave))
        return os.read(master, 1000)

    script = "test -t 1 && echo terminal; test -c /proc/self/fd/1 && echo device; (: </dev/tty) 2>/dev/null && echo tty"
    values = fields(Scenario("tty", shell(f"{script}; echo end"), {}), home)
    assert as_ordinary_user(run_it, values) == b"end\r\n"


def test_stdin_from_a_pipe_and_from_a_file_reaches_the_worker(home: str) -> None:
    def from_file() -> Streams:
        fd = os.memfd_create("in")
        os.write(fd, b"0123456789")
        os.lseek(fd, 4, os.SEEK_SET)
        return Streams(stdin=fd)

    assert outcome_of(("cat",), home, lambda: Streams(stdin=fed(b"abc")))["stdout"] == 3
    assert outcome_of(("cat",), home, from_file)["stdout"] == 6  # from where the caller stood


def test_stdin_that_nobody_feeds_does_not_keep_a_run_alive(home: str) -> None:
    keep: list[int] = []

    def make() -> Streams:
        keep.extend(os.pipe())
        return Streams(stdin=keep[0])

    assert outcome_of(shell("exit 6"), home, make, wall_clock=10_000)["status"] == 6


def test_log_gets_both_streams_as_they_come(home: str) -> None:
    def run_it(values: dict[str, Any]) -> tuple[str, bytes]:
        log = os.memfd_create("log")
        outcome = run(plans.plan(**values), Streams(log=log))
        return outcome.how, os.pread(log, 1000, 0)

    values = fields(Scenario("log", shell("echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c"), {}), home)
    assert as_ordinary_user(run_it, values) == ("exited", b"a\nb\nc\n")


def test_log_on_a_full_file_system_is_a_ceiling(home: str) -> None:
    outcome = outcome_of(shell(FLOOD), home, lambda: Streams(log=os.open("/dev/full", os.O_WRONLY)))
    assert (outcome["how"], outcome["ceiling"]) == ("output-ceiling", "log")


def test_log_stops_at_the_ceiling_as_well(home: str) -> None:
    def run_it(values: dict[str, Any]) -> tuple[str | None, int]:
        log = os.memfd_create("log")
        outcome = run(plans.plan(**values), Streams(log=log))
        return outcome.ceiling, os.fstat(log).st_size

    values = fields(Scenario("log", shell(FLOOD), {}, limits={"output": 70_000}), home)
    assert as_ordinary_user(run_it, values) == ("output", 70_000)


def test_memory_of_the_parent_does_not_grow_with_a_flood(home: str) -> None:
    def run_it(values: dict[str, Any]) -> tuple[str, int]:
        import resource

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        null = os.open("/dev/null", os.O_WRONLY)
        how = run(plans.plan(**values), Streams(stdout=null, stderr=null)).how
        return how, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    script = "yes >&2 & yes"
    values = fields(Scenario("flood", shell(script), {}, limits={"output": 200 << 20}), home)
    how, grown = as_ordinary_user(run_it, values)
    assert how == "output-ceiling"
    assert grown < 4096  # KiB
