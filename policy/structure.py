"""Cerberus as the judge of trusted files that are loaded from disk: the schema's own engine, made strict.

It runs without normalisation, takes no boolean for an integer, matches patterns from beginning to end, and knows the
types that JSON has not: ``bytes``, ``duration``, ``none`` and ``json``. Its errors come out with the causes and in
the words of ``policy.shape``, with which it agrees about every document (a property test holds that).

Cerberus costs 40 ms to import: nothing that only uses the shipped policy comes here.
"""

from __future__ import annotations

from collections.abc import Mapping

from cerberus import TypeDefinition, Validator
from cerberus import errors as codes

from . import wording
from .canonical import canonical
from .shape import Fault, errors
from .table import types
from .units import MOST, UNITS, amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from .errors import ReadError
    from .reader import Document
    from .wording import Pointer

BAD_UNIT = codes.ErrorDefinition(0x29, "type")
BAD_AMOUNT = codes.ErrorDefinition(0x2A, "type")
BAD_NUMBER = codes.ErrorDefinition(0x2B, "type")
BAD_WORD = codes.ErrorDefinition(0x2C, "type")
LISTED_TWICE = codes.ErrorDefinition(0x2D, "unique")


def check(document: Document, fields: Mapping[str, Any], *, partial: bool = False) -> list[ReadError]:
    """Return everything that is wrong with a document whose root is a mapping, in the order in which it stands there.

    ``partial`` is for documents that extend another one: no key is required of them.
    """
    return errors(document, faults(document.value, fields, partial=partial))


def faults(value: object, fields: Mapping[str, Any], *, partial: bool = False) -> list[Fault]:
    """Return the same without places."""
    validator = Structure(fields, error_handler=_Quiet)
    validator.validate(value, update=partial, normalize=False)
    return list(_faults(validator._errors))


class _Quiet(codes.BaseErrorHandler):  # type: ignore[misc]  # Cerberus has no types
    """Collects nothing: Cerberus' own sentences are not used."""

    def __call__(self, errors: object) -> None: ...
    def add(self, error: object) -> None: ...
    def emit(self, error: object) -> None: ...
    def end(self, validator: object) -> None: ...
    def extend(self, errors: object) -> None: ...
    def start(self, validator: object) -> None: ...


class Structure(Validator):  # type: ignore[misc]  # Cerberus has no types
    """The validator; docstrings of ``_validate_*`` are the rules' own schemas, which Cerberus reads."""

    types_mapping: Mapping[str, Any] = {
        name: TypeDefinition(name, included, excluded)
        for name, included, excluded in (
            ("string", (str,), ()), ("none", (str,), ()), ("boolean", (bool,), ()), ("integer", (int,), (bool,)),
            ("bytes", (str, int), (bool,)), ("duration", (str,), ()), ("list", (list,), ()), ("dict", (dict,), ()),
            ("json", (bool, int, str, list, dict), ()),
        )
    }  # fmt: skip

    def _validate_type(self, data_type: Any, field: str, value: Any) -> None:
        """{'type': ['string', 'list'], 'check_with': 'type'}"""
        matching = [name for name in types({"type": data_type}) if self._is_of(name, value)]
        wrong = [_wrong_text(name, value) for name in matching]
        if not matching or all(wrong):
            self._error(field, min((w for w in wrong if w), key=lambda w: w.code, default=codes.BAD_TYPE))
            self._drop_remaining_rules()

    def _is_of(self, name: str, value: Any) -> bool:
        definition = self.types_mapping[name]
        return isinstance(value, definition.included_types) and not isinstance(value, definition.excluded_types)

    def _validate_regex(self, pattern: str, field: str, value: Any) -> None:
        """{'type': 'string'}"""
        import re

        if isinstance(value, str) and re.fullmatch(pattern, value) is None:
            self._error(field, codes.REGEX_MISMATCH)

    def _validate_allowed(self, words: list[str], field: str, value: Any) -> None:
        """{'type': 'list'}"""
        if isinstance(value, str) and value not in words:
            self._error(field, codes.UNALLOWED_VALUE, value)

    def _validate_min(self, low: int, field: str, value: Any) -> None:
        """{'type': 'integer'}"""
        if type(value) is int and value < low:
            self._error(field, codes.MIN_VALUE)

    def _validate_max(self, high: int, field: str, value: Any) -> None:
        """{'type': 'integer'}"""
        if type(value) is int and value > high:
            self._error(field, codes.MAX_VALUE)

    def _validate_unique(self, unique: bool, field: str, value: Any) -> None:
        """{'type': 'boolean'}"""
        seen: set[str] = set()
        for index, item in enumerate(value if unique and isinstance(value, list) else ()):
            text = canonical(item)
            if text in seen:
                self._error(field, LISTED_TWICE, index)
            seen.add(text)


