"""Small parts of a launch, each by itself: last words, records, ceilings, sentences."""

from __future__ import annotations

import os
from typing import Any

import pytest

from prespawn.outcome import HOWS, Outcome
from prespawn.policy.errors import HostError
from prespawn.pumps import Ceiling
from prespawn.refusals import SWITCHES, refusal
from prespawn.status import Status

APPARMOR, CLONE, MOST = (path for path, _, _ in SWITCHES)
REFUSALS = {
    "debian": "bwrap: No permissions to create new namespace, likely because the kernel does not allow it",
    "upstream": "bwrap: No permissions to create a new namespace, likely because the kernel does not allow it",
    "nesting": "bwrap: Creating new namespace failed: nesting depth or max_*_namespaces exceeded (ENOSPC)",
    "ubuntu uid map": "bwrap: setting up uid map: Permission denied",
    "ubuntu loopback": "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
}


@pytest.mark.parametrize("words", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize(
    ("switches", "rule"),
    [
        ({APPARMOR: "1"}, "AppArmor's rule `kernel.apparmor_restrict_unprivileged_userns=1`"),
        ({CLONE: "0"}, "`kernel.unprivileged_userns_clone=0`"),
        ({MOST: "0"}, "`user.max_user_namespaces=0`"),
        ({APPARMOR: "0", CLONE: "1", MOST: "96365"}, "a rule of this host that is not among the known switches"),
    ],
)
def test_refused_user_namespace_names_the_rule_and_the_remedy(words: str, switches: dict[str, str], rule: str) -> None:
    error = refusal(words, lambda path: switches.get(path, ""))
    assert isinstance(error, HostError)
    assert error.id == "user-namespaces-refused"
    assert str(error).startswith(f"this host refuses user namespaces to `bwrap`: {rule}")
    assert "`apt install bubblewrap`" in str(error)


@pytest.mark.parametrize("option", ["--bind-fd", "--ro-bind-fd", "--disable-userns"])
def test_option_that_bubblewrap_does_not_know_means_that_it_is_too_old(option: str) -> None:
    error = refusal(f"bwrap: Unknown option {option}", lambda path: "")
    assert error is not None and error.id == "bwrap-too-old"


@pytest.mark.parametrize(
    "words", ["", "bwrap: Can't mkdir parents for /proc/x: No such file or directory", "bwrap: Unknown option --x"]
)
def test_other_last_words_stay_what_they_are(words: str) -> None:
    assert refusal(words, lambda path: "0") is None


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (b'{ "child-pid": 12 }\n{ "exit-code": 7 }\n', 7),
        (b'{ "child-pid": 12, "cgroup-namespace": 5 }\n{"exit-code": 0}\n', 0),
        (b'{ "child-pid": 12 }\n', None),
        (b'{ "exit-code": 7 }', None),  # not a whole line: cut off while it was written
        (b'{ "exit-code": -1 }\n', None),
        (b'{ "x": "{ \\"exit-code\\": 7 }" }\n', None),
        (b'junk "exit-code": 7 }\n', None),
        (b"", None),
        (b"\0" * 10_000 + b'\n{ "exit-code": 7 }\n', None),
    ],
)
def test_record_of_an_exit_is_a_whole_line_and_nothing_else(written: bytes, code: int | None) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.write(writing, written)
    os.close(writing)
    status = Status(reading)
    status.read()
    os.close(reading)
    assert (status.exit_code, status.is_open) == (code, False)


def test_status_without_an_end_stays_open() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    status = Status(reading)
    status.read()
    assert (status.exit_code, status.is_open) == (None, True)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("pieces", "left", "reached"), [([b"123"], 2, False), ([b"123", b"45"], 0, False), ([b"123456"], 0, True)]
)
def test_ceiling_is_reached_by_the_first_byte_above_it(pieces: list[bytes], left: int, reached: bool) -> None:
    ceiling = Ceiling("output", 5)
    taken = b"".join(ceiling.cut(piece) for piece in pieces)
    assert (taken, ceiling.left, ceiling.reached) == (b"".join(pieces)[:5], left, reached)


@pytest.mark.parametrize(
    ("end", "killed", "refused", "how", "reached"),
    [
        ({"how": "exited", "status": 0}, 0, 0, "exited", ()),
        ({"how": "exited", "status": 137}, 0, 0, "exited", ()),
        ({"how": "exited", "status": 137}, 1, 0, "exited", ("limits.memory",)),
        ({"how": "exited", "status": 1}, 0, 7, "exited", ("limits.processes",)),
        ({"how": "signalled", "signal": 9}, 0, 0, "signalled", ()),
        ({"how": "signalled", "signal": 9}, 0, 3, "signalled", ("limits.processes",)),
        ({"how": "signalled", "signal": 9}, 2, 3, "out-of-memory", ("limits.memory", "limits.processes")),
        ({"how": "signalled", "signal": 11}, 1, 0, "signalled", ("limits.memory",)),
        ({"how": "lost", "detail": "said"}, 1, 0, "out-of-memory", ("limits.memory",)),
        ({"how": "lost", "detail": "said"}, 0, 1, "lost", ("limits.processes",)),
        ({"how": "deadline"}, 1, 0, "deadline", ("limits.memory",)),
        ({"how": "output-ceiling", "ceiling": "output"}, 1, 0, "output-ceiling", ("limits.memory",)),
        ({"how": "cancelled"}, 1, 1, "cancelled", ("limits.memory", "limits.processes")),
        ({"how": "setup-failed", "stage": "root"}, 1, 0, "setup-failed", ("limits.memory",)),
    ],
)
def test_end_is_told_by_what_the_kernel_counted_and_not_by_a_number(
    end: dict[str, Any], killed: int, refused: int, how: str, reached: tuple[str, ...]
) -> None:
    found = Outcome(**end).counted(killed, refused)
    assert (found.how, found.reached, found.status) == (how, reached, end.get("status"))
    assert how != "out-of-memory" or (found.signal, found.detail) == (None, "")


@pytest.mark.parametrize("how", HOWS)
def test_every_end_has_a_sentence(how: str) -> None:
    sentence = Outcome(how=how, status=3, signal=9, stage="root", ceiling="output", detail="said").sentence
    assert sentence[0].islower() and not sentence.endswith(".") and "None" not in sentence
