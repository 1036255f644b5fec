"""``init`` and ``activate``: what they write is what every later command takes, and a refusal leaves nothing behind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from support.cli import ROOT, WORKER, Shell, is_plain, runtime, shell

from prespawn.policy import shipped
from prespawn.trusted import read_site

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["runtime", "shell"]  # the fixtures

pytestmark = pytest.mark.usefixtures("runtime")
PRESENT = "is there already and is not written over; move it away, or name another file"


def project(shell: Shell, name: str = "project") -> Path:
    path = shell.top / name
    path.mkdir()
    os.chown(path, WORKER, WORKER if ROOT else -1)
    return path


# --- init


def test_init_makes_a_workspace_that_every_command_takes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    root, site = project(shell), shell.top / "config" / "new" / "site.yaml"
    result = shell.run("init", str(root), "--site", str(site))
    assert (result.code, result.err, result.started) == (0, "", [])
    assert result.lines == [
        f"wrote `{site}`",
        f"wrote `{root}/declaration.yaml`",
        f"next: cd {root} && prespawn check --site {site} declaration.yaml",
    ]
    made = {"config", "config/new", "config/new/site.yaml", "project", "project/declaration.yaml"}
    assert result.changed == made
    assert (site.stat().st_mode & 0o777, site.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert (root / "declaration.yaml").stat().st_uid == WORKER
    monkeypatch.chdir(root)
    checked = shell.run("check", "--site", str(site), "declaration.yaml")
    assert (checked.code, checked.err) == (0, "")
    assert shell.run("lint", str(site), "declaration.yaml").code == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "missing argument `DIR`; `prespawn init --help` says what is allowed here (usage)"),
        (("",), "`` is no directory; make it first (usage)"),
        (("gone",), "`gone` is no directory; make it first (usage)"),
        (("file",), "`file` is no directory; make it first (usage)"),
        (("fifo",), "`fifo` is no directory; make it first (usage)"),
        (("a\0b",), r"`a\x00b` is no directory; make it first (usage)"),
        (("a\x1b[2J\n",), r"`a\x1b[2J\x0a` is no directory; make it first (usage)"),
        (("\udcff",), r"`\udcff` is no directory; make it first (usage)"),
        (
            ("{top}/project", "--site", ""),
            "`` is no name of a file; allowed here: where to write the site file (usage)",
        ),
        (
            ("{top}/project", "--site", "a\0"),
            r"`a\x00` is no name of a file; allowed here: where to write the site file (usage)",
        ),
        (
            ("{top}/project", "--site", "{top}/project/site.yaml"),
            "`{top}/project` would hold the site file, `{top}/project/site.yaml`; make a directory for the work alone "
            "(usage)",
        ),
        (("{top}/project", "--site", "/dev/null"), f"`/dev/null` {PRESENT} with `--site FILE` (usage)"),
        (("{top}/project", "--site", "{top}/ws/file"), f"`{{top}}/ws/file` {PRESENT} with `--site FILE` (usage)"),
        (
            ("{top}/project", "--site", "/proc/none/site.yaml"),
            "`/proc/none/site.yaml` cannot be written: no such file or directory (usage)",
        ),
        (
            ("{top}/esc\x1b", "--site", "{top}/config/site.yaml"),
            r"`{top}/esc\x1b` has characters that no name may have here; rename the directory (usage)",
        ),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_init_that_is_refused_leaves_nothing(words: Sequence[str], error: str, shell: Shell) -> None:
    project(shell)
    project(shell, "esc\x1b")
    shell.file("file", "")
    os.mkfifo(shell.workspace / "fifo")
    result = shell.run("init", *(word.replace("{top}", str(shell.top)) for word in words))
    assert (result.code, result.out, len(result.errors)) == (2, "", 1)
    assert result.errors == [f"prespawn: {error.replace('{top}', str(shell.top))}"]
    assert result.is_quiet


@pytest.mark.parametrize("root", ["/", "/etc", "/proc"])
def test_init_refuses_what_no_worker_may_be_given(root: str, shell: Shell) -> None:
    result = shell.run("init", root, "--site", str(shell.top / "config" / "site.yaml"))
    assert (result.code, result.out, len(result.errors)) == (2, "", 1)
    assert result.errors[0].startswith("prespawn: workspace-root-forbidden: `workspaces.main.root` is `/")
    assert result.is_quiet


def test_init_twice_writes_nothing_over(shell: Shell) -> None:
    root, site = project(shell), shell.top / "config" / "site.yaml"
    shell.run("init", str(root), "--site", str(site))
    result = shell.run("init", str(root), "--site", str(site))
    assert (result.code, result.errors) == (2, [f"prespawn: `{site}` {PRESENT} with `--site FILE` (usage)"])
    assert result.is_quiet
    other = shell.run("init", str(root), "--site", str(site.parent / "other.yaml"))
    assert (other.code, other.errors) == (2, [f"prespawn: `{root}/declaration.yaml` {PRESENT} (usage)"])
    assert other.is_quiet


def test_init_takes_back_what_it_wrote_where_nobody_could_use_it(shell: Shell) -> None:
    root, shared = project(shell), shell.top / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    result = shell.run("init", str(root), "--site", str(shared / "deep" / "site.yaml"))
    assert (result.code, result.out, len(result.errors)) == (2, "", 1)
    assert result.errors[0].endswith("(policy-untrusted-source)")
    assert not (shared / "deep").exists()
    assert not (root / "declaration.yaml").exists()


# --- activate


def test_activate_adds_a_profile_and_its_pair_and_changes_no_other_byte(shell: Shell) -> None:
    text = (
        "# mine\nprespawn: site/v1\n"
        f"state_dir: {shell.state}   # records\n"
        f"workspaces: {{main: {{root: {shell.workspace}, reports: reports}}}}\n"
        "activated:\n  - sandbox-v1   # the everyday one\n"
        "pairs: [{adapter: exec@1, profile: sandbox-v1}]\n"
    )
    shell.site.write_text(text)
    shell.site.chmod(0o640)
    result = shell.run("activate", "logical-v1")
    assert (result.code, result.started) == (0, [])
    assert result.changed == {"config/prespawn", "config/prespawn/site.yaml"}
    assert result.lines[0].startswith("logical-v1: ")
    assert result.lines[1] == f"  digest {shipped.DIGESTS['logical-v1']}"
    assert result.lines[-1] == f"activated logical-v1 with exec@1 in `{shell.site}`"
    assert result.errors == []
    assert shell.site.read_text() == text.replace(
        "# the everyday one\n", "# the everyday one\n  - logical-v1\n"
    ).replace("profile: sandbox-v1}]", "profile: sandbox-v1}, {adapter: exec@1, profile: logical-v1}]")
    assert shell.site.stat().st_mode & 0o777 == 0o640
    again = shell.run("activate", "logical-v1")
    assert (again.code, again.lines[-1]) == (0, f"logical-v1 is activated with exec@1 in `{shell.site}` already")
    assert again.is_quiet


def test_activate_of_a_profile_without_evidence_is_a_blocker(shell: Shell) -> None:
    shell.write_site()
    result = shell.run("activate", "workspace-v1")
    assert result.code == 1
    assert result.errors == [
        "prespawn: profile-not-activatable: workspace-v1 needs evidence `quota`, evidence `canary`, evidence "
        "`launcher`; choose a profile whose evidence this host has, or produce the evidence"
    ]
    assert result.is_quiet


def test_activate_never_adds_beside_a_pinned_form(shell: Shell) -> None:
    shell.write_site(activated=["sandbox-v1", f"logical-v1@sha256:{'0' * 64}"])
    result = shell.run("activate", "logical-v1")
    assert (result.code, len(result.errors)) == (2, 1)
    assert result.errors[0].startswith(
        f"prespawn: `{shell.site}` pins `logical-v1@sha256:{'0' * 64}`, and the profile is "
    )
    assert result.is_quiet


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("sandbox-v2",), "there is no profile `sandbox-v2`; did you mean `sandbox-v1` (usage)"),
        (("nope",), "there is no profile `nope`; `prespawn profiles` lists them (usage)"),
        (("",), "there is no profile ``; `prespawn profiles` lists them (usage)"),
        (("x\x1b\n",), r"there is no profile `x\x1b\x0a`; `prespawn profiles` lists them (usage)"),
        (("logical-v1", "--adapter", "nope"), "there is no adapter `nope`; allowed here: `exec@1` (usage)"),
    ],
    ids=ascii,
)
def test_activate_of_what_is_not_there_is_one_sentence(words: Sequence[str], error: str, shell: Shell) -> None:
    shell.write_site()
    result = shell.run("activate", *words)
    assert (result.code, result.out, result.errors) == (2, "", [f"prespawn: {error}"])
    assert result.is_quiet


def test_activate_without_a_site_file_shows_the_profile_and_writes_none(shell: Shell) -> None:
    result = shell.run("activate", "sandbox-v1")
    said = "prespawn: there is no site file to add it to; `prespawn init DIR` writes one (usage)"
    assert (result.code, result.errors) == (2, [said])
    assert result.lines[0].startswith("sandbox-v1: ")
    assert result.is_quiet


def test_activate_edits_a_list_wherever_it_stands(shell: Shell) -> None:
    shell.write_site(pairs=[])
    shell.site.write_text(shell.site.read_text().replace('"pairs": []', '"pairs":\n  [ # none yet ]\n  ]'))
    result = shell.run("activate", "logical-v1")
    assert (result.code, is_plain(result.out + result.err)) == (0, True)
    site = read_site(shell.site.read_bytes(), str(shell.site))
    assert [(pair.adapter, pair.profile) for pair in site.pairs] == [("exec@1", "logical-v1")]
    assert site.activated == ("sandbox-v1", "logical-v1")
    assert "# none yet ]" in shell.site.read_text()
