"""Random inputs of the checker, for properties: near the base of the blockers' cases, and far from it.

An input starts from the base or from one of the cases, so that every blocker is reached, and a few changes are made to
it: anything at all in the declaration, values of the right type (or unknown) in the facts, valid values in profile and
site. ``narrower`` makes a trusted document that grants less, by the schema's own directions.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from prespawn.blockers.rule import PHASES
from prespawn.checker.facts import Facts
from prespawn.policy.authority import NARROWED, compare
from prespawn.policy.catalogue import loader
from prespawn.policy.shape import normalise

from .cases import UNKNOWN, put
from .policy_documents import JSON, values
from .world import FORBIDDEN, LEVELS, PROFILES, pages, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.policy.record import Record

    Plain = dict[str, Any]
    Entry = tuple[Any, ...]

FORMATS = loader(frozenset()).formats
PAGES = pages()
CASES: list[Plain] = [{}, *(case for page in PAGES.values() for case in page["cases"])]
KEYS = sorted(FORMATS["declaration/v1"].fields)
WORDS = st.sampled_from([
    "", ".", "..", "../x", "/etc/passwd", "src/login.py", "src/**", "**", ".git/config", "a\0b", "\ud800", "é", "$(id)",
    "|", "&&", "bash", "-c", "pytest", "-q", "ls -l", "env", "LD_PRELOAD", "TZ", "LANG", "FOO", "GIT_DIR", "main",
    "other", "exec@1", "pi@1", "fix-login-42", "Fix", "reports/fix-login-42.log", "registry.db", "/srv/agent/repo",
    "/srv/agent/repo-evil", "/var/lib/prespawn", "/var/lib/prespawn/reports", "mutation", "read-only", "directory",
    "file", "link", "missing", "fifo", "outside", "workspace", "search-path", "ready", "absent", "corrupt", "canary",
    "quota", "launcher", "limits.output", "x86_64", "riscv64", "docker", "bwrap", "none", "overlay",
    *PROFILES, *(level.id for level in LEVELS.levels),
])  # fmt: skip
TEXTS = st.lists(WORDS, max_size=4)
NUMBERS = st.sampled_from([0, 1, 7, 60, 100, 1000, 200_001, 1_790_000_050, 2**40])
UNKNOWNS = st.just(UNKNOWN)
ANYTHING = WORDS | TEXTS | JSON
phases = st.sampled_from(PHASES)


@st.composite
def inputs(draw: st.DrawFn, *, policy: bool = True, absent: bool = False, mapping: bool = False) -> Plain:
    """Inputs of the checker; with ``absent`` any fact may be, with ``mapping`` the declaration stays a mapping."""
    made = plain(draw(st.just({}) | st.sampled_from(CASES)))
    if mapping and not isinstance(made["declaration"], dict):
        made = plain()
    made["facts"].setdefault("attestation", None)
    if draw(st.booleans()):  # a host on which everything was tried, and a run that is all that was planned
        made["facts"] |= {"evidence": ["canary", "quota"], "attestation": ALL_SEEN}
    for _ in range(draw(st.integers(0, 2))):
        _declare(draw, made)
    for _ in range(draw(st.integers(0, 3))):
        _observe(draw, made, absent)
    if policy:
        _decree(draw, made)
    if draw(st.integers(0, 3)) == 0:
        made["approval"] = draw(approvals(made["approval"]))
    return made


def approvals(given: Plain | None) -> st.SearchStrategy[Any]:
    """No approval, and approvals of other words."""
    if given is None:
        return st.none()
    changes = st.fixed_dictionaries({}, optional={
        "accepts": st.lists(st.sampled_from(sorted(PAGES)), max_size=4, unique=True),
        "origin": st.sampled_from(["operator", "driver", "command-line"]), "used": st.booleans() | UNKNOWNS,
        "expires_at": NUMBERS,
    })  # fmt: skip
    return st.none() | changes.map(lambda changed: {**given, **changed})


def _declare(draw: st.DrawFn, made: Plain) -> None:
    """Change one place of the declaration to anything, add or take away a key."""
    if not isinstance(made["declaration"], dict):
        return
    places = [*places_of(made["declaration"], ()), *((key,) for key in KEYS)]
    *way, last = draw(st.sampled_from(places))
    at: Any = made["declaration"]
    for step in way:
        at = at[step]
    act = draw(st.sampled_from(["put", "put", "put", "take", "forbid"]))
    if act == "take" and isinstance(at, dict):
        at.pop(last, None)
    elif act == "forbid" and isinstance(at, dict):
        at[draw(st.sampled_from(sorted(FORBIDDEN)))] = draw(ANYTHING)
    else:
        at[last] = draw(ANYTHING)


def places_of(value: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield every place in a JSON value but its root."""
    for part, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*at, part)
        yield from places_of(item, (*at, part))


