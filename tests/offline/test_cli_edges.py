"""The command line in places that nobody means it for: lost directories, lost words, files that are there already."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.cli import DECLARATION, Shell, runtime, shell

from prespawn import Gate
from prespawn import cli as command_line
from prespawn.cli.exec import _delivered
from prespawn.cli.signals import Signals
from prespawn.outcome import EXITED, Outcome
from prespawn.policy.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.gate import Checked

__all__ = ["runtime", "shell"]  # the fixtures

pytestmark = pytest.mark.usefixtures("runtime")
GONE = "prespawn: the current directory is not there any more; change into one that is (usage)"


def test_facts_are_recorded_in_a_new_file_or_not_at_all(shell: Shell) -> None:
    shell.file("d.yaml")
    shell.file("facts.json", "mine")
    for there in ("d.yaml", "facts.json"):
        result = shell.run("check", "--record-facts", there, "d.yaml")
        said = (
            f"prespawn: `{there}` is there already and is not written over; move it away, or name another file (usage)"
        )
        assert (result.code, result.out, result.errors, result.changed) == (2, "", [said], set())
    assert (shell.workspace / "d.yaml").read_text() == DECLARATION


@pytest.mark.parametrize("words", [(".",), (".", "--site", "site.yaml")])
def test_init_in_a_directory_that_is_gone_is_one_sentence(
    words: tuple[str, ...], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = shell.top / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = shell.run("init", *words)
    assert (result.code, result.out, result.started) == (2, "", [])
    assert result.errors == [GONE]


def test_init_refuses_a_directory_that_holds_credentials(shell: Shell) -> None:
    work = shell.top / "work"
    (work / ".ssh").mkdir(parents=True)
    result = shell.run("init", str(work))
    said = f"prespawn: `{work}` holds `.ssh`, which no worker may see; make a directory for the work alone (usage)"
    assert (result.code, result.errors, result.changed) == (2, [said], set())


@pytest.mark.parametrize("environment", [{}, {"COMP_WORDS": '"', "COMP_CWORD": "x"}, {"COMP_WORDS": "prespawn"}])
def test_completion_without_the_shells_words_is_quiet(
    environment: dict[str, str], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COMP_WORDS", "COMP_CWORD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"_PRESPAWN_COMPLETE": "bash_complete", **environment}.items():
        monkeypatch.setenv(name, value)
    result = shell.run()
    assert (result.code, result.out, result.err) == (2, "", "")


def test_internal_error_says_where_and_no_value(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: object) -> None:
        raise TypeError("a secret")

    monkeypatch.setattr(command_line, "read_plain", crash)
    result = shell.run("check", "d.yaml")
    line = crash.__code__.co_firstlineno + 1
    assert result.code == 70
    assert result.errors == [f"prespawn: internal error: TypeError at {__name__}:{line} (internal-error)"]


@pytest.fixture
def hang_up() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_up")
def test_signal_that_the_caller_ignores_stays_ignored() -> None:
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        assert signals.received is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals.received == signal.SIGTERM
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


LOST = "prespawn: 5 bytes of the command's output are lost: standard output or standard error takes no more; give it "


@pytest.mark.parametrize(("status", "answer"), [(0, 125), (3, 3), (141, 141)])
def test_output_that_is_lost_is_said_and_no_success(
    status: int, answer: int, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(how=EXITED, status=status, stdout=9, undelivered=5)
    assert _delivered(outcome, status) == answer
    assert capfd.readouterr().err == f"{LOST}somewhere to go\n"
    assert _delivered(outcome.replace(undelivered=0), status) == status
    assert capfd.readouterr().err == ""


def checked(shell: Shell) -> tuple[Gate, Checked]:
    shell.write_site(approvals={"driver_may_approve": "blocker-free"})
    gate = Gate.load()
    return gate, gate.check({**yaml.safe_load(DECLARATION), "execute": True})


@pytest.mark.parametrize(
    "wrong",
    [
        {"operator": 1}, {"operator": "\ud800"}, {"operator": "\x1b[2J"}, {"operator": ""}, {"reason": None},
        {"reason": 1}, {"reason": "\x1b[2J"}, {"seconds": 10**18}, {"seconds": 1.5}, {"seconds": "x"}, {"seconds": 0},
        {"seconds": True},
    ],
    ids=ascii,
)  # fmt: skip
def test_approval_of_wrong_words_is_an_error_of_the_input(wrong: dict[str, Any], shell: Shell) -> None:
    gate, verdict = checked(shell)
    with pytest.raises(InputError):
        gate.approve(verdict, **{"reason": "reviewed", "operator": "driver", **wrong})
    assert gate.approval_for(verdict) is None


@pytest.mark.parametrize("wrong", [1, True, {}, b"id"], ids=ascii)
def test_what_is_no_approval_launches_nothing(wrong: Any, shell: Shell) -> None:
    gate, verdict = checked(shell)
    with pytest.raises(TypeError, match="an approval, its id or its path is wanted"):
        gate.launch(verdict, approval=wrong)
