"""The conformance kit: a right adapter passes, and each wrong one fails for its own reason and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cases import expected
from support.cli import Shell, shell
from support.world import pages

from prespawn.testing import FORMAT, check, tried, vectors

__all__ = ["shell"]  # the fixture

ADAPTER = str(Path(__file__).parents[1] / "support" / "adapters.py")
VECTORS = {vector["name"]: vector for vector in vectors()}
LISTED = "env-key-not-allowed: a listed key"
NOT_LISTED = "env-key-not-allowed: a key that is not listed"
UNSEEN = "execute-cwd-mismatch: the directory could not be looked at"
SAMPLE = (LISTED, NOT_LISTED, UNSEEN)


def adapter(how: str) -> list[str]:
    return [sys.executable, ADAPTER, how]


def found(how: str, name: str) -> list[str]:
    return sorted({finding.id for finding in tried(VECTORS[name], adapter(how))})


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_right_adapter_keeps_both_halves_of_every_portable_vector(name: str) -> None:
    check(VECTORS[name], adapter("right"))


@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        ("adds", [[], [], []]),
        ("drops", [[], ["blocker-missing", "start-allowed"], []]),
        ("spawns", [["worker-started"]] * 3),
        ("detaches", [["worker-started"]] * 3),
        ("claims", [["level-overclaimed"]] * 3),
        ("allows", [[], ["start-allowed"], ["start-allowed"]]),
        ("refuses", [["start-refused"], ["blocker-missing"], ["blocker-missing"]]),
        ("says nothing", [["answer-invalid"]] * 3),
        ("says too little", [["answer-invalid"]] * 3),
    ],
)
def test_adapter_is_found_wrong_for_its_own_reason(how: str, wrong: list[list[str]]) -> None:
    assert [found(how, name) for name in SAMPLE] == wrong


def test_adapter_in_another_language_is_tried_alike(tmp_path: Path) -> None:
    script = tmp_path / "adapter.sh"
    script.write_text("""#!/bin/sh
read vector
case $vector in
*'"env_keys": ["FOO"]'*) echo '{"allowed": false, "blockers": ["env-key-not-allowed"], "level": "unknown"}' ;;
*) echo '{"allowed": true, "blockers": [], "level": "unknown"}'; pytest -q ;;
esac
""")
    script.chmod(0o755)
    assert [[one.id for one in tried(VECTORS[name], [str(script)])] for name in SAMPLE[:2]] == [["worker-started"], []]


def is_alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended stays visible until whoever adopted it has noticed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_nothing_of_an_adapter_is_left(tmp_path: Path) -> None:
    script = tmp_path / "adapter.sh"
    script.write_text(f"#!/bin/sh\nsetsid sleep 4711 & echo $! > {tmp_path}/pid\necho '{{}}'\n")
    script.chmod(0o755)
    tried(VECTORS[LISTED], [str(script)])
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_vectors_say_what_the_cases_say() -> None:
    cases = {f"{id}: {case['name']}": (id, case) for id, page in pages().items() for case in page["cases"]}
    for vector in vectors(everything=True):
        id, case = cases[vector["name"]]
        wanted = {blocker["id"] for blocker in expected(id, case)}
        assert (vector["prespawn"], set(vector["expect"]["blockers"])) == (FORMAT, wanted)
        assert vector["expect"]["allowed"] is not bool(wanted)


def test_every_portable_blocker_has_vectors_that_block_and_that_pass() -> None:
    portable = {id for id, page in pages().items() if page["portable"]}
    assert {id for vector in VECTORS.values() for id in vector["expect"]["blockers"]} >= portable - {"internal-error"}
    assert [name for name, vector in VECTORS.items() if vector["expect"]["allowed"]]


def test_vectors_are_json_and_the_same_every_time() -> None:
    text = json.dumps(vectors(everything=True), sort_keys=True)
    assert json.loads(text) == list(vectors(everything=True))


def test_command_line_exports_the_vectors(shell: Shell) -> None:
    result = shell.run("conform", "--export")
    assert (result.code, result.started, result.changed) == (0, [], set())
    assert [json.loads(line)["name"] for line in result.lines] == sorted(VECTORS)


def test_command_line_names_each_finding(shell: Shell) -> None:
    result = shell.run("conform", "--", *adapter("claims"))
    assert result.code == 1
    assert result.lines[-1] == f"{len(VECTORS)} vectors, {len(VECTORS)} findings"
    assert all(line.endswith("(level-overclaimed)") for line in result.lines[:-1])


def test_command_line_wants_one_of_both(shell: Shell) -> None:
    assert shell.run("conform").code == shell.run("conform", "--export", "--", "true").code == 2


PLUGIN = """
import sys
from prespawn.testing import check

def test_adapter(prespawn_vector):
    check(prespawn_vector, [sys.executable, {adapter!r}, {how!r}])
"""


@pytest.mark.parametrize(("how", "status"), [("right", 0), ("drops", 1)])
def test_plugin_runs_a_test_for_each_vector(tmp_path: Path, how: str, status: int) -> None:
    (tmp_path / "test_mine.py").write_text(PLUGIN.format(adapter=ADAPTER, how=how))
    words = ["-m", "pytest", "-q", "-p", "prespawn.testing.plugin", "-p", "no:cacheprovider", "-k", "env-key", "."]
    done: Any = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stdout
    assert ("blocker-missing" in done.stdout) is bool(status)
