"""Profiles that extend each other, each judged after the one that it extends, wherever that stands.

It may be shipped, among the files of this run, or beside one of them, where a load would find it. Unlike a load, which
stops at the first, every profile's errors come out.
"""

from __future__ import annotations

import os

from prespawn.policy import catalogue, shipped
from prespawn.policy.canonical import digest
from prespawn.policy.errors import ReadError
from prespawn.policy.wording import value

from ..trusted import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from prespawn.policy.profile import Profile
    from prespawn.policy.reader import Document


class Profiles:
    """The profiles of one run: ``answers`` has the profile or its error by path, ``known`` all that came out by id.

    ``others`` are documents beside them, which may be extended and are not reported.
    """

    def __init__(self, documents: Mapping[str, Document], others: Mapping[str, Document]) -> None:
        self._loader = loader()
        self._documents = {**documents, **others}
        self._by_id: dict[str, list[str]] = {}
        for path, document in self._documents.items():
            self._by_id.setdefault(_text(document, "id"), []).append(path)
        self._answers: dict[str, Profile | ReadError] = {}
        self._settle()
        self.answers = {path: self._answers[path] for path in documents}
        self.known = {answer.id: answer for answer in self._answers.values() if not isinstance(answer, ReadError)}

    def _settle(self) -> None:
        parents = {path: self._parent(path) for path in self._documents}
        waiting = list(parents)
        while waiting:
            ready = [path for path in waiting if parents[path] is None or parents[path] in self._answers]
            for path in ready or [path for path in waiting if _leads_back(path, parents)]:
                self._answers[path] = self._answer(path, parents[path], circular=not ready)
            waiting = [path for path in waiting if path not in self._answers]

    def _parent(self, path: str) -> str | None:
        """Return the file of the profile that one extends, the one beside it before any other."""
        named = _text(self._documents[path], "extends")
        found = [other for other in self._by_id.get(named, ()) if other != path] if named else []
        here = [other for other in found if os.path.dirname(other) == os.path.dirname(path)]
        return next(iter((*here, *found)), None)

    def _answer(self, path: str, parent: str | None, *, circular: bool) -> Profile | ReadError:
        document = self._documents[path]
        above = None if parent is None else self._answers.get(parent)
        if isinstance(above, ReadError) or circular:
            named = value(_text(document, "extends"))
            reason = "leads back to this profile" if circular else "has errors of its own"
            return document.error("unknown-profile", f"`extends` is {named}, which {reason}; mend that", "extends")
        try:
            known = catalogue.profiles() if above is None else {above.id: above}
            profile = self._loader.profile(document, known)
        except ReadError as error:
            return error
        return self._twice(path, profile) or profile

    def _twice(self, path: str, profile: Profile) -> ReadError | None:
        """Return an error for an id that a load would find twice: in one directory, or as a shipped one's."""
        folder = os.path.dirname(path)
        before = [other for other in self._by_id[profile.id] if os.path.dirname(other) == folder and other < path]
        if not before and shipped.DIGESTS.get(profile.id) in (None, digest(profile)):
            return None
        taken = f"stands in {value(before[0])} as well" if before else "is a shipped one's, which never changes"
        message = f"`id` is {value(profile.id)}, which {taken}; allowed here: another id"
        return self._documents[path].error("duplicate-id", message, "id")


def _leads_back(path: str, parents: Mapping[str, str | None]) -> bool:
    passed, above = set(), parents[path]
    while above is not None and above not in passed:
        passed.add(above)
        above = parents[above]
    return path in passed


def _text(document: Document, key: str) -> str:
    found = document.value.get(key) if isinstance(document.value, dict) else None
    return found if isinstance(found, str) else ""
