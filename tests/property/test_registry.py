"""The registry against a model of it, and under damage."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from prespawn.policy.errors import HostError
from prespawn.policy.spelling import is_run_id
from prespawn.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

DIGEST = f"sha256:{'0' * 64}"
ENTRY: Mapping[str, str | int] = {
    "declaration": DIGEST, "policy": DIGEST, "facts": DIGEST, "blockers": DIGEST, "profile": "sandbox-v1",
    "adapter": "exec@1", "level": "container", "parent_pid": 10, "parent_start_time": 20, "parent_boot_id": "boot",
    "reserved_at": 0,
}  # fmt: skip
START: Mapping[str, str | int] = {"pid": 1, "start_time": 1, "boot_id": "boot", "started_at": 0}
END: Mapping[str, str | int] = {"how": "exited", "ended_at": 0}

ACTS = {  # act: (what it needs, what it makes, what it is given)
    "reserve": ((None,), "reserved", ENTRY),
    "started": (("reserved",), "started", START),
    "ended": (("reserved", "started"), "ended", END),
    "never_started": (("reserved", "started"), "never-started", END),
    "lost": (("reserved", "started"), "lost", END),
}


@given(st.lists(st.tuples(st.sampled_from([*ACTS, "reopen"]), st.sampled_from("abc")), max_size=30))
def test_registry_does_what_its_model_does(steps: list[tuple[str, str]]) -> None:
    model: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as state:
        registry = Registry.open(state)
        for act, run_id in steps:
            if act == "reopen":
                registry.close()
                registry = Registry.open(state)
                continue
            needs, makes, given_to_it = ACTS[act]
            try:
                getattr(registry, act)(run_id, given_to_it)
            except HostError as error:
                assert model.get(run_id) not in needs
                assert error.id == ("run-id-reused" if act == "reserve" else "registry-not-written")
            else:
                assert model.get(run_id) in needs
                model[run_id] = makes
            rows = {name: registry.run(name) for name in "abc"}
            assert {name: row.state for name, row in rows.items() if row} == model
            assert {name for name in "abc" if registry.used(name)} == set(model)
            unsettled = {name for name, state in model.items() if state in ("reserved", "started")}
            assert {row.run_id for row in registry.unsettled()} == unsettled
        registry.close()


def whole_registry() -> bytes:
    with tempfile.TemporaryDirectory() as state:
        with Registry.open(state) as registry:
            for number in range(40):
                registry.reserve(f"run-{number}", ENTRY)
        return (Path(state) / "registry.db").read_bytes()


WHOLE = whole_registry()


@given(
    damage=st.dictionaries(
        st.integers(0, len(WHOLE) - 1) | st.integers(0, 120), st.integers(0, 255), min_size=1, max_size=40
    ),
    zeros=st.none() | st.tuples(st.integers(0, len(WHOLE)), st.integers(1, 2 * 4096)),
    end=st.none() | st.integers(0, len(WHOLE)),
)
def test_damaged_registry_is_refused_by_name_or_serves(
    damage: dict[int, int], zeros: tuple[int, int] | None, end: int | None
) -> None:
    content = bytearray(WHOLE)
    for place, value in damage.items():
        content[place] = value
    if zeros is not None:
        content[zeros[0] : sum(zeros)] = bytes(len(content[zeros[0] : sum(zeros)]))
    with tempfile.TemporaryDirectory() as state:
        path = Path(state) / "registry.db"
        path.write_bytes(content[:end])
        path.chmod(0o600)
        try:
            with Registry.open(state) as registry:
                registry.used("run-7")
                registry.reserve("next", ENTRY)
                registry.unsettled()
                assert registry.used("next")
        except HostError as error:
            assert error.id in ("registry-corrupt", "registry-not-written", "run-id-reused")
            assert str(error).isprintable()
        assert path.stat().st_size > 0 or end == 0


@given(st.text(max_size=70) | st.from_regex(r"^[a-z0-9][a-z0-9-]{0,70}\Z"))
def test_run_ids_are_those_of_the_pattern(text: str) -> None:
    import re

    assert is_run_id(text) == bool(re.match(r"^[a-z0-9][a-z0-9-]{0,62}\Z", text))
