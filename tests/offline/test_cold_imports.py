"""What a plain line imports: nothing whose import costs more than it gives, and of PyYAML the parser alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import runtimes

ROOT = Path(__file__).parents[2]
SITE = Path(yaml.__file__).parents[1]
PATH = "/usr/local/bin:/usr/bin:/bin"
NEVER = frozenset({
    "argparse", "cerberus", "click", "dataclasses", "datetime", "docker", "enum", "hashlib", "importlib.metadata",
    "importlib.resources", "inspect", "json", "jsonschema", "logging", "operator", "pathlib", "platform", "random",
    "re", "requests", "shutil", "signal", "socket", "sqlite3", "subprocess", "tempfile", "threading", "typing",
})  # fmt: skip
LINE = """\
import sys
before = set(sys.modules)
import prespawn
from prespawn.cli import main
prespawn.own_process = True
code = main(sys.argv[1:])
print(*sorted(set(sys.modules) - before), sep="\\n", file=sys.stderr)
sys.exit(code)
"""
OWN = """\
import os
import sys
import prespawn
from prespawn.documents import document_file
from prespawn.policy.errors import ReadError
prespawn.own_process = sys.argv[1] == "own"
os.chdir(sys.argv[2])
def value(text):
    with open("a.yaml", "wb") as file:
        file.write(text)
    return document_file("a.yaml", "input").value
assert value(b"a: [b, 1]\\n") == {"a": ["b", 1]}
assert ("yaml.constructor" in sys.modules) is not prespawn.own_process
import yaml
assert yaml.load("a: [1, 2.5]", Loader=yaml.CSafeLoader) == yaml.safe_load("a: [1, 2.5]") == {"a": [1, 2.5]}
assert yaml.dump({"a": 1}, Dumper=yaml.CDumper) == yaml.dump({"a": 1}) == "a: 1\\n"
assert yaml.cyaml.CParser is sys.modules["prespawn.policy.yaml_reader"].CParser
errors = {"a: [": yaml.parser.ParserError, "'": yaml.scanner.ScannerError, "\\1": yaml.reader.ReaderError}
for text, error in errors.items():
    try:
        yaml.load(text, Loader=yaml.CSafeLoader)
    except error:
        continue
    raise AssertionError(text)
try:
    value(b"a: '\\1'\\n")
except ReadError as wrong:
    print(wrong)
"""


def imported(project: Path, *line: str) -> set[str]:
    """Return what a line, run in a process of its own, imports beyond what a bare interpreter has.

    Without ``site``, for what an environment imports at every start is none of this program's.
    """
    environment = {"PATH": PATH, "XDG_STATE_HOME": str(project.parent / "state"), "PYTHONPATH": f"{ROOT}:{SITE}"}
    command = [sys.executable, "-S", "-P", "-c", LINE, *line]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir(mode=0o700)
    return Path(shutil.copytree(ROOT / "examples" / "project", tmp_path / "project"))


def test_plain_check_imports_nothing_that_costs_more_than_the_decision(project: Path) -> None:
    file = project / "format-and-test.yaml"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("env_keys")) + "env_keys: []\n")
    found = imported(
        project, "check", file.name
    )  # values of an environment are judged by patterns, and would need `re`
    assert found & NEVER == set()
    whole = {"yaml", "yaml._yaml", "yaml.error", "yaml.events", "yaml.nodes", "yaml.tokens"}
    assert {name for name in found if name.partition(".")[0] == "yaml"} == whole


@pytest.mark.skipif(not runtimes.bubblewraps(), reason="no `bwrap` on this host")
def test_plain_exec_imports_nothing_that_costs_more_than_the_decision(project: Path) -> None:
    found = imported(project, "exec", "--", "true")
    assert found & NEVER <= {"hashlib", "operator"}  # for the workspace's files, while bubblewrap works; and for SQLite
    assert not {name for name in found if name.partition(".")[0] == "yaml"}
    assert "prespawn.attest" in found  # it was looked at


@pytest.mark.parametrize("whose", ["own", "library"])
def test_whoever_imports_yaml_after_a_read_gets_the_whole_package(whose: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", OWN, whose, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "a.yaml:1:5: character `\\x01`; write it as an escape (input-invalid)\n"
