"""The condition vocabulary: closed, three-valued, compiled once.

A condition is a mapping with one operator. Operands are references (``facts.log.root``) or literals, and each
operator says which of its arguments is which, so a reference is never mistaken for a word. What a condition answers:

* ``True``: the hazard is there, the blocker fails;
* ``False``: it is not;
* ``Unknown``: somebody could not look, which blocks as well and says why;
* ``ABSENT``: there is nothing to judge (no log was asked for), which never blocks and which ``not`` leaves alone.

``all`` is false as soon as one part is, ``any`` true as soon as one part is, whatever the others are (Kleene's
strong logic); so taking evidence away can turn an answer into ``Unknown`` but never into the opposite one. That is
invariant 4, and it is why no operator here asks whether something is known.

========================= ==========================================================================================
``all: [C…]`` ``any:``    every, at least one condition
``not: C``                the opposite
``given: R``              the value is there at all
``is: {value, a}``        it is a ``string``, ``list``, ``mapping``, ``integer``, ``boolean`` or ``nothing``
``equals: {value, to}``   it equals a literal
``same: {value, as}``     two references are equal
``one_of: {value, of}``   it is one of the literals
``member: {value, of}``   it is in the list that ``of`` refers to
``listed: {value, in}``   it is on the named list (``policy/lists/``)
``spelled: {value, as}``  it is a string spelled so: see ``SPELLINGS``
``inside: {path, root}``  resolved path and root, compared component by component; the root itself is not inside
``same_file: {left, right}`` two places have one device and one inode
``more_than: {value, limit}`` an integer is larger than the limit
``longer_than: {value, limit}`` a list or string has more entries than the limit
``empty: R``              a list, mapping or string without entries
========================= ==========================================================================================

A value of a type that an operator does not judge answers ``False``: types are asked for with ``is``.
"""

from __future__ import annotations

from _operator import attrgetter  # what `operator` gives on, without executing it

from prespawn.policy import spelling
from prespawn.policy.known import ABSENT, Unknown
from prespawn.policy.record import Record

from .answers import UNJUDGED, is_inside, is_same_file, strongest, unjudged, weakest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from prespawn.policy.lists import NamedList

    from .answers import Answer

    Condition = Callable[[Any], Answer]
    Getter = Callable[[Any], Any]

ROOTS = ("declaration", "facts", "profile", "site", "adapter", "approval", "checked", "item")

TYPES: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "list": lambda value: isinstance(value, (list, tuple)),
    "mapping": lambda value: isinstance(value, dict),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "nothing": lambda value: value is None,
}

SPELLINGS: Mapping[str, Callable[[str], bool]] = {
    "printable": spelling.is_printable_name,
    "absolute": spelling.is_absolute,
    "climbing": spelling.climbs,
    "canonical": spelling.is_canonical,
    "run-id": spelling.is_run_id,
    "env-key": spelling.is_env_key,
}


class ConditionError(Exception):
    """A condition that is not in the vocabulary; the loader turns it into a reader error with its place."""


def compile_condition(node: object, lists: Mapping[str, NamedList]) -> Condition:
    """Return the condition as a function of a view that has the attributes ``ROOTS``."""
    if not isinstance(node, dict) or len(node) != 1:
        raise ConditionError(f"a condition is a mapping with one operator; allowed: {', '.join(sorted(_OPERATORS))}")
    ((word, argument),) = node.items()
    if word not in _OPERATORS:
        raise ConditionError(f"no operator `{word}`; allowed: {', '.join(sorted(_OPERATORS))}")
    return _OPERATORS[word](argument, lists)


def compile_reference(text: object) -> Getter:
    """Return the getter of a dotted reference such as ``facts.cwd.path``."""
    if not isinstance(text, str) or text.split(".")[0] not in ROOTS or not all(map(str.isidentifier, text.split("."))):
        raise ConditionError(f"`{text}` is no reference; one begins with {', '.join(ROOTS)}")
    return attrgetter(text)


# -- the three connectives


