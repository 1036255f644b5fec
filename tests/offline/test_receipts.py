"""Receipts: their form, their files, and every way in which a chain of them can be falsified."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from support import plans
from support.world import World, plain

from prespawn.checker.attestation import attestation
from prespawn.checker.contract import Change, ContractResult
from prespawn.checker.expected import expected
from prespawn.checker.seen import Seen
from prespawn.compile import POLICY
from prespawn.outcome import Outcome
from prespawn.policy.canonical import canonical, digest_bytes
from prespawn.policy.errors import HostError, InputError
from prespawn.policy.known import Unknown
from prespawn.receipts import (
    DIRECTORY,
    Receipts,
    attestation_receipt,
    launch_receipt,
    name_of,
    plan_digest,
    terminal_receipt,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from prespawn.checker.plan import ApprovedPlan

NOW = 1_796_000_000
CANARY = "canary-4711"
SCHEMA = json.loads((POLICY / "schemas" / "json" / "receipt-v1.json").read_text("utf-8"))
DIGESTS = {name: digest_bytes(name.encode()) for name in ("declaration", "policy", "facts", "blockers")}
SEEN = Seen(
    attested={
        "payload": {"uids": (60001,) * 4, "capabilities": {"effective": ()}, "descriptors": Unknown(reason="refused")},
        "mounts": {"/": {"access": "read-only", "flags": ("nosuid",), "size": None}},
    },
    observed={"sources": {"/usr": "7:8"}},
    declared={"told": {"unshare-net": 1, "hostname": ("run-1",)}},
)


def plan(run_id: str = "run-1", **changes: Any) -> ApprovedPlan:
    approval = {
        "id": "d1ge57-5a17", "digest": digest_bytes(b"approval"), "origin": "operator", "operator": "ada", "uid": 1001,
        "approver": "separate", "accepted": ["limit-not-enforceable"],
    }  # fmt: skip
    return plans.plan(run_id=run_id, digests=DIGESTS, approval=approval, **changes)


def chain(run_id: str = "run-1", **changes: Any) -> list[str]:
    """Return the texts of both receipts of a run."""
    of = plan(run_id, **changes)
    first = launch_receipt(of, NOW)
    fact = attestation(expected(of), SEEN)
    verdict = World(plain({})).check("launch")
    return [first, attestation_receipt(of, digest(first), SEEN, fact, verdict, NOW + 1)]


def digest(text: str) -> str:
    return digest_bytes(text.encode("ascii"))


def verified(texts: list[str], run_id: str = "run-1", *, named: list[str] | None = None) -> Any:
    """Verify texts that stand under the names of their digests, for a row that names some (else these) digests."""
    files = {digest(text): text.encode("ascii") for text in texts}

    def read(wanted: str) -> bytes:
        if wanted not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[wanted]

    return verify(run_id, [digest(text) for text in texts] if named is None else named, read)


@pytest.fixture
def receipts(tmp_path: Path) -> Iterator[Receipts]:
    state = os.open(tmp_path, os.O_RDONLY)
    with Receipts.open(state) as opened:
        yield opened
    os.close(state)


# -- what they say


def test_receipts_fit_the_published_schema_and_are_canonical() -> None:
    for text in chain():
        document = json.loads(text)
        jsonschema.validate(document, SCHEMA)
        assert canonical(document) == text


def test_launch_receipt_names_what_was_decided_and_what_is_about_to_start() -> None:
    of = plan(program=plans.program("/bin/sh"))
    launch = json.loads(launch_receipt(of, NOW))
    assert (launch["kind"], launch["previous"], launch["at"], launch["attestation"]) == ("launch", None, NOW, None)
    body = launch["launch"]
    assert body["digests"] == {**DIGESTS, "plan": plan_digest(of), "argv": digest_bytes(b'["true"]')}
    assert body["runtime"] == {"name": "bwrap", "path": "/usr/bin/bwrap", "version": None, "digest": None}
    assert body["approval"] == dict(of.approval)
    assert body["program"] == {"device": os.stat("/bin/sh").st_dev, "inode": os.stat("/bin/sh").st_ino}


def test_attestation_receipt_names_the_one_before_it_and_each_field_by_its_strength() -> None:
    first, second = chain()
    document = json.loads(second)
    assert (document["kind"], document["previous"], document["launch"]) == ("attestation", digest(first), None)
    body = document["attestation"]
    assert body["attested"]["payload"]["uids"] == [60001] * 4
    assert body["attested"]["payload"]["descriptors"] == {"unknown": "refused"}
    assert body["observed"] == {"sources": {"/usr": "7:8"}}
    assert body["declared"]["told"]["unshare-net"] == 1
    assert {"field": "payload.descriptors", "because": "unknown"} in body["differences"]
    assert {"field": "init", "because": "fail"} in body["differences"]


def test_receipts_hold_neither_arguments_nor_values() -> None:
    texts = chain(argv=("tool", CANARY), environment=(("TOKEN", CANARY),))
    assert not [text for text in texts if CANARY in text]


def test_digest_of_a_plan_follows_everything_but_values() -> None:
    same = plan_digest(plan(environment=(("LANG", "a"),)))
    assert plan_digest(plan(environment=(("LANG", "b"),))) == same
    assert plan_digest(plan(environment=(("TZ", "a"),))) != same
    assert plan_digest(plan(environment=(("LANG", "a"),), cwd="/tmp")) != same
    assert plan_digest(plan(environment=(("LANG", "a"),), limits={"tmp": 1})) != same


def test_argument_with_bytes_that_are_no_text_has_a_digest() -> None:
    assert verified(chain(argv=("tool", "\udcff")))


# -- their files


def test_receipt_stands_under_its_digest_for_its_owner_alone(receipts: Receipts, tmp_path: Path) -> None:
    text = chain()[0]
    receipts.write(text)
    path = tmp_path / DIRECTORY / name_of(digest(text))
    assert path.name == digest(text).replace("sha256:", "sha256-") + ".json"
    assert path.read_text("ascii") == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert verify("run-1", [digest(text)], receipts.read)[0]["run_id"] == "run-1"


def test_receipt_that_is_there_already_is_not_written_over(receipts: Receipts, tmp_path: Path) -> None:
    text = chain()[0]
    path = tmp_path / DIRECTORY / name_of(digest(text))
    path.write_text("other", "ascii")
    with pytest.raises(HostError, match="file exists") as raised:
        receipts.write(text)
    assert raised.value.id == "receipt-not-written"
    assert path.read_text("ascii") == "other"


def test_link_in_the_place_of_a_receipt_is_not_followed(receipts: Receipts, tmp_path: Path) -> None:
    text = chain()[0]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(text, "ascii")
    (tmp_path / DIRECTORY / name_of(digest(text))).symlink_to(elsewhere)
    with pytest.raises(InputError) as raised:
        verify("run-1", [digest(text)], receipts.read)
    assert raised.value.id == "receipt-tampered"


def test_directory_of_receipts_that_others_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / DIRECTORY).mkdir()
    (tmp_path / DIRECTORY).chmod(0o777)
    state = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(HostError) as raised:
        Receipts.open(state)
    os.close(state)
    assert raised.value.id == "registry-not-parent-controlled"


def test_file_in_the_place_of_the_directory_is_an_error_of_the_host(tmp_path: Path) -> None:
    (tmp_path / DIRECTORY).touch()
    state = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(HostError) as raised:
        Receipts.open(state)
    os.close(state)
    assert raised.value.id == "receipt-not-written"


# -- what is wrong with a chain


def test_chain_that_the_parent_wrote_verifies() -> None:
    assert [receipt["kind"] for receipt in verified(chain())] == ["launch", "attestation"]
    assert [receipt["kind"] for receipt in verified(chain()[:1])] == ["launch"]


def tampered(texts: list[str], run_id: str = "run-1", *, named: list[str] | None = None) -> str:
    with pytest.raises(InputError) as raised:
        verified(texts, run_id, named=named)
    assert raised.value.id == "receipt-tampered"
    return str(raised.value)


def test_changed_byte_is_found_by_the_name() -> None:
    first, second = chain()
    files = {digest(first): first.encode(), digest(second): second.replace('"allowed":true', '"allowed":tru3').encode()}
    with pytest.raises(InputError, match="its content has another digest") as raised:
        verify("run-1", list(files), files.__getitem__)
    assert raised.value.id == "receipt-tampered"


def test_receipt_that_was_rewritten_under_a_new_name_is_found_by_the_row() -> None:
    first, second = chain()
    forged = second.replace('"requested":"logical"', '"requested":"unknown"')
    assert forged != second
    assert "no such file" in tampered([first, forged], named=[digest(first), digest(second)])


def test_missing_receipt_is_found() -> None:
    first, second = chain()
    assert "no such file" in tampered([first], named=[digest(first), digest(second)])
    assert "no such file" in tampered([second])


def test_row_that_names_no_receipt_or_more_than_a_run_has_proves_nothing() -> None:
    assert "names no receipt" in tampered([])
    assert "`at` is missing" in tampered([*chain(), "{}"])
    first, second = chain()
    third = terminal_receipt("run-1", digest(second), NOW, state="ended", outcome=Outcome(how="exited", status=0))
    fourth = terminal_receipt("run-1", digest(third), NOW, state="lost", outcome=Outcome(how="lost"))
    assert [receipt["kind"] for receipt in verified([first, second, third])] == ["launch", "attestation", "terminal"]
    assert next(iter(verified([first, second, third], named=[digest(third)])))["kind"] == "launch"
    assert "`kind`" in tampered([first, second, third, fourth])


def test_terminal_receipt_says_exit_contract_and_level_and_no_name_of_a_file() -> None:
    changes = (Change(path=f"src/{CANARY}", how="added"), Change(path="b", how="mode"))
    contract = ContractResult(result="violated", seen="compared", violations=changes)
    outcome = Outcome(how="exited", status=3, stdout=7, stderr=2, detail=CANARY)
    first = chain()[0]
    said: dict[str, Any] = {"state": "ended", "contract": contract, "level": "logical", "accepted": ["a-b"]}
    text = terminal_receipt("run-1", digest(first), NOW, outcome=outcome, **said)
    body = json.loads(text)["terminal"]
    jsonschema.validate(json.loads(text), SCHEMA)
    assert body["exit"] == {"how": "exited", "status": 3, "signal": None, "stage": None, "ceiling": None, "bytes": 9}
    assert (body["level"], body["accepted"], body["state"]) == ("logical", ["a-b"], "ended")
    assert (body["contract"]["result"], body["contract"]["violations"]) == ("violated", 2)
    assert CANARY not in text
    assert verified([first, text])


def test_launch_receipt_may_be_missing_only_if_the_terminal_one_says_so() -> None:
    first = chain()[0]
    lost = Outcome(how="parent-gone")
    last = terminal_receipt("run-1", None, NOW, state="never-started", outcome=lost, unwritten=[digest(first)])
    assert verified([last], named=[digest(first), digest(last)])
    assert "leaves it out" in tampered([last], named=[digest(chain(cwd="/tmp")[0]), digest(last)])
    silent = terminal_receipt("run-1", None, NOW, state="never-started", outcome=lost)
    assert "`previous`" in tampered([silent], named=[digest(first), digest(silent)])


@pytest.mark.parametrize("kind", ["launch", "attestation"])
def test_receipt_whose_kind_is_not_that_of_its_body_is_found(kind: str) -> None:
    document = {**json.loads(chain()[0]), "kind": kind, "attestation": json.loads(chain()[1])["attestation"]}
    assert "says something else" in tampered([canonical(document)])


def test_receipts_in_another_order_are_found() -> None:
    first, second = chain()
    assert "leaves it out" in tampered([first, second], named=[digest(second), digest(first)])


def test_receipts_of_another_run_are_found() -> None:
    assert "`run_id`" in tampered(chain("run-2"))
    first, _ = chain()
    _, foreign = chain("run-2")
    assert "`run_id`" in tampered([first, foreign])
    assert "`run_id`" in tampered([*chain("run-2"), first], named=[digest(first), digest(foreign)])


def test_receipt_that_follows_another_one_is_found() -> None:
    first, _ = chain()
    _, second = chain(cwd="/tmp")
    assert "no such file" in tampered([first, second])
    other = chain(cwd="/tmp")[0]
    assert "leaves it out" in tampered([first, second, other], named=[digest(first), digest(second)])


@pytest.mark.parametrize(
    "change",
    [
        {"note": "more"},
        {"kind": "export"},
        {"at": -1},
        {"at": "now"},
        {"previous": "sha256:0"},
        {"launch": {"argv": ["ls"]}},
    ],
    ids=str,
)
def test_receipt_with_more_or_less_than_its_form_has_is_found(change: dict[str, Any]) -> None:
    document = {**json.loads(chain()[0]), **change}
    tampered([canonical(document)])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_receipt_in_another_spelling_is_found() -> None:
    spaced = json.dumps(json.loads(chain()[0]), sort_keys=True)
    assert "canonical" in tampered([spaced])


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"a":1,"a":2}'])
def test_what_is_no_receipt_at_all_is_found(text: str) -> None:
    tampered([text])
