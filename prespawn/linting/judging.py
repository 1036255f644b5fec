"""What is wrong with the documents of one run: all errors that a load would stop at, and what lies beyond shape."""

from __future__ import annotations

import os

from prespawn.blockers import shipped as blockers
from prespawn.blockers.conditions import ConditionError, Template, compile_condition, compile_reference
from prespawn.blockers.loader import judged
from prespawn.blockers.rule import shipped_rules
from prespawn.checker.declaration import declaration
from prespawn.checker.functions import FUNCTIONS
from prespawn.checker.lint import REMEDIES, Lint
from prespawn.checker.references import reference_faults
from prespawn.policy import catalogue
from prespawn.policy.errors import ReadError
from prespawn.policy.schema import read_schema
from prespawn.policy.shape import check_keys, errors, examine
from prespawn.policy.syscalls import tables
from prespawn.policy.wording import value

from ..trusted import FORBIDDEN, PROFILES, loader, shipped_policy
from ..words import blocker_sentence
from .files import beside
from .filters import judged_filter
from .found import Found, errors_of
from .ours import BLOCKER, DECLARATION, FILTER, PROFILE, SITE, SYSCALLS, document_of, kind_of
from .profiles import Profiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from prespawn.checker.lint import Finding
    from prespawn.policy.reader import Document