def _all(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    parts = _parts(argument, lists)

    def every(view: object) -> Answer:
        answers = []
        for part in parts:
            answer = part(view)
            if answer is False:
                return False
            answers.append(answer)
        return weakest(*answers)

    return every


def _any(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    parts = _parts(argument, lists)

    def some(view: object) -> Answer:
        answers = []
        for part in parts:
            answer = part(view)
            if answer is True:
                return True
            answers.append(answer)
        return strongest(*answers)

    return some


def _not(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    part = compile_condition(argument, lists)

    def negated(view: object) -> Answer:
        answer = part(view)
        return False if answer is True else True if answer is False else answer

    return negated


def _parts(argument: object, lists: Mapping[str, NamedList]) -> tuple[Condition, ...]:
    if not isinstance(argument, list) or not argument:
        raise ConditionError("`all` and `any` take a list that is not empty: an empty one would mean always or never")
    return tuple(compile_condition(part, lists) for part in argument)


# -- operators of one reference


def _given(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    get = compile_reference(argument)

    def given(view: object) -> Answer:
        value: object = get(view)
        return value if type(value) is Unknown else value is not ABSENT

    return given


def _empty(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    return _unary(compile_reference(argument), lambda value: isinstance(value, (str, list, tuple, dict)) and not value)


def _is(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    value, kind = _arguments(argument, "value", "a")
    return _unary(compile_reference(value), _word(kind, TYPES))


def _equals(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    value, to = _arguments(argument, "value", "to")
    get, kind = compile_reference(value), type(to)

    def equals(view: object) -> Answer:  # half of all conditions are this one
        found: Any = get(view)
        if type(found) is kind:
            return found == to
        return found if type(found) in UNJUDGED else False

    return equals


def _one_of(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    value, of = _arguments(argument, "value", "of")
    if not isinstance(of, list) or not of or not all(isinstance(word, str) for word in of):
        raise ConditionError("`one_of` takes `of`, a list of words that is not empty")
    words = frozenset(of)
    return _unary(compile_reference(value), lambda found: isinstance(found, str) and found in words)


def _listed(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    value, name = _arguments(argument, "value", "in")
    if not isinstance(name, str) or name not in lists:
        raise ConditionError(f"no list `{name}`; allowed: {', '.join(sorted(lists))}")
    holds = lists[name].holds
    return _unary(compile_reference(value), lambda found: isinstance(found, str) and holds(found))


def _spelled(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    value, name = _arguments(argument, "value", "as")
    spelled = _word(name, SPELLINGS)
    return _unary(compile_reference(value), lambda found: isinstance(found, str) and spelled(found))


# -- operators of two references


def _same(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    left, right = _arguments(argument, "value", "as")
    return _binary(left, right, lambda one, other: type(one) is type(other) and one == other)


def _member(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    value, of = _arguments(argument, "value", "of")
    return _binary(value, of, lambda found, members: isinstance(found, str) and found in members)


def _inside(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    path, root = _arguments(argument, "path", "root")
    return _binary(path, root, is_inside)


def _same_file(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    left, right = (compile_reference(name) for name in _arguments(argument, "left", "right"))
    return lambda view: is_same_file(left(view), right(view))


def _more_than(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    value, limit = _arguments(argument, "value", "limit")
    return _binary(value, limit, lambda found, most: most is not None and TYPES["integer"](found) and found > most)


def _longer_than(argument: object, lists: Mapping[str, NamedList]) -> Condition:
    value, limit = _arguments(argument, "value", "limit")
    sized = (str, list, tuple, dict)
    return _binary(
        value, limit, lambda found, most: most is not None and isinstance(found, sized) and len(found) > most
    )


# -- how operands are taken


def _unary(get: Getter, judge: Callable[[Any], bool]) -> Condition:
    def answer(view: object) -> Answer:
        value: Any = get(view)
        return value if type(value) in UNJUDGED else judge(value)

    return answer


def _binary(left: object, right: object, judge: Callable[[Any, Any], bool]) -> Condition:
    one, other = compile_reference(left), compile_reference(right)

    def answer(view: object) -> Answer:
        first, second = one(view), other(view)
        if type(first) in UNJUDGED or type(second) in UNJUDGED:
            return unjudged(first, second)
        return judge(first, second)

    return answer


def _arguments(argument: object, *names: str) -> Sequence[object]:
    if not isinstance(argument, dict) or set(argument) != set(names):
        raise ConditionError(f"this operator takes exactly {' and '.join(names)}")
    return [argument[name] for name in names]


def _word(word: object, allowed: Mapping[str, Any]) -> Any:
    if not isinstance(word, str) or word not in allowed:
        raise ConditionError(f"`{word}` is not one of {', '.join(sorted(allowed))}")
    return allowed[word]


_OPERATORS: Mapping[str, Callable[[object, Mapping[str, NamedList]], Condition]] = {
    "all": _all, "any": _any, "not": _not, "given": _given, "is": _is, "equals": _equals, "same": _same,
    "one_of": _one_of, "member": _member, "listed": _listed, "spelled": _spelled, "inside": _inside,
    "same_file": _same_file, "more_than": _more_than, "longer_than": _longer_than, "empty": _empty,
}  # fmt: skip
OPERATORS = tuple(sorted(_OPERATORS))


class Template:
    """A text with ``{reference}`` holes; one hole alone stands for the value itself, whatever its type."""

    __slots__ = ("_parts",)

    def __init__(self, text: str) -> None:
        pieces = text.replace("}", "{").split("{")
        self._parts = tuple(
            piece if number % 2 == 0 else compile_reference(piece) for number, piece in enumerate(pieces)
        )

    def fill(self, view: object) -> object:
        """Return the value of a lone hole, else the text; what is unknown or absent is said in that word."""
        values = [part(view) if callable(part) else part for part in self._parts if part != ""]
        if len(values) == 1:
            return values[0]
        return "".join(_shown(value) for value in values)


def _shown(value: object) -> str:
    if isinstance(value, Record):
        return "unknown" if isinstance(value, Unknown) else "nothing"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