def fact_fields(made: Plain) -> list[tuple[str, str]]:
    """Return every field of the facts of an input: its path, and the annotation that says what may stand there."""
    return [*_fields(Facts, made["facts"], "facts")]


def _fields(kind: type[Record], value: Plain, at: str) -> Iterator[tuple[str, str]]:
    kinds: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        kinds |= inspect.get_annotations(base)
    for name, item in value.items():
        if name == "prespawn":
            continue
        yield f"{at}.{name}", kinds[name]
        nested = kind.nested.get(name)
        if isinstance(nested, type) and isinstance(item, dict) and item != UNKNOWN:
            yield from _fields(nested, item, f"{at}.{name}")
        elif isinstance(nested, tuple) and isinstance(item, list):
            for index, one in enumerate(item):
                yield from _fields(nested[0], one, f"{at}.{name}[{index}]")


def _observe(draw: st.DrawFn, made: Plain, absent: bool) -> None:
    """Change one fact to another of its type, or make it unknown."""
    path, annotation = draw(st.sampled_from(fact_fields(made)))
    word = annotation.removesuffix(" | Absent")
    known = _TYPED.get(word, UNKNOWNS)
    put(made, path, draw(known | UNKNOWNS | st.none() if absent or word != annotation else known | UNKNOWNS))


DIFFERENCES = st.lists(
    st.fixed_dictionaries({
        "field": st.sampled_from(["payload.seccomp.mode", "mounts./workspace", "network", "init.uids"]),
        "expected": WORDS, "seen": WORDS | UNKNOWNS, "reason": st.sampled_from(["", "permission denied"]),
    }), max_size=2,
)  # fmt: skip
FIELDS = sorted({field for level in LEVELS.levels for claim in level.claims for field in claim.fields})
ALL_SEEN: dict[str, Any] = {"attested": FIELDS, "observed": [], "declared": [], "differences": []}
ATTESTATION = st.fixed_dictionaries({
    "attested": st.just(FIELDS) | st.lists(st.sampled_from(FIELDS), unique=True),
    "observed": st.sampled_from([[], FIELDS[:4]]), "declared": st.sampled_from([[], FIELDS[4:6]]),
    "differences": DIFFERENCES,
})  # fmt: skip
_TYPED: dict[str, st.SearchStrategy[Any]] = {
    "str": WORDS, "int": NUMBERS, "bool": st.booleans(), "object": ANYTHING, "tuple[str, ...]": TEXTS,
    "ReportedFact": st.fixed_dictionaries({"level": ANYTHING | UNKNOWNS}), "AttestationFact": ATTESTATION,
}  # fmt: skip


CHANGED = ("level", "workspace", "root", "network", "process", "argv", "environment", "limits", "quotas", "output",
           "activation", "launcher")  # fmt: skip
VECTORS = st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=3, unique_by=str)
PROTECTED = st.lists(st.sampled_from(["src", "src/login.py", ".github", "x/y"]), unique=True)
ids_of_profiles = st.lists(st.sampled_from(sorted(PROFILES)), unique=True)


