"""A condition as Python text: what ``shipped_conditions`` is made of, when the package is built.

The text answers what the function that ``conditions`` compiles answers; it only answers sooner, because each condition
is code of its own. It is one expression without a call where nothing is wrong. Nothing is evaluated from text at run
time: a condition that is not shipped is compiled by ``conditions`` alone. What may stand in a condition is
``conditions``' business as well: here it has been compiled before.

Both operands of an operator are always taken (``&``, not ``and``), as ``conditions`` takes them.
"""

from __future__ import annotations

from itertools import count

from .conditions import compile_condition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from prespawn.policy.lists import NamedList

    Names = Iterator[str]

IMPORTS = """\
from prespawn.policy import spelling
from prespawn.policy.known import ABSENT, Unknown

from .answers import UNJUDGED, is_inside, is_same_file, strongest, unjudged, weakest
"""
_SIZED = "isinstance({0}, (str, list, tuple, dict))"
_INTEGER = "isinstance({0}, int) and not isinstance({0}, bool)"
_TYPES = {
    "string": "isinstance({0}, str)", "list": "isinstance({0}, (list, tuple))", "mapping": "isinstance({0}, dict)",
    "integer": _INTEGER, "boolean": "isinstance({0}, bool)", "nothing": "{0} is None",
}  # fmt: skip
_SPELLINGS = {
    "printable": "is_printable_name", "absolute": "is_absolute", "climbing": "climbs", "canonical": "is_canonical",
    "run-id": "is_run_id", "env-key": "is_env_key",
}  # fmt: skip


def module(header: str, conditions: Mapping[str, object], lists: Mapping[str, NamedList]) -> str:
    """Return the text of a module with ``CONDITIONS``: a function for each id; ``ConditionError`` for a wrong one."""
    functions = [_function(_name(id), condition, lists) for id, condition in conditions.items()]
    table = "".join(f"    {id!a}: {_name(id)},\n" for id in conditions)
    return "\n\n".join((f"{header}\n{IMPORTS}", *functions, f"CONDITIONS = {{\n{table}}}\n"))


def _name(id: str) -> str:
    return id.replace("-", "_").replace("/", "__")


def _function(name: str, condition: object, lists: Mapping[str, NamedList]) -> str:
    compile_condition(condition, lists)
    return f"def {name}(view: Any) -> Any:\n    return {_text(condition, (f'v{number}' for number in count()))}\n"


def _text(node: Any, names: Names) -> str:
    ((word, argument),) = node.items()
    return f"({_OPERATORS[word](argument, names)})"


# -- the connectives: an answer that settles it, else what the three-valued rest comes to


def _all(parts: list[Any], names: Names) -> str:
    answers = [(next(names), _text(part, names)) for part in parts]
    settled = " or ".join(f"({name} := {text}) is False" for name, text in answers)
    return f"False if {settled} else weakest({', '.join(name for name, _ in answers)})"


def _any(parts: list[Any], names: Names) -> str:
    answers = [(next(names), _text(part, names)) for part in parts]
    settled = " or ".join(f"({name} := {text}) is True" for name, text in answers)
    quiet = " and ".join(f"{name} is False" for name, _ in answers)
    return f"True if {settled} else False if {quiet} else strongest({', '.join(name for name, _ in answers)})"


def _not(part: Any, names: Names) -> str:
    name = next(names)
    return f"False if ({name} := {_text(part, names)}) is True else True if {name} is False else {name}"


# -- operators of one reference


def _unary(reference: str, judge: str, names: Names) -> str:
    name = next(names)
    return f"{judge.format(name)} if type({name} := view.{reference}) not in UNJUDGED else {name}"


def _given(reference: str, names: Names) -> str:
    name = next(names)
    return f"{name} is not ABSENT if type({name} := view.{reference}) is not Unknown else {name}"


def _equals(argument: dict[str, Any], names: Names) -> str:
    name, to = next(names), argument["to"]
    same = f"is {to}" if to is None or isinstance(to, bool) else f"== {to!a}"
    kind = f"type({name} := view.{argument['value']}) is {'type(None)' if to is None else type(to).__name__}"
    return f"{name} {same} if {kind} else {name} if type({name}) in UNJUDGED else False"


def _one_of(argument: dict[str, Any], names: Names) -> str:
    words = ", ".join(ascii(word) for word in sorted(set(argument["of"])))
    return _unary(argument["value"], f"isinstance({{0}}, str) and {{0}} in {{{{{_braced(words)}}}}}", names)


def _listed(argument: dict[str, Any], names: Names) -> str:
    holds = f"view.lists[{_braced(ascii(argument['in']))}].holds"
    return _unary(argument["value"], f"isinstance({{0}}, str) and {holds}({{0}})", names)


def _spelled(argument: dict[str, Any], names: Names) -> str:
    spelled = f"spelling.{_SPELLINGS[argument['as']]}"
    return _unary(argument["value"], f"isinstance({{0}}, str) and {spelled}({{0}})", names)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


# -- operators of two references


def _binary(first: str, second: str, judge: str) -> Callable[[dict[str, Any], Names], str]:
    def text(argument: dict[str, Any], names: Names) -> str:
        one, other = next(names), next(names)
        left, right = (
            f"(type({name} := view.{argument[key]}) not in UNJUDGED)" for name, key in ((one, first), (other, second))
        )
        return f"{judge.format(one, other)} if {left} & {right} else unjudged({one}, {other})"

    return text


_OPERATORS: Mapping[str, Callable[[Any, Names], str]] = {
    "all": _all,
    "any": _any,
    "not": _not,
    "given": _given,
    "empty": lambda reference, names: _unary(reference, f"{_SIZED} and not {{0}}", names),
    "is": lambda argument, names: _unary(argument["value"], _TYPES[argument["a"]], names),
    "equals": _equals,
    "one_of": _one_of,
    "listed": _listed,
    "spelled": _spelled,
    "same": _binary("value", "as", "type({0}) is type({1}) and {0} == {1}"),
    "member": _binary("value", "of", "isinstance({0}, str) and {0} in {1}"),
    "inside": _binary("path", "root", "is_inside({0}, {1})"),
    "same_file": lambda argument, names: f"is_same_file(view.{argument['left']}, view.{argument['right']})",
    "more_than": _binary("value", "limit", f"{{1}} is not None and {_INTEGER} and {{0}} > {{1}}"),
    "longer_than": _binary("value", "limit", f"{{1}} is not None and {_SIZED} and len({{0}}) > {{1}}"),
}
