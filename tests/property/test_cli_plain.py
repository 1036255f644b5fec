"""Whatever the small reader of plain lines accepts, click reads alike: the same command with the same values.

Lines are made of the words that either of them could take for something: options with a value apart, joined or missing,
abbreviations, ``--`` anywhere, empty strings. Both sides end in the command's own function, which only records here.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prespawn.cli import check, exec
from prespawn.cli.commands import cli, with_click
from prespawn.cli.plain import CHECK_VALUES, EXEC_VALUES, MANY, read_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Call = tuple[str, dict[str, Any]]

NAMES = {"check": (*CHECK_VALUES, "--workspace"), "exec": (*EXEC_VALUES, *MANY)}
SIGNATURES = {"check": inspect.signature(check.run), "exec": inspect.signature(exec.run)}
ALL = sorted({name for names in NAMES.values() for name in names})
VALUES = ("a.yaml", "main=.", "text", "json", "TZ", "sandbox-v1", "a b", "ä", "\udcff", "--", "-", "-h", "", "=", "x")
CALLS: list[Call] = []


@pytest.fixture(autouse=True, scope="module")
def recorded() -> Iterator[None]:
    """Put recorders in the places of the two commands."""
    patch = pytest.MonkeyPatch()
    for module in (check, exec):
        name = module.__name__.rpartition(".")[2]
        patch.setattr(module, "run", recorder(name))
    yield
    patch.undo()


def recorder(name: str) -> Any:
    def run(*values: Any, **options: Any) -> int:
        bound = SIGNATURES[name].bind(*values, **options)
        bound.apply_defaults()
        said = {key: list(value) if isinstance(value, tuple) else value for key, value in bound.arguments.items()}
        CALLS.append((name, said))
        return 0

    return run


def by_plain(line: Sequence[str]) -> Call | None:
    command = read_plain(line)
    if command is None:
        return None
    assert command() == 0
    return CALLS.pop()


def by_click(line: Sequence[str]) -> tuple[int, list[Call]]:
    CALLS.clear()
    code = with_click(line)
    return code, CALLS


WORDS = st.one_of(
    st.sampled_from(VALUES),
    st.sampled_from(ALL),
    st.sampled_from(ALL).flatmap(lambda name: st.integers(1, len(name)).map(lambda length: name[:length])),
    st.builds("{}={}".format, st.sampled_from(ALL), st.sampled_from(VALUES)),
    st.text(st.characters(exclude_characters="\0"), max_size=4),
)
"""Anything that could stand on a line."""
PLAIN = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=6).filter(lambda word: word[0] != "-")


@st.composite
def tidy(draw: st.DrawFn) -> list[str]:
    """A line as people write it: each option with a value of its own, then files, or ``--`` and a command."""
    name = draw(st.sampled_from(sorted(NAMES)))
    once = draw(st.lists(st.sampled_from([one for one in NAMES[name] if one not in MANY]), unique=True, max_size=3))
    options = [*once, *draw(st.lists(st.sampled_from([one for one in NAMES[name] if one in MANY]), max_size=3))]
    pairs = [[option, draw(st.sampled_from(("text", "json")) if option == "--format" else PLAIN)] for option in options]
    if name == "check":
        parts = [*pairs, *([word] for word in draw(st.lists(PLAIN, min_size=1, max_size=3)))]
        return [name, *(word for part in draw(st.permutations(parts)) for word in part)]
    return [name, *(word for pair in pairs for word in pair), "--", *draw(st.lists(WORDS, min_size=1, max_size=4))]


def agree(line: list[str]) -> bool:
    plain = by_plain(line)
    if plain is not None:
        assert by_click(line) == (0, [plain])
    return plain is not None


@given(st.builds(lambda name, words: [name, *words], st.sampled_from(sorted(NAMES)), st.lists(WORDS, max_size=7)))
@example(["exec", "--env", "--", "--", "ls"])
@example(["exec", "--", "--", "ls"])
@example(["exec", "--", "ls", "--env", "X"])
@example(["exec", "--toolchain", "/opt/a", "--toolchain", "/opt/b", "--", "ls"])
@example(["exec", "ls", "--", "ls"])
@example(["exec", "--"])
@example(["exec", "--", ""])
@example(["check", "--", "a"])
@example(["check", "a", "--site", "b"])
@example(["check", "--site", "a", "--site", "b", "c"])
@example(["check", "--sit", "a", "c"])
@example(["check", "--site=a", "c"])
@example(["check", "-"])
@example(["check", ""])
@example(["check", "--format", "xml", "c"])
@example(["check", "--facts", "-", "c"])
def test_line_that_is_plain_is_read_alike(line: list[str]) -> None:
    agree(line)


@given(tidy())
def test_line_as_people_write_it_is_plain_and_read_alike(line: list[str]) -> None:
    assert agree(line)


@pytest.mark.parametrize(
    "line",
    [
        ["check", "a.yaml"],
        ["check", "--site", "s", "--format", "json", "--record-facts", "f", "--workspace", "m=.", "a.yaml"],
        ["check", "a.yaml", "b.yaml", "--facts", "f"],
        ["exec", "--", "pytest", "-q"],
        ["exec", "--site", "s", "--profile", "p", "--env", "TZ", "--env", "TERM", "--toolchain", "/opt/a", "--", "ls"],
        ["exec", "--workspace", "m=.", "--", "--", "-x", ""],
    ],
    ids=" ".join,
)
def test_everyday_line_is_plain(line: list[str]) -> None:
    assert agree(line)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_option_of_click_is_known_to_the_plain_reader(name: str) -> None:
    options = {option for parameter in cli.commands[name].params for option in parameter.opts if option[0] == "-"}
    assert options - {"--help", "-h"} == set(NAMES[name])


@pytest.mark.parametrize(
    "line",
    [
        [], ["check"], ["exec"], ["exec", "--"], ["exec", "ls"], ["explain", "x"], ["check", "--help"], ["check", "-"],
        ["check", "--site"], ["check", "--site", ""], ["check", "--site", "-x", "a"], ["check", "--site=s", "a"],
        ["check", "--format", "xml", "a"], ["check", "--env", "TZ", "a"], ["check", "--", "a"], ["check", ""],
        ["exec", "--format", "json", "--", "ls"], ["exec", "--site", "a", "--site", "b", "--", "ls"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_any_other_line_is_left_to_click(line: list[str]) -> None:
    assert read_plain(line) is None