def _wrong_text(type: str, value: Any) -> Any:
    """Return what is wrong with a value that is of the right JSON type for one of ours."""
    if type == "none":
        return None if value == "none" else BAD_WORD
    if type in UNITS and isinstance(value, str):
        units = amount(value, type)
        return BAD_UNIT if units is None else BAD_AMOUNT if units < 0 else None
    if type in UNITS:
        return None if 1 <= value <= MOST else BAD_NUMBER
    return BAD_NUMBER if type == "integer" and abs(value) > MOST else None


def _faults(found: Iterable[Any]) -> Iterator[Fault]:
    for error in found:
        if error.is_logic_error:
            yield from _nearest_alternative(error)
        elif error.is_group_error:
            key = error.rule == "keysrules"
            yield from (fault.replace(key=key or fault.key) for fault in _faults(error.child_errors))
        else:
            yield _fault(error)


def _nearest_alternative(error: Any) -> list[Fault]:
    """Return the faults of the alternative that fits best, as ``policy.shape`` does."""
    at = error.document_path
    attempts = [list(_faults(errors)) for errors in error.definitions_errors.values()]
    fitting = [found for found in attempts if not any(fault.cause == "type" and fault.at == at for fault in found)]
    kinds = [name for rules in error.constraint for name in types(rules)]
    wrong = Fault(cause="type", message=wording.wrong_type(at, error.value, kinds), at=at)
    return min(fitting, key=len, default=[wrong])


def _fault(error: Any) -> Fault:
    at, value, constraint, code = error.document_path, error.value, error.constraint, error.code
    if code == codes.UNKNOWN_FIELD.code:
        return Fault(cause="unknown-key", message=wording.unknown_key(at, ()), at=at, key=True)
    if code == codes.REQUIRED_FIELD.code:
        return Fault(cause="missing-key", message=wording.missing_key(at), at=at)
    if code in (codes.BAD_TYPE.code, codes.NOT_NULLABLE.code):
        kinds = types({"type": constraint}) if code == codes.BAD_TYPE.code else ("json",)
        return Fault(cause="type", message=wording.wrong_type(at, value, kinds), at=at)
    if code in (codes.MIN_LENGTH.code, codes.MAX_LENGTH.code):
        limits = (constraint, None) if code == codes.MIN_LENGTH.code else (0, constraint)
        return Fault(cause="length", message=wording.wrong_length(at, value, *limits), at=at)
    if code == LISTED_TWICE.code:
        at = (*at, error.info[0])
        return Fault(cause="duplicate-item", message=wording.listed_twice(at, value[error.info[0]]), at=at)
    return _fault_of_value(error, at, value, constraint)


def _fault_of_value(error: Any, at: Pointer, value: Any, constraint: Any) -> Fault:
    sentences: Mapping[int, tuple[str, Callable[[], str]]] = {
        codes.REGEX_MISMATCH.code: ("pattern", lambda: wording.no_match(at, value, constraint)),
        codes.UNALLOWED_VALUE.code: ("value", lambda: wording.not_allowed(at, value, constraint)),
        codes.MIN_VALUE.code: ("range", lambda: wording.out_of_range(at, value, constraint, MOST)),
        codes.MAX_VALUE.code: ("range", lambda: wording.out_of_range(at, value, -MOST, constraint)),
        BAD_NUMBER.code: ("range", lambda: wording.out_of_range(at, value, -MOST if value < 0 else 1, MOST)),
        BAD_AMOUNT.code: ("range", lambda: wording.amount_out_of_range(at, value)),
        BAD_WORD.code: ("value", lambda: wording.not_allowed(at, value, ("none",))),
        BAD_UNIT.code: ("pattern", lambda: _no_amount(at, value, constraint)),
    }
    cause, message = sentences[error.code]
    return Fault(cause=cause, message=message(), at=at)


def _no_amount(at: Pointer, value: str, constraint: Any) -> str:
    kind = next(name for name in types({"type": constraint}) if name in UNITS)
    return wording.not_an_amount(at, value, kind, UNITS[kind])
