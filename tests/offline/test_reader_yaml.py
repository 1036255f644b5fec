"""The strict reader on YAML: what is refused, by which id and where, and what everything else means."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prespawn.policy.errors import HostError, ReadError
from prespawn.policy.reader import DEFAULT_BOUNDS, Bounds, Document, read, read_error

PAYLOADS = Path(__file__).parent.parent / "data" / "payloads.jsonl"

# Which payload rows the reader decides, and by which cause; `*` is every row of the id that is not named.
DECIDED: dict[str, dict[int | str, str]] = {
    "Y01": {"*": "duplicate-key"},
    "Y02": {"*": "yaml-feature"},
    "Y03": {"*": "yaml-feature"},
    "Y05": {"*": "yaml-feature"},
    "Y06": {"*": "type"},
    "Y07": {"*": "number"},
    "Y08": {"*": "non-finite"},
    "Y10": {0: "range", 1: "range", 3: "range"},
    "Y11": {"*": "too-deep"},
    "Y13": {"*": "encoding"},
    "Y15": {"*": "key-type"},
    "Y21": {0: "empty", 1: "empty", 5: "duplicate-key"},
}
# What is well-formed, and for the shape check to refuse by what it means.
LEFT_TO_SHAPE: dict[str, dict[int, object]] = {
    "Y10": {2: {"maxBytes": -1}, 4: {"maxBytes": 0}},
    "Y16": {
        0: {"readOnyl": True},
        1: {"profile": "observer-v1", "max_tokens": 5},
        2: {"\u0440rofile": "observer-v1"},
    },
    "Y18": {0: {"profile": "observer-v1\n"}, 1: {"profile": "observer-v1\n"}, 2: {"profile": "observer-v1 "}},
    "Y21": {2: None, 3: [], 4: "x"},
}


def rows() -> list[tuple[str, int, bytes, list[str]]]:
    records = map(json.loads, PAYLOADS.read_text().splitlines())
    return [
        (record["id"], record["n"], base64.b64decode(record["data"]), record["expect"])
        for record in records
        if record["id"].startswith("Y") and record["kind"] == "yaml"
    ]


def policy(data: bytes | str, bounds: Bounds = DEFAULT_BOUNDS) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return read(data, source="p.yaml", family="policy", syntax="yaml", bounds=bounds)


def refusal(data: bytes | str, bounds: Bounds = DEFAULT_BOUNDS) -> ReadError:
    with pytest.raises(ReadError) as caught:
        policy(data, bounds)
    return caught.value


def test_payload_rows_are_each_decided_once() -> None:
    assert len(rows()) == 71
    for id, n, _, _ in rows():
        decided = n in DECIDED.get(id, {}) or "*" in DECIDED.get(id, {})
        assert decided != (n in LEFT_TO_SHAPE.get(id, {})), (id, n)


@pytest.mark.parametrize(("id", "n", "data", "expect"), rows())
def test_payload_row_has_its_answer(id: str, n: int, data: bytes, expect: list[str]) -> None:
    if n in LEFT_TO_SHAPE.get(id, {}):
        assert policy(data).value == LEFT_TO_SHAPE[id][n]
        return
    causes = DECIDED[id]
    error = refusal(data)
    assert error.id == f"policy-{causes.get(n) or causes['*']}"
    assert error.cause == (causes.get(n) or causes["*"])
    # 300 kB of one repeated key: its callers refuse files by size, the reader by the second key
    assert error.id in expect or (id, n) == ("Y21", 5)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("null", None),
        ("true", True),
        ("false", False),
        ("0", 0),
        ("7", 7),
        ("-1", -1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_plain_json_scalar_is_read_as_such(word: str, value: object) -> None:
    found = policy(f"a: {word}\n").value
    assert found == {"a": value}
    assert isinstance(found, dict)
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize(
    "word",
    [
        *(".", "..", "./x", "1.2.3", "127.0.0.1", "0.0.0.0/0", "80:80", "1:60", "1h", "64MiB", "12ab", "0b12"),
        *("0xg", "1e", "1e3x", "e3", "_1", "-x", "--flag", "-", "+", "++1", "-.", "1,000", "2001-12"),
        *("2024-01-01-build", "20240101T", "v1", "none", "nope", "yess", "NaN", "inf", "nan", "Infinity"),
        *("nil", "undefined", "None", "C.UTF-8", "a:b", "http://x/y", "a#b", "x=y", "==", "<<<", "<", "~x"),
        *("~/.local", "x~", "a!b", "a&b", "a*b", "1..2", "1.2.", "0x", "0o", "é", "\u0661", "\uff11"),
        *("sandbox-v1@sha256:0", "exec@1"),
    ],
)
def test_plain_text_is_a_string(word: str) -> None:
    assert policy(f"[{word}]\n" if word in "-+" else f"a: {word}\n").value in ({"a": word}, [word])


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            "type",
            "y Y n N yes Yes YES yEs no No NO on On ON off Off OFF True TRUE tRUE False FALSE Null NULL ~ ="
            " 2001-12-14 2001-1-1 2001-12-14t21:59:43.10-05:00 2001-12-14T21:59:43Z",
        ),
        (
            "number",
            "010 00 09 0o10 0O7 0x1F 0X1f 0b11 0B1 0b_ 0x_ 1_000 1_ 0_ 0_x1F 1__0.5 1:30 190:20:30 -1:30 1:30.5 +1 +0"
            " -0 -010 1e3 1E3 1e+3 12e03 1e400 1.0 1. .5 -.5 +.5 0.0 -0.0 1.5e-3 6.8523015e+5 -0x1f",
        ),
        ("non-finite", ".nan .NaN .NAN .nAn .inf .Inf .INF -.inf +.inf +.INF"),
        ("range", "9223372036854775808 -9223372036854775809 1" + "0" * 19 + " -" + "9" * 5_000),
        ("yaml-feature", "<<"),
    ],
)
def test_plain_scalar_that_readers_differ_on_is_refused(cause: str, words: str) -> None:
    for word in words.split():
        error = refusal(f"key: {word}\n")
        assert (error.cause, error.id, error.line, error.column) == (cause, f"policy-{cause}", 1, 6), word
        assert policy(f'["{word}"]').value == [word]
        assert policy(f"['{word}']").value == [word]


@pytest.mark.parametrize("word", ["2001-12-14 21:59:43.10 -5", "2001-12-15 2:59:43"])
def test_plain_time_with_blanks_is_refused(word: str) -> None:
    assert refusal(f"- {word}\n").cause == "type"


@pytest.mark.parametrize("word", ["1", "-1", "0x1", "true", "True", "no", "on", "~", "null", "1.0", ".nan", "2001-1-1"])
def test_plain_key_that_is_not_a_string_is_refused(word: str) -> None:
    error = refusal(f"a: b\n{word}: c\n")
    assert (error.cause, error.line, error.column) == ("key-type", 2, 1)
    assert policy(f"'{word}': c\n").value == {word: "c"}


@pytest.mark.parametrize(
    ("text", "cause", "line", "column"),
    [
        # keys
        ("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", "duplicate-key", 5, 3),
        ("- {x: 1, 'y': 2, \"\\x78\": 3}\n", "duplicate-key", 1, 18),
        ("{[a]: 1}\n", "key-type", 1, 2),
        ("? {a: 1}\n: 2\n", "key-type", 1, 3),
        ("a: 1\n? [b]\n: 2\n", "key-type", 2, 3),
        ("{: 1}\n", "syntax", 1, 2),
        ("{a: 1, ? : 2}\n", "key-type", 1, 10),
        # empty values
        ("a:\nb: 1\n", "type", 1, 3),
        ("a: 1\nb:", "type", 2, 3),
        ("- 1\n-\n", "type", 2, 2),
        ("{a}\n", "type", 1, 3),
        ("{a:1}\n", "type", 1, 5),
        ("? a\n", "type", 2, 1),
        # what YAML has beyond JSON
        ("a: 1\nb: [x, &y z]\n", "yaml-feature", 2, 8),
        ("a: *b\n", "yaml-feature", 1, 4),
        ("&a b: 1\n", "yaml-feature", 1, 1),
        ("{&a b: 1}\n", "yaml-feature", 1, 2),
        ("{*a : 1}\n", "yaml-feature", 1, 2),
        ("- &a [x]\n", "yaml-feature", 1, 3),
        ("a: {<<: {b: 1}}\n", "yaml-feature", 1, 5),
        ("- ! 12\n", "yaml-feature", 1, 3),
        ("- ! '12'\n", "yaml-feature", 1, 3),
        ("- ! [a]\n", "yaml-feature", 1, 3),
        ("a: !\nb: 1\n", "yaml-feature", 1, 4),
        ("a: !!str\n", "yaml-feature", 1, 4),
        ("a: !e!x 1\n", "yaml-feature", 1, 4),
        ("a: !!\n", "yaml-feature", 1, 6),
        ("a: !<tag:x,1:y> z\n", "yaml-feature", 1, 4),
        ("a: !%ED%A0%80 z\n", "yaml-feature", 1, 4),
        ("a: &\n", "yaml-feature", 1, 5),
        ("%YAML 1.2\n---\na: 1\n", "yaml-feature", 1, 1),
        ("# c\n%FOO\n--- a\n", "yaml-feature", 2, 1),
        ("a: 1\n...\n%TAG ! x\n--- b\n", "yaml-feature", 3, 1),
        ("a: 1\n---\nb: 2\n", "yaml-feature", 2, 1),
        ("a: 1\n--- # nothing\n", "yaml-feature", 2, 1),
        ("a: 1\n...\n---\n", "yaml-feature", 3, 1),
        # lines that an editor does not show as such
        ("# c\u2028network: host\n", "syntax", 1, 4),
        ("a: b\u2029c: d\n", "syntax", 1, 5),
        ("a: b\x85c: d\n", "syntax", 1, 5),
        ("a: 1\r\n# c\rnetwork: host\r\n", "syntax", 2, 4),
        ("a: 1\n\ufeffb: 2\n", "encoding", 2, 1),
        # libyaml's own
        ("a: b: c\n", "syntax", 1, 5),
        ("a: 1\n\tb: 2\n", "syntax", 2, 1),
        ("a: [1, 2\n", "syntax", 2, 1),
        ("a: 'x\n", "syntax", 2, 1),
        ("a: @x\n", "syntax", 1, 4),
        ("a: `x`\n", "syntax", 1, 4),
        ('a: "\\q"\n', "syntax", 1, 5),
        ('é: "\\ud800"\n', "encoding", 1, 7),
        ("é: ü\nb: \x01\n", "syntax", 2, 4),
        ("a: [é, \x7f]\n", "syntax", 1, 8),
        ("[a] b\n", "syntax", 1, 5),
        ("}\n", "syntax", 1, 1),
        # places after wide characters and CR LF
        ("\U0001f600: \U0001f600 x\r\nb: [\U0001f600, no]\r\n", "type", 2, 8),
        ("# c\r\n\r\na: {b: 1.5}\r\n", "number", 3, 8),
        # nothing at all
        ("", "empty", 1, 1),
        ("\n  \n# c\n", "empty", 1, 1),
        ("---\n", "empty", 1, 1),
        ("---\n# c\n...\n", "empty", 1, 1),
    ],
)
def test_refusal_has_cause_and_place(text: str, cause: str, line: int, column: int) -> None:
    error = refusal(text)
    assert (error.cause, error.line, error.column) == (cause, line, column), str(error)
    assert error.id == f"policy-{cause}"


@pytest.mark.parametrize(
    ("data", "column"),
    [
        (b"\xef\xbb\xbfa: 1\n", 1),
        ("a: 1\n".encode("utf-16"), 1),
        ("a: 1\n".encode("utf-16-le"), 2),
        ("a: 1\n".encode("utf-16-be"), 1),
        ("a: 1\n".encode("utf-32"), 1),
        ("a: 1\n".encode("utf-32-be"), 1),
        ("aé: ü\n".encode("latin-1"), 2),
        (b"a: \xc0\xaf\n", 4),
        (b"a: \xed\xa0\xbd\xed\xb8\x80\n", 4),
        (b"\xc3\xa9: \xf4\x90\x80\x80\n", 4),
        (b"a: \xe2\x80", 4),
        (b"a: x\x00y\n", 5),
    ],
)
def test_encoding_other_than_utf_8_is_refused_at_its_byte(data: bytes, column: int) -> None:
    error = refusal(data)
    assert (error.id, error.line, error.column) == ("policy-encoding", 1, column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: no\n", "plain `no` is not a string to every reader; allowed here: `true`, `false`, `null`; quote it if"),
        ("a: 1\na: 2\n", "key `a` stands here twice, first at line 1, column 1; keep one"),
        ("a: !!str 1\n", "tag `tag:yaml.org,2002:str`; allowed here: plain YAML without"),
        ("a: &x 1\n", "anchor `&x`; allowed here: plain YAML without"),
        ('"a\\nb\\e": 1\n"a\\nb\\e": 2\n', "key `a\\x0ab\\x1b` stands here twice"),
        ("a: 9" + "1" * 5_000, "number `" + "9" + "1" * 39 + "...`; allowed here: -9223372036854775808 to"),
        ("a: 'x", "not YAML: while scanning a quoted scalar: found unexpected end of stream"),
        ("a: \x1b[2J", "character `\\x1b`; write it as an escape"),
    ],
)
def test_refusal_says_what_was_found(text: str, message: str) -> None:
    error = refusal(text)
    assert error.message.startswith(message)
    assert str(error) == f"p.yaml:{error.line}:{error.column}: {error.message} ({error.id})"
    assert str(error).isprintable()


def test_quoted_and_block_scalars_are_strings() -> None:
    text = "a: 'no'\nb: \"010\"\nc: |\n  1\nd: >-\n  true\n  ~\ne: \"\\0\\n\\u2028\"\nf: ''\n"
    assert policy(text).value == {"a": "no", "b": "010", "c": "1\n", "d": "true ~", "e": "\0\n\u2028", "f": ""}


def test_one_document_may_have_its_markers() -> None:
    assert policy("# c\n---\na: 1\n...\n# c\n").value == {"a": 1}
    assert policy("--- x\n").value == "x"


def test_root_may_be_any_value() -> None:
    assert [policy(text).value for text in ("null", "[]", "x", "7", "{}", "''")] == [None, [], "x", 7, {}, ""]


def test_bounds_hold_exactly() -> None:
    bounds = Bounds(bytes=12, depth=3, nodes=4)
    assert policy("[[[1]]]\n", bounds).value == [[[1]]]
    assert refusal("[[[[]]]]\n", bounds).cause == "too-deep"
    assert policy("[1, 2, 3]\n", bounds).value == [1, 2, 3]
    error = refusal("[1, 2, 3,4]\n", bounds)
    assert (error.cause, error.column) == ("too-large", 10)
    assert refusal("{a: 1, b}\n", bounds).cause == "type"  # root, two keys and one value are within bounds
    error = refusal("# 0123456789\n", bounds)
    assert (error.cause, error.id, error.line, error.column) == ("too-large", "policy-too-large", 0, 0)
    assert str(error) == "p.yaml: 13 bytes; allowed here: up to 12 (policy-too-large)"


@pytest.mark.parametrize(
    ("data", "cause", "column"),
    [
        (b"[" * 2_000, "too-deep", 1_001),  # libyaml's own bound; without it the place would be 33
        (b"[" * 40_000, "too-deep", 1_001),
        (b"- " * 20_000 + b"x\n", "too-deep", 65),
        (b"? " * 20_000 + b"x\n", "key-type", 3),
        (b"{a: " * 250_000, "too-deep", 129),
        (b"".join(b"%%TAG !t%d! x\n" % n for n in range(60_000)) + b"--- a\n", "yaml-feature", 1),
        (b"- a\n" * 250_000, "too-large", 3),
        (b"- " + b"1" * 1_000_000 + b"x:y\n- " + b"_1" * 10_000 + b"no\n- no\n", "type", 3),
    ],
)
def test_hostile_size_ends_soon(data: bytes, cause: str, column: int) -> None:
    start = time.perf_counter()
    error = refusal(data)
    assert time.perf_counter() - start < 1
    assert error.cause == cause
    assert error.column in (column, 33)


def test_alias_bomb_costs_neither_time_nor_memory() -> None:
    bomb = next(data for id, _, data, _ in rows() if id == "Y03")
    program = (
        "import sys, time\n"
        "from prespawn.policy.reader import read\n"
        "from prespawn.policy.errors import ReadError\n"
        "start = time.perf_counter()\n"
        "try: read(sys.stdin.buffer.read(), source='s', family='policy', syntax='yaml')\n"
        "except ReadError as error: print(error.id)\n"
        "print(time.perf_counter() - start, open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=bomb, capture_output=True, check=True)
    id, numbers = done.stdout.decode().splitlines()
    seconds, kibibytes = map(float, numbers.split())
    assert id == "policy-yaml-feature"
    assert seconds < 0.1  # importing PyYAML included
    assert kibibytes < 50 * 1024


def test_position_names_values_and_keys() -> None:
    document = policy("a: 1\nb:\n  - x\n  - {c: [], d: 'é'}\n")
    assert document.position() == (1, 1)
    assert document.position("a") == (1, 4)
    assert document.position("a", key=True) == (1, 1)
    assert document.position("b") == (3, 3)
    assert document.position("b", key=True) == (2, 1)
    assert document.position("b", 0) == (3, 5)
    assert document.position("b", 0, key=True) == (3, 5)
    assert document.position("b", 1) == (4, 5)
    assert document.position("b", 1, "d") == (4, 16)
    assert document.position("b", 1, "d", key=True) == (4, 13)


def test_position_of_what_is_missing_is_the_last_value_met() -> None:
    document = policy("a: 1\nb:\n  - x\n")
    assert document.position("b", 7) == document.position("b", -1) == document.position("b", "x") == (3, 3)
    assert document.position("c") == document.position("c", "d", key=True) == (1, 1)
    assert document.position("a", "b", key=True) == (1, 4)


def test_position_of_a_root_that_is_no_container() -> None:
    assert policy("# c\n\n  x\n").position() == (3, 3)


def test_document_error_has_id_place_and_source() -> None:
    error = policy("a:\n  b: 7\n").error("pattern", "b is `7`; allowed here: `x`", "a", "b")
    assert str(error) == "p.yaml:2:6: b is `7`; allowed here: `x` (policy-pattern)"
    error = policy("a:\n  b: 7\n").error("unknown-key", "unknown key `b`", "a", "b", key=True)
    assert (error.id, error.line, error.column) == ("policy-unknown-key", 2, 3)


@pytest.mark.parametrize(
    ("cause", "id"),
    [
        ("unknown-key", "input-unknown-key"),
        ("missing-key", "input-missing-key"),
        ("unreadable", "input-unreadable"),
        ("empty", "input-empty"),
        ("duplicate-key", "input-invalid"),
        ("encoding", "input-invalid"),
        ("type", "input-invalid"),
        ("syntax", "input-invalid"),
    ],
)
def test_input_family_keeps_the_cause_beside_its_id(cause: str, id: str) -> None:
    error = read_error(cause, "m", source="s", family="input")
    assert (error.id, error.cause, str(error)) == (id, cause, f"s: m ({id})")
    assert read_error(cause, "m", source="s", family="policy").id == f"policy-{cause}"


def test_yaml_of_the_input_family_is_input_invalid() -> None:
    with pytest.raises(ReadError) as caught:
        read(b"a: 1\na: 2\n", source="d.yaml", family="input", syntax="yaml")
    assert (caught.value.id, caught.value.cause, caught.value.line) == ("input-invalid", "duplicate-key", 2)


def test_document_repr_holds_no_content() -> None:
    assert repr(policy("prompt: secret\n")) == "Document(source='p.yaml', family='policy')"


@pytest.mark.parametrize("missing", ["yaml._yaml", "yaml"])
def test_reader_without_libyaml_is_a_host_error(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.delitem(sys.modules, "prespawn.policy.yaml_reader", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(HostError) as caught:
        policy("a: 1\n")
    assert caught.value.id == "reader-unavailable"
    assert str(caught.value) == (
        "YAML cannot be read: PyYAML with its C parser (libyaml) is missing; install a binary wheel of `PyYAML`"
    )
