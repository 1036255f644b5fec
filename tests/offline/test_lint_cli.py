"""``prespawn lint``: every own format is judged where it stands, and any other is passed over and counted."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.cli import DECLARATION, Shell, shell

from prespawn.linting.ours import FORMATS, NOBODY_DECLARES
from prespawn.policy.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["shell"]  # the fixture

ROOT = Path(__file__).parents[2]
FILE = "allowed: a regular file (policy-unreadable)"
FIRST_FAULT = {"schema/v1": ("value", 2, 6), "syscalls/v1": ("missing-key", 1, 1)}  # whose readers stop there
READ = "allowed: a file or directory that can be read (policy-unreadable)"


@pytest.mark.parametrize("folder", ["policy", "blockers"])
def test_everything_that_is_shipped_is_clean(folder: str, shell: Shell) -> None:
    result = shell.run("lint", "--format", "json", str(ROOT / folder))
    assert (result.code, result.json["findings"], result.err) == (0, [], "")
    assert result.json["files"] >= {"policy": 38, "blockers": 87}[folder]


def test_examples_have_the_findings_that_they_show_and_no_other(shell: Shell) -> None:
    result = shell.run("lint", "--format", "json", str(ROOT / "examples"))
    assert result.code == 2
    assert [(os.path.basename(one["file"]), one["id"]) for one in result.json["findings"]] == [
        ("misspelt.yaml", "input-missing-key"),
        ("misspelt.yaml", "input-unknown-key"),
        ("out-of-bounds.yaml", "declared-file-outside-workspace"),
        ("out-of-bounds.yaml", "env-key-not-allowed"),
        ("out-of-bounds.yaml", "request-field-forbidden"),
    ]


def test_every_format_is_judged(shell: Shell) -> None:
    for format in FORMATS:
        name = shell.file("x.yaml", f"prespawn: {format}\nzzz: 1\n")
        result = shell.run("lint", "--format", "json", name)
        assert result.code == 2, format
        findings = {(one["cause"], one["line"], one["column"]) for one in result.json["findings"]}
        assert FIRST_FAULT.get(format, ("unknown-key", 2, 1)) in findings, format


@pytest.mark.parametrize("format", NOBODY_DECLARES)
def test_what_the_program_writes_itself_is_passed_over_in_a_directory(format: str, shell: Shell) -> None:
    shell.file("sub/x.yaml", f"prespawn: {format}\n")
    result = shell.run("lint", "--format", "json", "sub")
    assert (result.code, result.json["files"], result.json["passed_over"]) == (3, 0, 1)


@pytest.mark.parametrize(
    ("words", "code", "lines", "summary"),
    [
        (("empty",), 3, [], "nothing to judge, 0 passed over; allowed here: files that begin with `prespawn:`"),
        (("other",), 3, [], "nothing to judge, 1 passed over; allowed here: files that begin with `prespawn:`"),
        (("gone",), 2, [f"gone: no such file or directory; {READ}"], "1 file, 1 finding, 0 passed over"),
        (("",), 2, [f"``: no such file or directory; {READ}"], "1 file, 1 finding, 0 passed over"),
        (("fifo",), 2, [f"fifo: is a FIFO; {FILE}"], "1 file, 1 finding, 0 passed over"),
        (("/dev/zero",), 2, [f"/dev/zero: is a device; {FILE}"], "1 file, 1 finding, 0 passed over"),
        (("a\0b",), 2, [rf"a\x00b: no file can have this name; {READ}"], "1 file, 1 finding, 0 passed over"),
        (("loop",), 2, [f"loop: too many levels of symbolic links; {READ}"], "1 file, 1 finding, 0 passed over"),
        (("good.yaml", "./good.yaml", "linked.yaml"), 0, [], "1 file, 0 findings, 0 passed over"),
        (("empty", "good.yaml"), 0, [], "1 file, 0 findings, 0 passed over"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_path_of_any_kind_ends_by_the_table(
    words: Sequence[str], code: int, lines: list[str], summary: str, shell: Shell
) -> None:
    (shell.workspace / "empty").mkdir()
    shell.file("other/x.yaml", "a: 1\n")
    shell.file("good.yaml")
    os.mkfifo(shell.workspace / "fifo")
    (shell.workspace / "loop").symlink_to("loop")
    (shell.workspace / "linked.yaml").symlink_to("good.yaml")
    result = shell.run("lint", *words)
    assert (result.code, result.lines, result.errors) == (code, lines, [f"prespawn: {summary}"])
    assert result.is_quiet


def test_directory_is_walked_without_links_and_without_blocking(shell: Shell) -> None:
    shell.file("sub/deep/bad.yaml", DECLARATION.replace("env_keys: []", "env_keys: [LD_PRELOAD]"))
    os.mkfifo(shell.workspace / "sub" / "fifo.yaml")
    (shell.workspace / "sub" / "dev.yaml").symlink_to("/dev/zero")
    (shell.workspace / "sub" / "etc").symlink_to("/etc")
    (shell.workspace / "sub" / "up").symlink_to("..")
    result = shell.run("lint", "sub")
    assert result.code == 1
    (line,) = result.lines
    assert line.startswith("sub/deep/bad.yaml:6:12: `env_keys[0]` is `LD_PRELOAD`; allowed here: ")
    assert line.endswith(" (env-key-not-allowed)")
    assert result.errors == ["prespawn: 1 file, 1 finding, 2 passed over"]
    assert result.is_quiet


def test_names_and_keys_cannot_write_to_the_terminal(shell: Shell) -> None:
    shell.file("e\x1b[2J\n\u202e.yaml", f'{DECLARATION}"\\e[2J\\n\\u202E": 1\n')
    result = shell.run("lint", ".")
    (line,) = result.lines
    assert line.startswith(r"./e\x1b[2J\x0a\u202e.yaml:9:1: unknown key `\x1b[2J\x0a\u202e`; allowed here: `adapter`, ")
    assert (result.code, result.is_quiet) == (2, True)
    document = shell.run("lint", "--format", "json", ".")
    assert document.out == canonical(document.json) + "\n"
    assert (document.json["prespawn"], document.out.isascii()) == ("lint/v1", True)


# --- filters of system calls, which have no first key


def seccomp(shell: Shell) -> Path:
    folder = shell.workspace / "seccomp"
    shutil.copytree(ROOT / "policy" / "seccomp", folder)
    return folder


def test_filter_is_judged_beside_its_tables_and_where_it_is_named(shell: Shell) -> None:
    folder = seccomp(shell)
    document = json.loads((folder / "default.json").read_text())
    document["syscalls"][0]["names"][0] += "x"
    (folder / "default.json").write_text(json.dumps(document, indent=1))
    beside = shell.run("lint", "--format", "json", "seccomp")
    assert (beside.code, [one["id"] for one in beside.json["findings"]]) == (2, ["policy-unknown-call"])
    for name in ("x86_64.yaml", "aarch64.yaml"):
        (folder / name).unlink()
    alone = shell.run("lint", "--format", "json", "seccomp")
    assert (alone.code, alone.json["passed_over"]) == (3, 1)  # somebody else's, as far as a directory shows
    named = shell.run("lint", "--format", "json", "seccomp/default.json")
    assert named.json["findings"] == beside.json["findings"]
    assert named.code == 2


def test_filter_is_judged_for_every_machine_that_it_names(shell: Shell) -> None:
    folder = seccomp(shell)
    document = json.loads((folder / "default.json").read_text())
    document["archMap"] = document["archMap"][:1]
    (folder / "default.json").write_text(json.dumps(document))
    assert shell.run("lint", "seccomp").code == 0
    document["archMap"][0]["architecture"] = "SCMP_ARCH_NONE"
    (folder / "default.json").write_text(json.dumps(document))
    result = shell.run("lint", "--format", "json", "seccomp")
    assert [one["id"] for one in result.json["findings"]] == ["policy-architecture"]


def test_table_is_judged_with_its_place(shell: Shell) -> None:
    folder = seccomp(shell)
    text = (folder / "x86_64.yaml").read_text()
    (folder / "x86_64.yaml").write_text(text.replace("  read: 0\n", "  read: -1\n"))
    (finding,) = shell.run("lint", "--format", "json", "seccomp").json["findings"]
    assert (finding["file"], finding["id"]) == ("seccomp/x86_64.yaml", "policy-range")
    assert "`numbers.read` is `-1`" in finding["message"]
