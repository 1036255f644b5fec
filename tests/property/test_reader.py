"""Properties of the strict reader: total, and never of another mind than the readers whose files it guards."""

from __future__ import annotations

import json
from itertools import starmap
from typing import TYPE_CHECKING

import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from prespawn.policy.canonical import canonical
from prespawn.policy.errors import ReadError
from prespawn.policy.reader import Document, read
from prespawn.policy.tree import integer
from prespawn.policy.yaml_reader import judged

if TYPE_CHECKING:
    from prespawn.policy.reader import Syntax

SYNTAXES: st.SearchStrategy[Syntax] = st.sampled_from(["yaml", "json"])

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["no", "010", "1:30", "~", "<<", "*a", "&a", "!!str", ".", "1.5", "2001-01-01", "\r", "\x85"])
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)

DOCUMENTS = [
    b"prespawn: declaration/v1\nrun_id: fix-42\nprofile: sandbox-v1\ndeclared_files: [src/login.py]\nexecute: false\n",
    b"limits:\n  wall_clock: 1h\n  processes: 1024\nnote: |\n  two\n  lines\nargv: ['sh', \"-c\", {a: null}]\n",
    b"- a: 1\n  b: 2\n-\n  - x\n  - 'y'\n- >-\n  folded\n  text\n- ? k\n  : v\n...\n",
    b'{"a": [1, -2, true, null, "x\\u00e9\\n"], "b": {"c": {}, "d": []}}\n',
]
PIECES = [
    *(b"- ", b": ", b"? ", b"{", b"}", b"[", b"]", b",", b"#", b"\n", b"\r", b"\t", b"  ", b"'", b'"', b"\\", b"|"),
    *(b">", b"&a ", b"*a", b"!t ", b"!!str ", b"!", b"%TAG ! x\n", b"---\n", b"...\n", b"@", b"`", b"<<: ", b"a: "),
    *(b"~", b"no", b"010", b"0x1", b"1e3", b"1_0", b".5", b"-0", b".nan", b"NaN", b"2001-01-01", b"9" * 30),
    *(b"a: 1\n", b"[" * 40, b"%41", b"!%ED%A0%80 ", b"\\u", b"\\ud800", b"\\ude00", b"\\x", b"\x00", b"\x01"),
    *(b"\x7f", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80"),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid document with a few pieces put in, doubled or taken out."""
    data = draw(st.sampled_from(DOCUMENTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 6)))
        piece = draw(st.sampled_from([*PIECES, b"", data[start:end] * 2]) | st.binary(max_size=3))
        data = data[:start] + piece + data[end:]
    return data


def attempt(data: bytes, syntax: Syntax) -> Document | ReadError:
    try:
        return read(data, source="f", family="policy", syntax=syntax)
    except ReadError as error:
        return error


def assert_total(data: bytes, syntax: Syntax) -> None:
    result = attempt(data, syntax)
    if isinstance(result, ReadError):
        assert result.id == f"policy-{result.cause}"
        assert str(result).isprintable()
        if result.cause != "too-large":
            lines = data.count(b"\n") + 1
            assert 1 <= result.line <= lines + 1
            assert 1 <= result.column <= len(data) + 2


@given(data=st.binary(max_size=200), syntax=SYNTAXES)
def test_any_bytes_are_read_or_refused(data: bytes, syntax: Syntax) -> None:
    assert_total(data, syntax)


@given(text=st.text(max_size=100), syntax=SYNTAXES)
def test_any_text_is_read_or_refused(text: str, syntax: Syntax) -> None:
    assert_total(text.encode("utf-8", "surrogatepass"), syntax)


@given(data=mutated(), syntax=SYNTAXES)
@settings(deadline=None)
def test_mutated_documents_are_read_or_refused(data: bytes, syntax: Syntax) -> None:
    assert_total(data, syntax)


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=20), syntax=SYNTAXES)
@settings(deadline=None)
def test_syntax_soup_is_read_or_refused(pieces: list[bytes], syntax: Syntax) -> None:
    assert_total(b"".join(pieces), syntax)


@given(value=VALUES, indent=st.none() | st.integers(0, 3), ascii=st.booleans())
def test_json_that_python_writes_is_read_as_written(value: object, indent: int | None, ascii: bool) -> None:
    document = attempt(json.dumps(value, indent=indent, ensure_ascii=ascii).encode(), "json")
    assert isinstance(document, Document)
    assert canonical(document.value) == canonical(value)


