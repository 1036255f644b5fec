"""Both forms of a condition answer alike: what ``conditions`` compiles, and the code that ``source`` writes of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.conditions import written
from support.world import LISTS

from prespawn.blockers import shipped, shipped_conditions
from prespawn.blockers.conditions import SPELLINGS, TYPES, compile_condition
from prespawn.checker.facts import Place
from prespawn.policy.known import ABSENT, Unknown

NAMES = ("a", "b", "c")
REFERENCES = st.sampled_from([f"facts.{name}" for name in NAMES])
WORDS = st.sampled_from(["", "x", "/ws", "/ws/a", "/ws-evil", "a/../b", "sh", "LD_PRELOAD", "it's {0}"])
LITERALS = WORDS | st.integers(0, 2) | st.booleans() | st.none()
LOST = st.sampled_from([Unknown(reason="one"), Unknown(reason="other"), ABSENT])
PLACES = st.builds(
    Place, given=WORDS, path=WORDS, kind=WORDS, filesystem=WORDS, owner=LOST,
    device=LOST | st.integers(0, 1), inode=LOST | st.integers(0, 1),
)  # fmt: skip
LISTED = st.lists(WORDS, max_size=2)
VALUES: st.SearchStrategy[Any] = LOST | LITERALS | LISTED | LISTED.map(tuple) | PLACES
VALUES |= st.dictionaries(WORDS, WORDS, max_size=1)


def arguments(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(parts)


def operator(word: str, argument: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return argument.map(lambda value: {word: value})


LEAVES = st.one_of(
    operator("given", REFERENCES),
    operator("empty", REFERENCES),
    operator("is", arguments(value=REFERENCES, a=st.sampled_from(sorted(TYPES)))),
    operator("equals", arguments(value=REFERENCES, to=LITERALS)),
    operator("one_of", arguments(value=REFERENCES, of=st.lists(WORDS, min_size=1, max_size=3))),
    operator("listed", arguments(value=REFERENCES, **{"in": st.sampled_from(["shells", "env-loader"])})),
    operator("spelled", arguments(value=REFERENCES, **{"as": st.sampled_from(sorted(SPELLINGS))})),
    operator("same", arguments(value=REFERENCES, **{"as": REFERENCES})),
    operator("member", arguments(value=REFERENCES, of=REFERENCES)),
    operator("inside", arguments(path=REFERENCES, root=REFERENCES)),
    operator("same_file", arguments(left=REFERENCES, right=REFERENCES)),
    operator("more_than", arguments(value=REFERENCES, limit=REFERENCES)),
    operator("longer_than", arguments(value=REFERENCES, limit=REFERENCES)),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda parts: (
        operator("not", parts)
        | st.sampled_from(["all", "any"]).flatmap(lambda word: operator(word, st.lists(parts, min_size=1, max_size=3)))
    ),
    max_leaves=6,
)


def said(condition: Any, view: object) -> object:
    """Return the answer, or the kind of the exception: that is a blocker as well."""
    try:
        return condition(view)
    except Exception as crash:  # noqa: BLE001  # whatever it is, both forms must say it
        return type(crash)


@given(CONDITIONS, st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)))
def test_condition_answers_alike_in_both_forms(condition: object, values: dict[str, Any]) -> None:
    view = SimpleNamespace(facts=SimpleNamespace(**values), lists=LISTS)
    compiled, code = said(compile_condition(condition, LISTS), view), said(written(condition, LISTS), view)
    assert (type(code), code) == (type(compiled), compiled)


def test_every_shipped_condition_is_shipped_as_code_and_nothing_else_is() -> None:
    conditions = {id for id, file in shipped.RULES.items() if isinstance(file["when"], dict)}
    assert set(shipped_conditions.CONDITIONS) == conditions
