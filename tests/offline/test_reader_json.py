"""The strict reader on JSON: the grammar, no more, and the places."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prespawn.policy.errors import ReadError
from prespawn.policy.reader import DEFAULT_BOUNDS, Bounds, Document, read

PAYLOADS = Path(__file__).parent.parent / "data" / "payloads.jsonl"

# All rows of kind json are the reader's to decide; the cause of each, in order of `n`.
CAUSES = (
    *("duplicate-key", "non-finite", "non-finite", "number", "encoding", "encoding", "encoding", "syntax"),
    *("syntax", "syntax", "encoding", "range", "too-deep", "encoding", "duplicate-key"),
)


def rows() -> list[tuple[str, int, bytes, list[str]]]:
    records = map(json.loads, PAYLOADS.read_text().splitlines())
    return [
        (record["id"], record["n"], base64.b64decode(record["data"]), record["expect"])
        for record in records
        if record["id"].startswith("Y") and record["kind"] == "json"
    ]


def declared(data: bytes | str, bounds: Bounds = DEFAULT_BOUNDS) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return read(data, source="d.json", family="input", syntax="json", bounds=bounds)


def refusal(data: bytes | str, bounds: Bounds = DEFAULT_BOUNDS) -> ReadError:
    with pytest.raises(ReadError) as caught:
        declared(data, bounds)
    return caught.value


def test_payload_rows_are_all_here() -> None:
    assert [(id, n) for id, n, _, _ in rows()] == [("Y24", n) for n in range(len(CAUSES))]


@pytest.mark.parametrize(("id", "n", "data", "expect"), rows())
def test_payload_row_has_its_answer(id: str, n: int, data: bytes, expect: list[str]) -> None:
    error = refusal(data)
    assert (error.id, error.cause) == ("input-invalid", CAUSES[n])
    assert error.id in expect
    with pytest.raises(ReadError) as caught:
        read(data, source="p.json", family="policy", syntax="json")
    assert (caught.value.id, caught.value.cause) == (f"policy-{CAUSES[n]}", CAUSES[n])


@pytest.mark.parametrize(
    "text",
    [
        "null",
        " true ",
        "false",
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        '""',
        "{}",
        "[]",
        "[[], {}, [{}]]",
        '\t\r\n{ "a" : [ 1 , 2 ] , "b" : { "c" : null } }\r\n',
        '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\ud83d\\ude00"',
        '"é \u2028 \x7f \ufeff no"',
        '{"": "", " ": 1, "<<": "*a", "&x": "!!str"}',
        '{"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}',
    ],
)
def test_json_is_read_as_python_reads_it(text: str) -> None:
    assert declared(text).value == json.loads(text)


@pytest.mark.parametrize(
    ("text", "cause", "line", "column"),
    [
        ("", "empty", 1, 1),
        (" \n\t ", "empty", 1, 1),
        # equal keys
        ('{"profile": "a",\n "profile": "b"}', "duplicate-key", 2, 2),
        ('{"x": [1, {"é": 1, "\\u00e9": 2}]}', "duplicate-key", 1, 20),
        # numbers
        ("1.0", "number", 1, 1),
        ("[1e3]", "number", 1, 2),
        ("[0,\n -0]", "number", 2, 2),
        ("[01]", "number", 1, 2),
        ("[+1]", "number", 1, 2),
        ("[.5]", "number", 1, 2),
        ("[1.]", "number", 1, 2),
        ("[-]", "number", 1, 2),
        ("[--1]", "number", 1, 2),
        ("[0x1F]", "number", 1, 2),
        ("[1_000]", "number", 1, 2),
        ("[\uff11]", "syntax", 1, 2),
        ("[1\u0661]", "number", 1, 2),
        ("[9223372036854775808]", "range", 1, 2),
        ("[-9223372036854775809]", "range", 1, 2),
        ("[NaN]", "non-finite", 1, 2),
        ("[-Infinity]", "non-finite", 1, 2),
        ("[-NaN]", "number", 1, 2),
        # words
        ("[True]", "syntax", 1, 2),
        ("[nul]", "syntax", 1, 2),
        ("[nulll]", "syntax", 1, 2),
        ("[undefined]", "syntax", 1, 2),
        ("['a']", "syntax", 1, 2),
        ("{a: 1}", "syntax", 1, 2),
        ("{1: 1}", "syntax", 1, 2),
        ("{null: 1}", "syntax", 1, 2),
        # structure
        ("[", "syntax", 1, 2),
        ("{", "syntax", 1, 2),
        ("[1", "syntax", 1, 3),
        ("[1,", "syntax", 1, 4),
        ("[1,]", "syntax", 1, 4),
        ("[,1]", "syntax", 1, 2),
        ("[1 2]", "syntax", 1, 4),
        ("[1}", "syntax", 1, 3),
        ("]", "syntax", 1, 1),
        ("{]", "syntax", 1, 2),
        ('{"a"', "syntax", 1, 5),
        ('{"a"}', "syntax", 1, 5),
        ('{"a":', "syntax", 1, 6),
        ('{"a":}', "syntax", 1, 6),
        ('{"a" 1}', "syntax", 1, 6),
        ('{"a":1', "syntax", 1, 7),
        ('{"a":1,\n}', "syntax", 2, 1),
        ('{"a":1]', "syntax", 1, 7),
        ("1 2", "syntax", 1, 3),
        ("{}{}", "syntax", 1, 3),
        ("{},", "syntax", 1, 3),
        ('[1] // c"', "syntax", 1, 5),
        ("# c\n[1]", "syntax", 1, 1),
        ("[1 /* c */]", "syntax", 1, 4),
        ("\x0c[]", "syntax", 1, 1),
        ("\xa0[]", "syntax", 1, 1),
        ("[]\ufeff", "syntax", 1, 3),
        # strings
        ('"a', "syntax", 1, 1),
        ('["a\nb"]', "syntax", 1, 4),
        ('["a\tb"]', "syntax", 1, 4),
        ('["\\x41"]', "syntax", 1, 3),
        ('["\\u12"]', "syntax", 1, 3),
        ('["\\u+041"]', "syntax", 1, 3),
        ('["\\u00_1"]', "syntax", 1, 3),
        ('["\\u004\uff11"]', "syntax", 1, 3),
        ('["\\U0041"]', "syntax", 1, 3),
        ('["\\', "syntax", 1, 2),
        ('["a\\"]', "syntax", 1, 2),
        ('["\\ud800"]', "encoding", 1, 3),
        ('["a\\n\\ud800x"]', "encoding", 1, 6),
        ('["\\udc00\\ud800"]', "encoding", 1, 3),
        ('["\\ud83d\\u0041"]', "encoding", 1, 3),
        ('["\\ud83d\\ud83d\\ude00"]', "encoding", 1, 3),
        ('["\\ud83d\\uzzzz"]', "syntax", 1, 9),
        ('{"\\uDFFF": 1}', "encoding", 1, 3),
    ],
)
def test_refusal_has_cause_and_place(text: str, cause: str, line: int, column: int) -> None:
    error = refusal(text)
    assert (error.cause, error.line, error.column) == (cause, line, column), str(error)
    assert error.id == ("input-empty" if cause == "empty" else "input-invalid")
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("data", "column"),
    [
        (b'\xef\xbb\xbf{"a": 1}', 1),
        ('{"a": 1}'.encode("utf-16"), 1),
        ('{"a": 1}'.encode("utf-16-be"), 1),
        ('{"a": 1}'.encode("utf-32-le"), 2),
        (b'{"a": "\xc0\xaf"}', 8),
        (b'{"\xc3\xa9": "\xed\xa0\x80"}', 8),
        (b'["a\x00"]', 4),
    ],
)
def test_encoding_other_than_utf_8_is_refused_at_its_byte(data: bytes, column: int) -> None:
    error = refusal(data)
    assert (error.id, error.cause, error.line, error.column) == ("input-invalid", "encoding", 1, column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1.5]", "number `1.5`; allowed here: plain decimal integers, such as `30`"),
        ("[1] // x", "not JSON: found `//`; allowed here: nothing after the value; JSON has no comments"),
        ('{"a":1,}', "not JSON: found `}`; allowed here: a key in double quotes"),
        ("[1", "not JSON: found the end; allowed here: `,` or `]`"),
        ("[\x1b]", "not JSON: found `\\x1b`; allowed here: a JSON value"),
        ('["\x1b"]', "not JSON: control character `\\x1b` in a string; write it as an escape"),
        ('["a', "not JSON: a string without its closing quote"),
        (
            '"\\x41"',
            'not JSON: escape `\\x`; allowed here: `\\"`, `\\\\`, `\\/`, `\\b`, `\\f`, `\\n`, `\\r`, `\\t`, `\\uXXXX`',
        ),
        ("[NaN]", "`NaN` is not JSON; allowed here: plain decimal integers"),
    ],
)
def test_refusal_says_what_was_found(text: str, message: str) -> None:
    assert refusal(text).message == message


def test_bounds_hold_exactly() -> None:
    bounds = Bounds(bytes=12, depth=3, nodes=4)
    assert declared("[[[1]]]", bounds).value == [[[1]]]
    error = refusal("[[[[]]]]", bounds)
    assert (error.cause, error.column) == ("too-deep", 4)
    assert declared("[1, 2, 3]", bounds).value == [1, 2, 3]
    error = refusal("[1, 2, 3,4]", bounds)
    assert (error.cause, error.column) == ("too-large", 10)
    assert declared('{"a":{}}', bounds).value == {"a": {}}
    assert refusal('{"a":[1,2]}', bounds).cause == "too-large"
    error = refusal('"01234567890"', bounds)
    assert (error.cause, error.id, error.line, error.column) == ("too-large", "input-invalid", 0, 0)


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"[" * 1_000_000, "too-deep"),
        (b'{"a":' * 200_000, "too-deep"),
        (b"1" * 1_000_000, "range"),
        (b"x" * 1_000_000, "syntax"),
        (b" " * 1_000_000, "empty"),
        (b'"' + b"a" * 1_000_000, "syntax"),
        (b'["' + b"\\u0041" * 170_000 + b'", x]', "syntax"),
        (b'["' + b"\\n" * 500_000 + b'", x]', "syntax"),
        (b'["' + b'\\"' * 500_000 + b'", x]', "syntax"),
        (b'["' + b'\\"' * 500_000, "syntax"),
        (b"[" + b"0," * 500_000, "too-large"),
    ],
)
def test_hostile_size_ends_soon(data: bytes, cause: str) -> None:
    start = time.perf_counter()
    assert refusal(data).cause == cause
    assert time.perf_counter() - start < 1


def test_position_names_values_and_keys() -> None:
    document = declared('{"a": 1,\n "b": ["x", {"é": [], "d": -7}]\n}')
    assert document.position() == (1, 1)
    assert document.position("a") == (1, 7)
    assert document.position("a", key=True) == (1, 2)
    assert document.position("b") == (2, 7)
    assert document.position("b", 0) == (2, 8)
    assert document.position("b", 1, "é") == (2, 19)
    assert document.position("b", 1, "d", key=True) == (2, 23)
    assert document.position("b", 1, "d") == (2, 28)
    assert document.position("b", 2) == (2, 7)


def test_document_error_has_the_input_id() -> None:
    error = declared('{"a": {"b": 1}}').error("unknown-key", "unknown key `b`", "a", "b", key=True)
    assert str(error) == "d.json:1:8: unknown key `b` (input-unknown-key)"


def test_json_readers_do_not_pay_for_yaml() -> None:
    program = (
        "import sys\n"
        "from prespawn.policy.errors import InputError\n"
        "from prespawn.policy.reader import read\n"
        "before = set(sys.modules)\n"
        "read(b'[1]', source='s', family='input', syntax='json')\n"
        "for bad in (b'', b'[', b'[1.5]', b'\"a', b'\"\\\\x\"', b'\"\\\\ud800\"', b'[1]x', b'\\xff', b'[\"\\x01\"]'):\n"
        "    try: read(bad, source='s', family='input', syntax='json')\n"
        "    except InputError: pass\n"
        "    else: sys.exit(f'{bad!r} was read')\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.split() == [f"prespawn.policy.{name}" for name in ("json_reader", "spelling", "tree")]
