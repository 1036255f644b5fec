"""Names are judged by their spelling before anything is looked for."""

from __future__ import annotations

import pytest
from support.facts_world import payloads

from prespawn.policy.spelling import (
    climbs,
    is_absolute,
    is_canonical,
    is_env_key,
    is_printable_name,
    is_run_id,
    shown,
    shown_ascii,
    shown_word,
)


@pytest.mark.parametrize("name", ["", "a", "src/ä.py", "日本/x", "a b", "é\u0301", "emoji \U0001f600", "na\u200cme"])
def test_printable_name_accepts_what_people_write(name: str) -> None:
    assert is_printable_name(name)


@pytest.mark.parametrize(
    "name",
    ["a\0b", "\n", "\t", "\x1b[2J", "\x7f", "\x80", "a\x85b", "\x9f", "ä\n"]
    + ["\ud800", "\udcff", "ä\udfff", "\u2028", "\u2029"]
    + [f"a{chr(code)}b" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))],
)
def test_printable_name_refuses_what_moves_the_reader(name: str) -> None:
    assert not is_printable_name(name)


@pytest.mark.parametrize(("path", "answer"), [("/a", True), ("/", True), ("a", False), ("", False), ("~/a", False)])
def test_absolute_begins_at_the_root(path: str, answer: bool) -> None:
    assert is_absolute(path) is answer


@pytest.mark.parametrize(
    ("path", "answer"),
    [("..", True), ("a/../b", True), ("/..", True), ("a..b", False), ("...", False), ("a/..b", False), ("", False)],
)
def test_climbs_is_any_whole_component(path: str, answer: bool) -> None:
    assert climbs(path) is answer


@pytest.mark.parametrize("path", ["a", "a/b", "a b/c", ".git", "..a", "a/...", "~/x", "$HOME/x", "*.py"])
def test_canonical_accepts_the_one_spelling(path: str) -> None:
    assert is_canonical(path)


@pytest.mark.parametrize(
    "path", ["", ".", "..", "./a", "a//b", "a/./b", "a/", "/a", " a", "a ", "\u00a0a", "a/..", "a/../b", "\ta"]
)
def test_canonical_refuses_every_other(path: str) -> None:
    assert not is_canonical(path)


@pytest.mark.parametrize("text", ["a", "0", "fix-login-42", "a" * 63, "a-", "a--b"])
def test_run_id_accepts(text: str) -> None:
    assert is_run_id(text)


@pytest.mark.parametrize(
    "text", ["-a", "A", "a" * 64, "a_b", "a\n", "ä", "", "٣", "a b", *(payload["data"] for payload in payloads("P28"))]
)
def test_run_id_refuses(text: str) -> None:
    assert not is_run_id(text)


@pytest.mark.parametrize("text", ["A", "_", "LANG", "a1", "_9"])
def test_env_key_accepts(text: str) -> None:
    assert is_env_key(text)


@pytest.mark.parametrize("text", ["", "1A", "A=B", "A\0", "A\n", "Ä", "A B", "BASH_FUNC_x%%", "A-B", "A٣"])
def test_env_key_refuses(text: str) -> None:
    assert not is_env_key(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("src/ä.py", "src/ä.py"),
        ("a\nb", r"a\x0ab"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\udcff", r"\udcff"),
        ("\u202e", r"\u202e"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_shown_escapes_what_is_not_printable(text: str, answer: str) -> None:
    assert shown(text) == answer


@pytest.mark.parametrize(
    ("word", "text", "ascii_text"),
    [
        ("a\nb\x1b\u202e`", "a\\x0ab\\x1b\\u202e`", "a\\x0ab\\x1b\\u202e`"),
        ("größe", "größe", "gr\\xf6\\xdfe"),
        ("\u0430dmin", "\u0430dmin", "\\u0430dmin"),
        ("x" * 40, "x" * 40, "x" * 40),
        ("x" * 41, "x" * 40 + "...", "x" * 40 + "..."),
        ("\u0430" * 41, "\u0430" * 40 + "...", "\\u0430" * 40 + "..."),
        ("\U0001f600\udcff", "\U0001f600\\udcff", "\\U0001f600\\udcff"),
    ],
    ids=ascii,
)
def test_shown_word_is_one_line_of_bounded_length(word: str, text: str, ascii_text: str) -> None:
    assert (shown_word(word), shown_ascii(word)) == (text, ascii_text)