def _decree(draw: st.DrawFn, made: Plain) -> None:
    """Change a field or two of the profile, and what the site offers."""
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(CHANGED))
        made["profile"] = {**made["profile"], name: draw(fields_of_profile(name))}
    site, one_in = made["site"], st.integers(0, 3)
    if draw(one_in) == 0:
        site["argv"] = {made["profile"]["id"]: draw(VECTORS)}
    if draw(one_in) == 0:
        site["activated"] = draw(ids_of_profiles)
    if draw(one_in) == 0:
        site["pairs"] = [{"adapter": "exec@1", "profile": id} for id in draw(ids_of_profiles)]
    if draw(one_in) == 0:
        site["workspaces"]["main"]["protected_paths"] = draw(PROTECTED)
    if draw(one_in) == 0:
        site["workspaces"]["other"] = {"root": "/srv/agent/other", "reports": "reports"}
    if draw(one_in) == 0:
        site["approvals"] = {**site["approvals"], "driver_may_approve": "nothing"}


def fields_of_profile(name: str) -> st.SearchStrategy[Any]:
    """Valid values of one field of a profile, normalised."""
    form = FORMATS["profile/v1"]
    node = form.table[0][1][name][1]
    return values(form.fields[name]).map(lambda value: normalise(value, node))


def normal(name: str, document: Plain) -> Plain:
    """Return the normalised fields of a document of a format."""
    made: Plain = normalise({"prespawn": name, **document}, FORMATS[name].table)
    return {key: value for key, value in made.items() if key != "prespawn"}


@st.composite
def narrower(draw: st.DrawFn, name: str, document: Plain) -> Plain:
    """Return a normalised document after a few changes, each of which is narrower by the schema."""
    for _ in range(draw(st.integers(1, 4))):
        document = draw(st.sampled_from([document, *narrowed(name, document)]))
    return document


def narrowed(name: str, document: Plain) -> Iterator[Plain]:
    """Yield a normalised document with each single change that the schema calls narrower."""
    form = FORMATS[name]
    assert form.authority is not None
    for changed in _narrower(form.authority, {"schema": form.fields}, {"prespawn": name, **document}):
        less = {key: value for key, value in changed.items() if key != "prespawn"}
        if all(change.verdict == NARROWED for change in compare(document, less, form.authority)):
            yield less


def _narrower(entry: Entry, rules: Any, value: Any) -> Iterator[Any]:
    word = entry[0]
    if word == "fields" and value is not None:
        if len(entry) > 2 and entry[2] == "narrowest":
            yield None
        for key, below in entry[1].items():
            yield from _replaced(value, key, _narrower(below, rules["schema"][key], value.get(key)))
    elif word == "fields" and entry[2] == "widest":
        yield _LEAST
    elif word == "lower":
        least = rules.get("min", 1)
        yield from (number for number in (least, 1000, (value or 2000) // 2) if least <= number < (value or 2000))
    elif word == "ordered":
        yield from entry[1][: entry[1].index(value)]
    elif word == "subset":
        yield from ([item for item in value if item is not gone] for gone in value)
    elif word == "superset":
        yield from ([*value, more] for more in rules["schema"].get("allowed", ["src"]) if more not in value)
    elif word in ("entries", "named"):
        yield from ({name: item for name, item in value.items() if name != gone} for gone in value)
        for key, item in value.items():
            yield from _replaced(value, key, _narrower(entry[1], rules.get("valuesrules", {}), item))


_LEAST = {"workspace": {"bytes": 1, "inodes": 1}, "state": {"bytes": 1, "inodes": 1}}  # the quotas, nothing else is so


def _replaced(value: Plain, key: str, changes: Iterator[Any]) -> Iterator[Plain]:
    yield from ({**value, key: change} for change in changes)