class Judging:
    """All documents of one run, by path; ``all`` yields what is wrong with them."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents
        self._loader = loader()
        self._lists = catalogue.named_lists()
        self._forbidden = frozenset(self._lists[FORBIDDEN].names)
        self._kinds = {path: kind_of(document) for path, document in documents.items()}
        self._blockers = blockers.RULES.keys() | {_id(document) for document in self._of(BLOCKER).values()}
        self._judges: Mapping[str, Callable[[Document], Iterator[Found]]] = {
            "adapter/v1": lambda document: _loaded(self._loader.adapter, document),
            "approval/v1": lambda document: _loaded(self._loader.approval, document),
            BLOCKER: self._blocker,
            DECLARATION: self._declaration,
            "levels/v1": self._levels,
            "list/v1": lambda document: _loaded(self._loader.named_list, document),
            "schema/v1": lambda document: _loaded(read_schema, document),
            SITE: self._site,
            SYSCALLS: lambda document: _loaded(lambda one: tables((one,)), document),
            FILTER: lambda document: judged_filter(document, self._of(SYSCALLS).values()),
        }

    def all(self) -> Iterator[tuple[str, list[Found]]]:
        """Yield paths with what is wrong there; profiles first, for the others name them."""
        profiles = Profiles(self._of(PROFILE), self._beside())
        self._lint = Lint(shipped_policy(profiles.known), shipped_rules(self._lists))
        for path, answer in profiles.answers.items():
            if isinstance(answer, ReadError):
                yield path, errors_of(answer)
            else:
                yield path, list(_beyond(self._documents[path], self._lint.profile(answer)))
        for path, document in self._documents.items():
            if self._kinds[path] != PROFILE:
                yield path, list(self._judges[self._kinds[path]](document))

    def _of(self, kind: str) -> dict[str, Document]:
        return {path: document for path, document in self._documents.items() if self._kinds[path] == kind}

    def _beside(self) -> dict[str, Document]:
        """Return the profiles that a load would find with these files, and that were not asked about."""
        folders = {os.path.dirname(path) for path in self._of(PROFILE)}
        folders |= {os.path.join(os.path.dirname(path), PROFILES) for path in self._of(SITE)}
        found = {}
        for entry in (entry for folder in sorted(folders) for entry in beside(folder)):
            try:
                document = document_of(entry) if entry.path not in self._documents else None
            except ReadError:  # not asked about; who extends it hears that it is not there
                continue
            if document is not None and kind_of(document) == PROFILE:
                found[entry.path] = document
        return found

    # -- one function a format

    def _site(self, document: Document) -> Iterator[Found]:
        try:
            site = self._loader.site(document)
        except ReadError as error:
            yield from errors_of(error)
        else:
            yield from _beyond(document, self._lint.site(site))

    def _levels(self, document: Document) -> Iterator[Found]:
        try:
            levels = self._loader.levels(document)
        except ReadError as error:
            yield from errors_of(error)
            return
        for i, level in enumerate(levels.levels):
            for j, claim in enumerate(level.claims):
                if claim.declared is not None:
                    yield from self._condition(document, claim.declared, "levels", i, "claims", j, "declared")

    def _blocker(self, document: Document) -> Iterator[Found]:
        name = os.path.basename(document.source).rpartition(".")[0]
        try:
            content = judged(document, name, catalogue.table(BLOCKER))
        except ReadError as error:
            yield from errors_of(error)
            return
        when, report = content["when"], content["report"]
        if content["each"] is not None:
            yield from _compiled(document, compile_reference, content["each"], "each")
        if isinstance(when, dict):
            yield from self._condition(document, when, "when")
        elif when == "function" and content["id"] not in FUNCTIONS:
            message = "`when` is `function`, and the checker has none of this name; add one, or write a condition"
            yield from errors_of(document.error("value", message, "when"))
        for text in (report["field"], report["found"], *report["allowed"]):
            yield from _compiled(document, Template, text, "report")
        for at, message in reference_faults(content):
            yield from errors_of(document.error("value", message, *at))
        for index, id in enumerate(content["unless"]):
            if id not in self._blockers or id == content["id"]:
                message = f"`unless[{index}]` is {value(id)}, which is no other blocker; `prespawn blockers` lists them"
                yield from errors_of(document.error("value", message, "unless", index))

    def _condition(self, document: Document, said: object, *at: str | int) -> Iterator[Found]:
        return _compiled(document, lambda condition: compile_condition(condition, self._lists), said, *at)

    def _declaration(self, document: Document) -> Iterator[Found]:
        wrong = check_keys(document, catalogue.table(DECLARATION), self._forbidden)
        if wrong:
            yield from (found for error in wrong for found in errors_of(error))
            return
        assert isinstance(document.value, dict)
        findings = tuple(self._lint.declaration(declaration(document.value, self._forbidden)))
        yield from _beyond(document, findings)
        yield from _schema(document, {finding.at[:1] for finding in findings})


def _schema(document: Document, judged: set[tuple[str | int, ...]]) -> Iterator[Found]:
    """Yield what the published schema of declarations refuses where no blocker has anything to say."""
    faults = examine(document.value, catalogue.table(DECLARATION))[1]
    left = [fault for fault in faults if fault.at[:1] not in judged and fault.cause != "unknown-key"]
    for error in errors(document, left):
        (found,) = errors_of(error)
        yield found.replace(id="declaration-invalid", cause="fail", boundary="policy", error=False)


def _beyond(document: Document, findings: Iterable[Finding]) -> Iterator[Found]:
    for finding in findings:
        line, column = document.position(*finding.at, key=finding.key)
        blocker = finding.blocker
        remedy = REMEDIES.get(blocker.id) or blockers.RULES[blocker.id]["remedy"]
        yield Found(
            file=document.source, line=line, column=column, id=blocker.id, cause=blocker.because,
            message=blocker_sentence(blocker, remedy), boundary=blocker.boundary,
        )  # fmt: skip


def _loaded(load: Callable[[Document], object], document: Document) -> Iterator[Found]:
    try:
        load(document)
    except ReadError as error:
        yield from errors_of(error)


def _compiled(document: Document, make: Callable[[Any], object], said: object, *at: str | int) -> Iterator[Found]:
    try:
        make(said)
    except ConditionError as wrong:
        yield from errors_of(document.error("value", str(wrong), *at))


def _id(document: Document) -> str:
    found = document.value.get("id") if isinstance(document.value, dict) else None
    return found if isinstance(found, str) else ""
