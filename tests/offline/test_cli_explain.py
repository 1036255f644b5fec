"""``explain``, ``blockers``, ``profiles`` and ``run``: pages and lists say what the data says, and nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.cli import DECLARATION, Shell, is_plain, runtime, shell
from support.world import pages

from prespawn.enforcers import LAUNCHERS
from prespawn.policy import shipped
from prespawn.policy.canonical import canonical, digest
from prespawn.policy.catalogue import profiles

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["runtime", "shell"]  # the fixtures

PAGES = pages()
HELP = "`prespawn --help` says what is allowed here (usage)"
ONE = "`prespawn blockers` lists them (usage)"


# --- explain


@pytest.mark.parametrize("id", sorted(PAGES))
def test_page_has_what_its_file_says(id: str, shell: Shell) -> None:
    page = PAGES[id]
    result = shell.run("explain", id)
    assert (result.code, result.err) == (0, "")
    assert result.is_quiet
    assert result.lines[0] == f"{id}: {page['title']}"
    text = " ".join(result.out.split())
    for part in (page["why"], f"remedy: {page['remedy']}", f"boundary {page['boundary']};"):
        assert " ".join(part.split()) in text
    assert ("never accepted" in text) == (page["operator"] == "never")
    assert ("portable: " in text) == page["portable"]
    cases = [line for line in result.lines if line.startswith(("  blocks  ", "  passes  ", "  unknown "))]
    assert len(cases) == len(page["cases"])


def test_page_in_json_is_the_whole_file(shell: Shell) -> None:
    result = shell.run("explain", "--format", "json", "declared-file-missing")
    assert result.out == canonical(result.json) + "\n"
    page = PAGES["declared-file-missing"]
    assert result.json["prespawn"] == "explain/v1"
    shown = result.json["blocker"]
    assert {key: shown[key] for key in ("id", "title", "why", "remedy")} == {
        key: page[key] for key in ("id", "title", "why", "remedy")
    }
    assert len(shown["cases"]) == len(page["cases"])


@pytest.mark.parametrize(
    ("id", "error"),
    [
        ("env-key-loadr", "there is no blocker `env-key-loadr`; did you mean `env-key-loader` (usage)"),
        ("nope", f"there is no blocker `nope`; {ONE}"),
        ("", f"there is no blocker ``; {ONE}"),
        ("base", f"there is no blocker `base`; {ONE}"),
        ("../policy/levels", f"there is no blocker `../policy/levels`; {ONE}"),
        ("x\x1b[2J\n\u202e", rf"there is no blocker `x\x1b[2J\x0a\u202e`; {ONE}"),
        ("\udcff", rf"there is no blocker `\udcff`; {ONE}"),
        ("a\0b", rf"there is no blocker `a\x00b`; {ONE}"),
    ],
    ids=ascii,
)
def test_id_that_is_none_is_a_wrong_line_and_no_empty_page(id: str, error: str, shell: Shell) -> None:
    for words in ((id,), (id, "--format", "json")):
        result = shell.run("explain", *words)
        assert (result.code, result.out, result.errors) == (2, "", [f"prespawn: {error}"])
        assert result.is_quiet


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("explain",), "missing argument `ID`; `prespawn explain --help` says what is allowed here (usage)"),
        (
            ("explain", "a", "b"),
            "got unexpected extra argument (b); `prespawn explain --help` says what is allowed here (usage)",
        ),
        (
            ("blockers", "x"),
            "got unexpected extra argument (x); `prespawn blockers --help` says what is allowed here (usage)",
        ),
        (("nope",), "no such command `nope`; `prespawn --help` says what is allowed here (usage)"),
        (("run", "--nope"), "no such option `--nope`; `prespawn run --help` says what is allowed here (usage)"),
        (("chek",), f"no such command `chek`; did you mean `check`; {HELP}"),
        (("--nope",), "no such option `--nope`; `prespawn --help` says what is allowed here (usage)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_line_is_one_sentence(words: Sequence[str], error: str, shell: Shell) -> None:
    result = shell.run(*words)
    assert (result.code, result.out, result.errors) == (2, "", [f"prespawn: {error}"])
    assert result.is_quiet


def test_no_command_is_help_and_a_wrong_line(shell: Shell) -> None:
    bare, asked = shell.run(), shell.run("--help")
    assert (bare.code, bare.out, asked.code, asked.err) == (2, "", 0, "")
    assert bare.err == asked.out
    assert bare.errors[0] == "Usage: prespawn [OPTIONS] COMMAND [ARGS]..."


def test_version_is_one_line(shell: Shell) -> None:
    result = shell.run("--version")
    assert (result.code, result.err) == (0, "")
    name, number = result.out.split()
    assert name == "prespawn"
    assert all(part.isdigit() for part in number.split("."))


# --- lists


def test_blockers_lists_every_one_and_marks_the_portable(shell: Shell) -> None:
    result = shell.run("blockers")
    assert (result.code, result.err) == (0, "")
    assert result.is_quiet
    rows = {line[2:].split(" ", 1)[0]: line for line in result.lines[:-2]}
    assert list(rows) == sorted(PAGES)
    for id, line in rows.items():
        assert line.startswith("* " if PAGES[id]["portable"] else "  ")
        assert line.endswith(f"  {PAGES[id]['title']}")
    assert result.lines[-2:] == ["", "* portable: every adapter reports it under this id"]


def test_blockers_in_json_are_rows_by_id(shell: Shell) -> None:
    result = shell.run("blockers", "--format", "json")
    assert result.out == canonical(result.json) + "\n"
    assert result.json["prespawn"] == "blockers/v1"
    rows = {row["id"]: row for row in result.json["blockers"]}
    assert list(rows) == sorted(PAGES)
    for id, row in rows.items():
        assert row == {name: PAGES[id][name] for name in row}
        assert set(row) == {
            "id", "boundary", "title", "portable", "status", "since", "phase", "operator", "remedy",
        }  # fmt: skip


def test_profiles_says_what_is_active_and_what_is_missing(shell: Shell) -> None:
    result = shell.run("profiles")
    assert (result.code, result.err) == (0, "")
    assert result.is_quiet
    state = dict(zip(result.lines, result.lines[1:], strict=False))
    for id, profile in profiles().items():
        word = "activated" if id == "sandbox-v1" else "not activated"
        level = f"level {profile.level.minimum}, at most {profile.level.promises}"
        assert state[f"{id}: {profile.title}"] == f"  {word}; launcher {profile.launcher}; {level}"
    line = "  not activatable: no launcher `docker`, no evidence `quota`, no evidence `canary`, no evidence `launcher`"
    assert line in result.lines


def test_profiles_in_json_carry_digests_and_the_sites_answer(shell: Shell) -> None:
    pinned = f"logical-v1@{shipped.DIGESTS['logical-v1']}"
    shell.write_site(activated=["sandbox-v1", pinned])
    result = shell.run("profiles", "--format", "json")
    assert result.out == canonical(result.json) + "\n"
    assert result.json["prespawn"] == "profiles/v1"
    rows = {row["id"]: row for row in result.json["profiles"]}
    assert {id: row["digest"] for id, row in rows.items()} == {id: digest(one) for id, one in profiles().items()}
    assert {id for id, row in rows.items() if row["activated"]} == {"sandbox-v1", "logical-v1"}
    assert {id for id, row in rows.items() if not row["activatable"]} == {"workspace-v1"}
    assert {id for id, row in rows.items() if not row["lacking"]} == {
        id for id, one in profiles().items() if one.launcher in LAUNCHERS and not one.activation.requires
    }


# --- preview


def test_preview_shows_the_invocation_and_starts_nothing(shell: Shell, runtime: str) -> None:
    result = shell.run("run", shell.file("d.yaml"))
    assert (result.code, result.err) == (0, "")
    assert result.is_quiet
    assert result.lines[0] == "d.yaml: allowed at level logical (logical needed, logical attainable)"
    head, line = result.lines[-2:]
    assert head == "  would start, after an approval:"
    assert line.startswith(f"    {runtime} --unshare-user --unshare-pid --unshare-net ")
    assert line.endswith(" -- ls")


def test_preview_in_json_has_the_same_words(shell: Shell, runtime: str) -> None:
    shell.file("d.yaml", DECLARATION.replace("[ls]", '[ls, "a b", "\\e[2J", ""]'))
    result = shell.run("run", "--format", "json", "d.yaml")
    assert result.code == 0
    assert result.out == canonical(result.json) + "\n"
    document = result.json
    assert (document["prespawn"], document["file"]) == ("preview/v1", "d.yaml")
    assert document["invocation"][0] == runtime
    assert document["invocation"][-5:] == ["--", "ls", "a b", "\x1b[2J", ""]
    text = shell.run("run", "d.yaml")
    assert text.lines[-1].endswith(r" -- ls 'a b' '\x1b[2J' ''")
    assert is_plain(text.out)


@pytest.mark.usefixtures("runtime")
def test_preview_shows_no_value_of_a_variable(shell: Shell) -> None:
    shell.write_site(env={"TZ": "Mars/Phobos"})
    shell.file("d.yaml", DECLARATION.replace("env_keys: []", "env_keys: [TZ]"))
    for words in (("run", "d.yaml"), ("run", "--format", "json", "d.yaml"), ("check", "d.yaml")):
        result = shell.run(*words)
        assert result.code == 0
        assert "Mars" not in result.out + result.err


@pytest.mark.parametrize(
    ("change", "code", "ids"),
    [
        (("[ls]", "[bash]"), 1, ["execution-preview-interpreter"]),
        (("sandbox-v1", "sandbox-v9"), 1, ["profile-unknown"]),
        (("[ls]", "ls; id"), 1, ["execution-preview-shell-interpolation"]),
    ],
)
@pytest.mark.usefixtures("runtime")
def test_preview_of_what_is_blocked_is_the_verdict_alone(
    change: tuple[str, str], code: int, ids: list[str], shell: Shell
) -> None:
    shell.file("d.yaml", DECLARATION.replace(*change))
    result = shell.run("run", "d.yaml")
    checked = shell.run("check", "d.yaml")
    assert (result.code, result.out, result.err) == (checked.code, checked.out, checked.err) == (code, result.out, "")
    assert result.is_quiet
    document: Any = shell.run("run", "--format", "json", "d.yaml").json
    assert [blocker["id"] for blocker in document["verdict"]["blockers"]] == ids
    assert document["invocation"] == []


def test_preview_of_a_host_process_shows_its_whole_environment_and_no_value_of_the_site(shell: Shell) -> None:
    shell.write_site(
        activated=["logical-v1"], pairs=[{"adapter": "exec@1", "profile": "logical-v1"}], argv={"logical-v1": [["ls"]]}
    )
    shell.file("d.yaml", DECLARATION.replace("sandbox-v1", "logical-v1"))
    result = shell.run("run", "d.yaml")
    head, line = result.lines[-2:]
    assert (result.code, head) == (0, "  would start, after an approval:")
    assert line == "    env -i 'PATH=…' 'LANG=…' /usr/bin/ls"
    words = ["env", "-i", "PATH=…", "LANG=…", "/usr/bin/ls"]
    assert shell.run("run", "--format", "json", "d.yaml").json["invocation"] == words
    assert result.is_quiet


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("run",), "missing argument `FILE`; `prespawn run --help` says what is allowed here (usage)"),
        (
            ("run", "d.yaml", "d.yaml"),
            "got unexpected extra argument (d.yaml); `prespawn run --help` says what is allowed here (usage)",
        ),
        (("run", "e.yaml"), "e.yaml:1:1: nothing in it but blanks and comments; allowed here: one document "
                            "(input-empty)"),
    ],
)  # fmt: skip
def test_preview_of_a_wrong_line_or_file_is_one_sentence(words: Sequence[str], error: str, shell: Shell) -> None:
    shell.file("d.yaml")
    shell.file("e.yaml", "")
    result = shell.run(*words)
    assert (result.code, result.out) == (2, "")
    assert result.errors == [error if error.startswith("e.yaml") else f"prespawn: {error}"]
    assert result.is_quiet