@given(data=mutated() | st.text(alphabet='{}[]",:0123456789-+.eE \\utrfalsn\n', max_size=20).map(str.encode))
@settings(deadline=None)
def test_json_that_is_read_means_the_same_to_python(data: bytes) -> None:
    document = attempt(data, "json")
    if isinstance(document, Document):
        assert canonical(json.loads(data)) == canonical(document.value)


@given(data=mutated() | st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join))
@example(b"{a: 1, b: [x]}")
@settings(deadline=None)
def test_yaml_that_is_read_means_the_same_to_pyyaml(data: bytes) -> None:
    document = attempt(data, "yaml")
    if isinstance(document, Document):
        assert canonical(yaml.load(data, yaml.CSafeLoader)) == canonical(document.value)


@given(value=VALUES, indent=st.none() | st.integers(0, 3))
def test_json_text_means_the_same_as_yaml(value: object, indent: int | None) -> None:
    as_yaml = attempt(json.dumps(value, indent=indent).encode(), "yaml")
    if isinstance(as_yaml, ReadError):  # YAML escapes know no surrogate pairs
        assert as_yaml.cause == "encoding"
        assume(False)
    else:
        assert canonical(as_yaml.value) == canonical(value)


@given(value=VALUES, syntax=SYNTAXES, indent=st.none() | st.integers(0, 3))
def test_every_value_has_its_place(value: object, syntax: Syntax, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    document = attempt(text.encode(), syntax)
    assume(isinstance(document, Document))
    assert isinstance(document, Document)
    lines = text.split("\n")
    for pointer, part in pointers(document.value):
        line, column = document.position(*pointer)
        assert lines[line - 1][column - 1] == json.dumps(part)[0]
        if pointer and isinstance(pointer[-1], str):
            line, column = document.position(*pointer, key=True)
            assert lines[line - 1].startswith(json.dumps(pointer[-1]), column - 1)


def pointers(value: object, *above: str | int) -> list[tuple[tuple[str | int, ...], object]]:
    parts: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    below = starmap(lambda part, inner: pointers(inner, *above, part), parts)
    return [(above, value), *(found for some in below for found in some)]


RESOLVERS = sorted({regex for all in yaml.SafeLoader.yaml_implicit_resolvers.values() for _, regex in all}, key=str)
CORE_SCHEMA = [  # YAML 1.2.2, section 10.3.2
    r"\A(?:null|Null|NULL|~|)\Z",
    r"\A(?:true|True|TRUE|false|False|FALSE)\Z",
    r"\A[-+]?[0-9]+\Z",
    r"\A0o[0-7]+\Z",
    r"\A0x[0-9a-fA-F]+\Z",
    r"\A[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z",
    r"\A[-+]?(?:\.inf|\.Inf|\.INF)\Z",
    r"\A(?:\.nan|\.NaN|\.NAN)\Z",
]
READ_AS_SUCH = {"null", "true", "false"}


def assert_no_string(word: str) -> None:
    cause, value = judged(word)
    assert cause or word in READ_AS_SUCH or (isinstance(value, int) and str(value) == word)


@given(word=st.sampled_from(RESOLVERS).flatmap(lambda regex: st.from_regex(regex, fullmatch=True)))
def test_what_yaml_1_1_resolves_is_never_a_string(word: str) -> None:
    assume("\n" not in word and word not in ("!", "&", "*"))  # indicators: PyYAML lists them, its scanner stops before
    assert_no_string(word)


@given(word=st.sampled_from(CORE_SCHEMA).flatmap(st.from_regex))
def test_what_yaml_1_2_resolves_is_never_a_string(word: str) -> None:
    assert_no_string(word)


@given(word=st.text("0123456789-+._eExXoObB:", max_size=24))
def test_integers_are_those_that_json_and_python_agree_on(word: str) -> None:
    found = integer(word)
    if isinstance(found, int):
        assert type(json.loads(word)) is int
        assert json.loads(word) == found
        assert str(found) == word
    elif found[0] == "number":
        assert word == "-0" or not (word.lstrip("-").isdigit() and str(int(word.lstrip("-"))) == word.removeprefix("-"))
