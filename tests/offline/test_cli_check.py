"""``prespawn check``: what it prints and answers, to the letter, and that it does nothing else."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from support import as_user
from support.cli import DECLARATION, ROOT, Shell, is_plain, runtime, shell

from prespawn import Gate, exit_codes
from prespawn.checker import functions
from prespawn.checker.approve import draft
from prespawn.checker.verdict import Verdict
from prespawn.documents import facts_file
from prespawn.policy.canonical import canonical

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["runtime", "shell"]  # the fixtures

pytestmark = pytest.mark.usefixtures("runtime")
NOT_CLAIMED = (
    "  not claimed at this level: artifacts, credentials, image, lifecycle, mounts, network, policy, process, "
    "provider, resources, session"
)
ALLOWED = ["allowed at level logical (logical needed, logical attainable)", NOT_CLAIMED]
REMEDY = "make what is listed visible to the check, or have an operator accept it once"
MISSING = DECLARATION.replace("declared_files: []", "declared_files: [gone.py]")
UNREADABLE = "allowed: a regular file that can be read (input-unreadable)"
USAGE = "`prespawn check --help` says what is allowed here (usage)"
THERE = "is there already and is not written over; move it away, or name another file (usage)"
HOSTILE = "\x1b]0;x\x07\n\r\t\u202e\u2028\x9b"
QUOTED = '"\\e]0;x\\a\\n\\r\\t\\u202E\\u2028\\x9b"'
SHOWN = r"\x1b]0;x\x07\x0a\x0d\x09\u202e\u2028\x9b"


def missing(name: str) -> list[str]:
    return [
        f"{name}: blocked by 1 blocker",
        "  declared-file-missing: `declared_files[0]` is `gone.py`; allowed here: a file that exists; "
        "correct the name; a file that the run will create belongs in `file_contract.allowed_paths`",
    ]


def test_allowed_declaration_is_said_with_what_its_level_leaves_open(shell: Shell) -> None:
    result = shell.run("check", shell.file("d.yaml"))
    assert (result.code, result.lines, result.err) == (0, [f"d.yaml: {ALLOWED[0]}", NOT_CLAIMED], "")
    assert result.is_quiet


def test_blocked_declaration_is_said_with_value_and_remedy(shell: Shell) -> None:
    result = shell.run("check", shell.file("d.yaml", MISSING))
    assert (result.code, result.lines, result.err) == (1, missing("d.yaml"), "")
    assert result.is_quiet


def test_several_files_are_answered_in_order_and_the_worst_is_the_code(shell: Shell) -> None:
    shell.file("good.yaml")
    shell.file("bad.yaml", MISSING)
    shell.file("broken.yaml", "prespawn: [\n")
    result = shell.run("check", "bad.yaml", "broken.yaml", "good.yaml", "gone.yaml", "bad.yaml")
    assert result.code == 2
    assert result.lines == [*missing("bad.yaml"), f"good.yaml: {ALLOWED[0]}", NOT_CLAIMED, *missing("bad.yaml")]
    first, second = result.errors
    assert first.startswith("broken.yaml:2:1: not YAML: ")
    assert first.endswith(" (input-invalid)")
    assert second == f"prespawn: gone.yaml: no such file or directory; {UNREADABLE}"
    assert result.is_quiet


ANSWERS = {
    "good.yaml": exit_codes.ALLOWED,
    "undecided.yaml": exit_codes.UNDECIDED,
    "bad.yaml": exit_codes.BLOCKED,
    "gone.yaml": exit_codes.USAGE,
}


@pytest.mark.parametrize("one", ANSWERS)
@pytest.mark.parametrize("other", ANSWERS)
def test_worst_of_two_files_wins(one: str, other: str, shell: Shell) -> None:
    shell.file("good.yaml")
    shell.file("bad.yaml", MISSING)
    undecided(shell)
    severity = list(exit_codes.WORST_FIRST)
    assert shell.run("check", one, other).code == min(ANSWERS[one], ANSWERS[other], key=severity.index)


def undecided(shell: Shell) -> None:
    """Declare a profile that looks at fewer files than there are: whether one is a socket is then unknown."""
    profile = "prespawn: profile/v1\nid: tiny-v1\nextends: sandbox-v1\nlimits: {tree_entries: 1}\n"
    shell.file(str(shell.site.parent / "profiles" / "tiny.yaml"), profile)
    pairs = [{"adapter": "exec@1", "profile": name} for name in ("sandbox-v1", "tiny-v1")]
    shell.write_site(activated=["sandbox-v1", "tiny-v1"], pairs=pairs)
    shell.file("undecided.yaml", DECLARATION.replace("sandbox-v1", "tiny-v1"))


def test_crash_of_a_check_is_an_internal_error_and_no_traceback(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> object:
        raise RuntimeError("boom with a secret")

    name = "execution_preview_interpreter"
    assert name.replace("_", "-") in functions.FUNCTIONS
    monkeypatch.setitem(functions.FUNCTIONS, name.replace("_", "-"), crash)
    result = shell.run("check", shell.file("d.yaml"))
    assert result.code == 70
    assert "internal-error" in result.out
    assert "secret" not in result.out + result.err
    assert "Traceback" not in result.err
    assert result.is_quiet


# --- bad input


def test_no_file_is_a_wrong_command_line(shell: Shell) -> None:
    for words in ((), ("--",), ("--format", "json")):
        result = shell.run("check", *words)
        assert (result.code, result.out, result.errors) == (2, "", [f"prespawn: missing argument `FILE...`; {USAGE}"])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--nope", "d.yaml"), f"no such option `--nope`; {USAGE}"),
        (("--sit", "x", "d.yaml"), None),  # an abbreviation is no option
        (("--format", "xml", "d.yaml"), f"invalid value for `--format`: `xml` is not one of `text`, `json`; {USAGE}"),
        (("d.yaml", "--site"), f"option `--site` requires an argument; {USAGE}"),
        (("--workspace", "main", "d.yaml"), "`--workspace` is `main`; allowed here: `NAME=DIR` (usage)"),
        (("--workspace", "=/x", "d.yaml"), "`--workspace` is `=/x`; allowed here: `NAME=DIR` (usage)"),
        (("--workspace", "x=/x", "d.yaml"), "the site has no workspace `x`; allowed here: `main` (usage)"),
        (
            ("--workspace", "main=/x", "--workspace", "main=/y", "d.yaml"),
            "`--workspace` gives `main` two roots; keep one (usage)",
        ),
        (
            ("--facts", "f", "d.yaml", "d.yaml"),
            "facts belong to one declaration; give one file with `--facts` or `--record-facts` (usage)",
        ),
        (
            ("--facts", "f", "--record-facts", "g", "d.yaml"),
            "recorded facts are not recorded again; keep one of `--facts` and `--record-facts` (usage)",
        ),
        (
            ("--site", "gone", "d.yaml"),
            "gone: no such file or directory; allowed: a site file; `prespawn init DIR` writes one (policy-unreadable)",
        ),
        (("--site", "", "d.yaml"), "``: no such file or directory; allowed: a regular file that can be read "
                                   "(policy-unreadable)"),
        (("--record-facts", "gone/f", "d.yaml"), "facts cannot be written to `gone/f`: no such file or directory "
                                               "(usage)"),
        (("--record-facts", ".", "d.yaml"), f"`.` {THERE}"),
        (("--record-facts", "", "d.yaml"), "facts cannot be written to ``: no such file or directory (usage)"),
        (("--record-facts", "fifo", "d.yaml"), f"`fifo` {THERE}"),
    ],
)  # fmt: skip
def test_wrong_line_is_one_sentence(words: tuple[str, ...], error: str | None, shell: Shell) -> None:
    shell.file("d.yaml")
    os.mkfifo(shell.workspace / "fifo")
    result = shell.run("check", *words)
    assert (result.code, result.out, len(result.errors)) == (2, "", 1)
    assert error is None or result.errors == [f"prespawn: {error}"]
    assert result.is_quiet


def things(top: Path) -> None:
    """Put what is no file that can be read into a directory."""
    (top / "directory").mkdir()
    os.mkfifo(top / "fifo")
    (top / "loop").symlink_to("loop")
    (top / "dangling").symlink_to("nowhere")
    (top / "to-fifo").symlink_to("fifo")
    (top / "file").write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")


THINGS = {
    "gone": f"no such file or directory; {UNREADABLE}",
    "": f"no such file or directory; {UNREADABLE}",
    "file/below": f"not a directory; {UNREADABLE}",
    "dangling": f"no such file or directory; {UNREADABLE}",
    "loop": f"too many levels of symbolic links; {UNREADABLE}",
    "n" * 300: f"file name too long; {UNREADABLE}",
    "a\0b": f"no file can have this name; {UNREADABLE}",
    "\udcff": f"no such file or directory; {UNREADABLE}",
    HOSTILE: f"no such file or directory; {UNREADABLE}",
    "directory": "is a directory; allowed: a regular file (input-unreadable)",
    "fifo": "is a FIFO; allowed: a regular file (input-unreadable)",
    "to-fifo": "is a FIFO; allowed: a regular file (input-unreadable)",
    "socket": "is a socket; allowed: a regular file (input-unreadable)",
    "/dev/null": "is a device; allowed: a regular file (input-unreadable)",
    "/dev/zero": "is a device; allowed: a regular file (input-unreadable)",
    "/dev/tty": "is a device; allowed: a regular file (input-unreadable)",
    "/proc/self/mem": f"input/output error; {UNREADABLE}",
    "big.yaml": "1048577 bytes; allowed: up to 1048576 (input-unreadable)",
}


@pytest.mark.parametrize("name", THINGS, ids=ascii)
@pytest.mark.parametrize("command", ["check", "run"])
def test_what_is_no_readable_file_is_named_at_once(command: str, name: str, shell: Shell) -> None:
    things(shell.workspace)
    shell.file("big.yaml", b" " * ((1 << 20) + 1))
    result = shell.run(command, name)
    said = ascii(name)[1:-1].replace(r"\n", r"\x0a").replace(r"\r", r"\x0d").replace(r"\t", r"\x09") or "``"
    assert (result.code, result.out, result.errors) == (2, "", [f"prespawn: {said}: {THINGS[name]}"])
    assert result.is_quiet
    answered = shell.run(command, "--format", "json", name)
    (answer,) = answered.json.get("results", [answered.json])
    assert (answered.code, answered.err, answer["file"]) == (2, "", name)
    assert answer["error"]["id"] == "input-unreadable"


def test_file_that_may_not_be_read_is_named(shell: Shell) -> None:
    name = shell.file("d.yaml")
    (shell.workspace / name).chmod(0)
    errors = as_user.call(as_user.USER if ROOT else None, lambda: shell.run("check", name).errors)
    assert errors == [f"prespawn: d.yaml: permission denied; {UNREADABLE}"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", ":1:1: nothing in it but blanks and comments; allowed here: one document (input-empty)"),
        ("# x\n", ":1:1: nothing in it but blanks and comments; allowed here: one document (input-empty)"),
        ("null\n", ":1:1: the document is null; allowed here: a mapping that begins with `prespawn: declaration/v1` "
                   "(input-invalid)"),
        ("- a\n", ":1:1: the document is a list; allowed here: a mapping that begins with `prespawn: declaration/v1` "
                  "(input-invalid)"),
        ("prespawn: site/v1\n", ":1:11: `prespawn` is `site/v1`; allowed here: `prespawn: declaration/v1` "
                                "(input-invalid)"),
        (DECLARATION.replace("profile:", "profil:"),
         ":2:1: unknown key `profil`; did you mean `profile` (input-unknown-key)"),
        (DECLARATION.replace("profile: sandbox-v1\n", ""), ":1:1: `profile` is missing; add it (input-missing-key)"),
        (DECLARATION + "cwd: .\n", ":9:1: key `cwd` stands here twice, first at line 4, column 1; keep one "
                                   "(input-invalid)"),
        (DECLARATION.replace("[ls]", "no"),
         ":7:19: plain `no` is not a string to every reader; allowed here: `true`, `false`, `null`; quote it if "
         "text is meant (input-invalid)"),
        (b"\xef\xbb\xbf" + DECLARATION.encode(),
         ":1:1: this is UTF-8 with a byte order mark; allowed here: UTF-8 without a byte order mark (input-invalid)"),
    ],
    ids=lambda value: ascii(value)[:30],
)  # fmt: skip
def test_document_that_is_refused_is_said_with_its_place(content: str | bytes, error: str, shell: Shell) -> None:
    result = shell.run("check", shell.file("d.yaml", content))
    assert (result.code, result.out, len(result.errors)) == (2, "", 1)
    assert result.errors[0] == f"d.yaml{error}"
    assert result.is_quiet


def test_standard_input_is_a_file_like_any_other(shell: Shell) -> None:
    for data in (DECLARATION.encode(), json.dumps(plain()).encode(), b" \n" + json.dumps(plain(), indent=1).encode()):
        result = shell.run("check", "-", stdin=data)
        assert (result.code, result.lines, result.err) == (0, [f"-: {ALLOWED[0]}", NOT_CLAIMED], "")
    result = shell.run("check", "-", stdin=b"")
    empty = "standard input:1:1: nothing in it but blanks and comments; allowed here: one document (input-empty)"
    assert (result.code, result.out, result.errors) == (2, "", [empty])
    assert shell.run("check", "-", stdin=b" " * ((1 << 20) + 1)).code == 2


def plain() -> dict[str, Any]:
    return {
        "prespawn": "declaration/v1", "profile": "sandbox-v1", "adapter": "exec@1", "cwd": ".", "declared_files": [],
        "env_keys": [], "execution": {"argv": ["ls"]}, "file_contract": {"mode": "read-only"},
    }  # fmt: skip


# --- control characters


@pytest.mark.parametrize(
    "changed",
    [
        DECLARATION.replace("profile: sandbox-v1", f"profile: {QUOTED}"),
        DECLARATION.replace("adapter: exec@1", f"adapter: {QUOTED}"),
        DECLARATION.replace("cwd: .", f"cwd: {QUOTED}"),
        DECLARATION.replace("declared_files: []", f"declared_files: [{QUOTED}]"),
        DECLARATION.replace("env_keys: []", f"env_keys: [{QUOTED}]"),
        DECLARATION.replace("[ls]", f"[{QUOTED}]"),
        DECLARATION.replace("mode: read-only", f"mode: {QUOTED}"),
        DECLARATION.replace("mode: read-only", f"mode: mutation, allowed_paths: [{QUOTED}]"),
        DECLARATION + f"run_id: {QUOTED}\n",
        DECLARATION + f"workspace: {QUOTED}\n",
        DECLARATION + f"level: {QUOTED}\n",
        DECLARATION + f"log_path: {QUOTED}\n",
        DECLARATION + f"registry_path: {QUOTED}\n",
        DECLARATION + f"image: {QUOTED}\n",
        DECLARATION + f"image: {{{QUOTED}: 1}}\n",
    ],
    ids=lambda text: next(line for line in text.splitlines() if r"\e" in line).partition(":")[0],
)
def test_value_cannot_write_to_the_terminal(changed: str, shell: Shell) -> None:
    name = shell.file("d.yaml", changed)
    result = shell.run("check", name)
    assert (result.code, result.err) == (1, "")
    assert result.is_quiet
    assert "\x1b" not in shell.run("check", "--format", "json", name).out


@pytest.mark.parametrize(
    "key", [QUOTED, f"{QUOTED}: {{}}\n{QUOTED}", f"? [{QUOTED}]\n"], ids=["key", "twice", "complex"]
)
def test_key_cannot_write_to_the_terminal(key: str, shell: Shell) -> None:
    result = shell.run("check", shell.file("d.yaml", f"{DECLARATION}{key}: 1\n"))
    assert (result.code, result.out, len(result.errors)) == (2, "", 1)
    assert result.is_quiet


def test_unknown_key_is_named_as_it_is_spelled(shell: Shell) -> None:
    (error,) = shell.run("check", shell.file("d.yaml", f"{DECLARATION}{QUOTED}: 1\n")).errors
    assert error.startswith(f"d.yaml:9:1: unknown key `{SHOWN}`; allowed here: `adapter`, ")


def test_file_name_cannot_write_to_the_terminal(shell: Shell) -> None:
    shell.file(HOSTILE)
    result = shell.run("check", HOSTILE)
    assert (result.code, result.lines[0], result.err) == (0, f"{SHOWN}: {ALLOWED[0]}", "")
    assert shell.run("check", "--format", "json", HOSTILE).json["results"][0]["file"] == HOSTILE


def test_value_cannot_end_its_own_quotes(shell: Shell) -> None:
    forged = "x`; allowed here: everything; nothing to do"
    result = shell.run("check", shell.file("d.yaml", DECLARATION.replace("sandbox-v1", f'"{forged}"')))
    assert "  profile-unknown: `profile` is `x'; allowed here: everything; nothing to do`; allowed here: " in result.out


# --- JSON


def test_json_is_one_versioned_document_with_every_verdict(shell: Shell) -> None:
    shell.file("good.yaml")
    shell.file("bad.yaml", MISSING)
    shell.file("broken.yaml", "a: [\n")
    result = shell.run("check", "--format", "json", "good.yaml", "bad.yaml", "broken.yaml", "gone.yaml")
    assert (result.code, result.err) == (2, "")
    assert result.out == canonical(result.json) + "\n"
    assert result.json["prespawn"] == "check/v1"
    good, bad, broken, gone = result.json["results"]
    assert (good["file"], good["verdict"]["allowed"], good["verdict"]["prespawn"]) == ("good.yaml", True, "verdict/v1")
    assert [blocker["id"] for blocker in bad["verdict"]["blockers"]] == ["declared-file-missing"]
    assert {key: broken["error"][key] for key in ("id", "cause", "line", "column")} == {
        "id": "input-invalid", "cause": "syntax", "line": 2, "column": 1,
    }  # fmt: skip
    assert (gone["error"]["line"], gone["error"]["cause"]) == (0, "unreadable")


# --- facts


def test_recorded_facts_give_the_same_bytes_elsewhere(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("good.yaml", DECLARATION), ("bad.yaml", MISSING)):
        shell.file(name, text)
        seen = shell.run("check", "--format", "json", "--record-facts", f"{name}.json", name)
        assert seen.changed - {"ws"} == {f"ws/{name}.json"}
        assert seen.started == []
        assert os.stat(shell.workspace / f"{name}.json").st_mode & 0o777 == 0o600
        (shell.workspace / "gone.py").write_text("now it is there")
        monkeypatch.setenv("TZ", "changed")
        replayed = shell.run("check", "--format", "json", "--facts", f"{name}.json", name)
        assert (replayed.code, replayed.out, replayed.err) == (seen.code, seen.out, seen.err)
        assert replayed.is_quiet
        text_form = shell.run("check", "--facts", f"{name}.json", name)
        assert text_form.lines == (missing(name) if name == "bad.yaml" else [f"{name}: {ALLOWED[0]}", NOT_CLAIMED])
        (shell.workspace / "gone.py").unlink()


def test_facts_of_another_declaration_are_a_blocker(shell: Shell) -> None:
    shell.file("d.yaml")
    shell.file("other.yaml", DECLARATION.replace("[ls]", "[ls, -l]"))
    shell.run("check", "--record-facts", "f.json", "d.yaml")
    result = shell.run("check", "--format", "json", "--facts", "f.json", "other.yaml")
    assert result.code == 1
    assert [blocker["id"] for blocker in result.json["results"][0]["verdict"]["blockers"]] == ["facts-mismatch"]


def test_unknown_fact_is_undecided_and_listed(shell: Shell) -> None:
    shell.file("d.yaml")
    shell.run("check", "--record-facts", "f.json", "d.yaml")
    facts = json.loads((shell.workspace / "f.json").read_text())
    facts["workspace"]["sockets"] = {"unknown": "nobody looked"}
    shell.file("f.json", json.dumps(facts))
    result = shell.run("check", "--facts", "f.json", "d.yaml")
    assert (result.code, result.err) == (4, "")
    assert result.lines == [
        "d.yaml: undecided by 2 blockers",
        f"  isolation-level-unknown: `level` could not be judged: mount-holds-socket; {REMEDY}; a level is one of the "
        "words of `levels/v1`",
        "  mount-holds-socket: `workspace` could not be judged: nobody looked; allowed here: a tree without sockets; "
        "end the process that listens there, or move its socket out of the workspace",
    ]


def test_no_plan_is_made_from_recorded_facts(shell: Shell) -> None:
    shell.file("d.yaml")
    shell.run("check", "--record-facts", "f.json", "d.yaml")
    gate, facts = Gate.load(), facts_file("f.json")
    verdict = gate.check_replayed(plain(), facts)
    assert verdict.allowed
    assert type(verdict) is Verdict  # nothing that a launch or a preview takes
    declared = gate.check(plain()).declaration
    assert declared is not None
    with pytest.raises(TypeError, match="a plan is never made from recorded facts"):
        draft(declared, gate.policy, facts, verdict, run_id="x", values={}, search_path=(), filter=None)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (DECLARATION, "f:1:1: this is no `facts/v1`; allowed: a file that `prespawn check --record-facts` wrote "
                      "(input-invalid)"),
        ("{", "f:1:2: "),
        ("", "f:1:1: nothing in it but blanks and comments; allowed here: one document (input-empty)"),
        ('{"prespawn": "facts/v1"}', "f:1:1: "),
        ('{"prespawn": "facts/v1", "\\u001b": 1}', "f:1:1: "),
    ],
)  # fmt: skip
def test_facts_that_are_none_are_named(content: str, error: str, shell: Shell) -> None:
    shell.file("d.yaml")
    shell.file("f", content)
    result = shell.run("check", "--facts", "f", "d.yaml")
    assert (result.code, result.out, len(result.errors)) == (2, "", 1)
    assert result.errors[0].startswith(error)
    assert result.errors[0].endswith(")")
    assert is_plain(result.err)
    assert result.is_quiet


def test_nothing_is_recorded_of_what_is_no_declaration(shell: Shell) -> None:
    shell.file("d.yaml", "a: 1\n")
    result = shell.run("check", "--record-facts", "f.json", "d.yaml")
    assert (result.code, result.changed) == (2, set())
