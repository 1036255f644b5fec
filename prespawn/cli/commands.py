"""The command line as click reads it: options, help, completion, and the texts of both.

Each command's work stands in a module of its own, imported when the command is chosen. Exit codes are returned, never
raised, so that ``main`` stays the one place that ends the program; what click refuses is said in one line like every
other error, and help is a result like any other: click's own way of printing answers 1 where nobody reads it.
"""

from __future__ import annotations

import os
import re
import sys

import click

from prespawn import exit_codes

from .output import remark, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

NAME = "prespawn"
COMPLETION = "_PRESPAWN_COMPLETE"  # set by the shell's completion, which gives no words


class Name(click.Path):
    """The name of a file or directory, completed like one: what stands there is looked at by who opens it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name as it was given, whatever there is."""
        return value


SITE = click.option(
    "--site", metavar="FILE", type=Name(), help="The site file. Else the user's, the system's, or the built-in one."
)
WORKSPACE = click.option(
    "--workspace", "workspaces", metavar="NAME=DIR", multiple=True, help="Set the root of a named workspace."
)
FORMAT = click.option(
    "--format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print the result."
)


def _help(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        say([context.get_help()])
        context.exit()


def _version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from importlib.metadata import version

        say([f"{NAME} {version(NAME)}"])
        context.exit()


_QUOTED = re.compile(r"(?<!\w)'([^']*)'(?!\w)")  # as click quotes; an apostrophe is none
_EAGER: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
HELP = click.Option(["-h", "--help"], **_EAGER, callback=_help, help="Show this message and exit.")
VERSION = click.Option(["--version"], **_EAGER, callback=_version, help="Show the version and exit.")


@click.group(
    context_settings={"help_option_names": [], "max_content_width": 100}, no_args_is_help=False, add_help_option=False
)
def cli() -> None:
    """Decide whether an agent worker may start, and hold it to what was decided."""


cli.params += [VERSION, HELP]


def with_click(line: Sequence[str]) -> int:
    """Run a command line through click and return its exit code."""
    before_start = exit_codes.EXEC_NOT_STARTED if line[:1] == ["exec"] else exit_codes.USAGE
    if COMPLETION in os.environ:
        return _completed(line)
    if not line:
        sys.stderr.write(f"{cli.make_context(NAME, [], resilient_parsing=True).get_help()}\n")
        return exit_codes.USAGE
    try:
        with cli.make_context(NAME, list(line)) as context:
            code: int = cli.invoke(context)
            return code
    except click.exceptions.Exit as ended:  # help was asked for
        return ended.exit_code
    except click.ClickException as wrong:
        remark(_said(wrong, line[0] if line[0] in cli.commands else ""))
        return before_start


def _completed(line: Sequence[str]) -> int:
    """Answer the shell's completion, which ends the program by itself."""
    try:
        cli.main(list(line), prog_name=NAME)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else exit_codes.USAGE
    except (KeyError, ValueError):  # not the shell's words; there is nobody to say it to
        return exit_codes.USAGE
    return exit_codes.USAGE


def _said(wrong: click.ClickException, command: str) -> str:
    """Return click's sentence as one of ours, with the command line that explains it."""
    sentence = " ".join(wrong.format_message().split()).rstrip(".?").replace(". Did you", "; did you")
    sentence = _QUOTED.sub(r"`\1`", sentence)
    context = wrong.ctx if isinstance(wrong, click.UsageError) else None
    path = f"{NAME} {command}".rstrip() if context is None else context.command_path
    return f"{sentence[:1].lower()}{sentence[1:]}; `{path} --help` says what is allowed here (usage)"


def command(name: str, **settings: Any) -> Callable[[Callable[..., int]], click.Command]:
    """Return a decorator that adds a command to the group."""

    def add(function: Callable[..., int]) -> click.Command:
        made = cli.command(name, add_help_option=False, **settings)(function)
        made.params.append(HELP)
        return made

    return add


def _ids(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    from prespawn.pages import ids

    return [id for id in ids() if id.startswith(begun)]


def _profiles(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    from prespawn.policy.shipped import PROFILES

    return [id for id in sorted(PROFILES) if id.startswith(begun)]


@command("check", short_help="Give the verdict on declarations.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=Name())
@SITE
@WORKSPACE
@FORMAT
@click.option("--facts", metavar="FILE", type=Name(), help="Judge on recorded facts instead of looking at this host.")
@click.option("--record-facts", metavar="FILE", type=Name(), help="Write down what this host showed.")
def check(**options: Any) -> int:
    """Give the verdict on each declaration FILE (`-` is standard input). Nothing is started."""
    from .check import run

    return run(**options)


@command("exec", context_settings={"allow_interspersed_args": False}, short_help="Run a command in the sandbox.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@SITE
@WORKSPACE
@click.option(
    "--profile", default="sandbox-v1", show_default=True, metavar="PROFILE", shell_complete=_profiles,
    help="The isolation profile to run under.",
)  # fmt: skip
@click.option("--env", multiple=True, metavar="KEY", help="Pass this variable of yours on, if the profile allows it.")
@click.option("--toolchain", "toolchains", multiple=True, metavar="DIR", help="Let the command see this directory.")
def exec_(words: tuple[str, ...], **options: Any) -> int:
    """Run a command in the sandbox, with the current directory as its workspace.

    The command's exit status is passed on; 125 if it was not started, 126 if it cannot be executed, 127 if there is no
    such program, 124 at the deadline, 128 and the number of the signal that ended it.
    """
    from .exec import run

    return run(words, **options)


@command("approve", short_help="Approve one run of a declaration.")
@click.argument("file", type=Name())
@click.option("--reason", required=True, metavar="TEXT", help="Why it may run.")
@click.option("--accept", "accepts", multiple=True, metavar="ID", help="Accept this blocker once, which is unknown.")
@click.option("--lifetime", metavar="TIME", help="How long the approval lasts, as `30m`. Else as the site says.")
@click.option("--facts", metavar="FILE", help="Judge on the facts that the driver recorded, and not on this user's.")
@SITE
@WORKSPACE
@FORMAT
def approve(**options: Any) -> int:
    """Approve one run of the declaration FILE, as it is now and with the verdict that it has now.

    The approval is written into the site's approvals directory in your name. It starts one run, and nothing else.
    """
    from .approve import run as approved

    return approved(**options)


@command("run", short_help="Preview a declaration, or run it.")
@click.argument("file", type=Name())
@click.option("--execute", is_flag=True, help="Run it, if it says `execute: true` and was approved.")
@click.option("--approval", metavar="ID", help="Which approval, by id or file. Else the latest that fits.")
@SITE
@WORKSPACE
@FORMAT
def run(execute: bool, approval: str | None, **options: Any) -> int:
    """Preview the declaration FILE: its verdict, and the exact invocation. With `--execute`, run it.

    A run ends with 0 if it ended well: its command exited with 0 and the file contract was kept; else with 6.
    """
    if execute:
        from .run import run as executed

        return executed(approval=approval, **options)
    if approval is not None:
        raise click.UsageError("`--approval` is for a run, and this is a preview; add `--execute`")
    from .preview import run as preview

    return preview(**options)


@command("follow", short_help="Show a run while it goes on.")
@click.argument("run_id", metavar="RUN")
@SITE
@FORMAT
def follow(**options: Any) -> int:
    """Print state and bytes of the run RUN, now and at every change, until it has ended."""
    from .follow import run as followed

    return followed(**options)


@command("conform", context_settings={"allow_interspersed_args": False}, short_help="Try an adapter on every vector.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--all", "everything", is_flag=True, help="The cases of every blocker, not of the portable ones alone.")
@click.option("--export", is_flag=True, help="Print the vectors, one JSON document a line, and try nothing.")
@FORMAT
def conform(words: tuple[str, ...], export: bool, **options: Any) -> int:
    """Feed each vector to the adapter COMMAND, and say where it does not report the blocker, or starts something."""
    if bool(words) is export:
        raise click.UsageError("what is wanted is an adapter's command after `--`, or `--export`")
    from .conform import run as conformed

    return conformed(words, export=export, **options)


@command("recover", short_help="Settle runs whose parent was killed.")
@SITE
@FORMAT
def recover(**options: Any) -> int:
    """Give every run whose parent was killed its one true end, and take away what is left of it."""
    from .recover import run as recovered

    return recovered(**options)


@cli.group("receipts", short_help="List, show and verify receipts.", no_args_is_help=False)
def receipts() -> None:
    """What the parent wrote down of its runs, and whether it still stands there as it was written."""


@receipts.command("list", short_help="List every run.")
@SITE
@FORMAT
def receipts_list(**options: Any) -> int:
    """List every run of the site's registry: its state, and how it ended."""
    from .receipts import listed

    return listed(**options)


@receipts.command("show", short_help="Show the receipts of a run.")
@click.argument("run_id", metavar="RUN")
@SITE
def receipts_show(**options: Any) -> int:
    """Print the receipts of the run RUN, proved, in their order: one line of canonical JSON each."""
    from .receipts import shown

    return shown(**options)


@receipts.command("verify", short_help="Prove the receipts of runs.")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@SITE
@FORMAT
def receipts_verify(**options: Any) -> int:
    """Prove that the receipts of each RUN (else of all) are those that its parent wrote, whole and in their order."""
    from .receipts import verified

    return verified(**options)


@command("explain", short_help="Say what a blocker means.")
@click.argument("id", shell_complete=_ids)
@FORMAT
def explain(**options: Any) -> int:
    """Say what the blocker ID means, why it is there, and what to change."""
    from .explain import run as explained

    return explained(**options)


@command("blockers", short_help="List every blocker.")
@FORMAT
def blockers(**options: Any) -> int:
    """List every blocker."""
    from .listing import blockers as listed

    return listed(**options)


@command("profiles", short_help="List every profile.")
@SITE
@FORMAT
def profiles(**options: Any) -> int:
    """List every profile, whether the site has activated it, and what this installation lacks for it."""
    from .listing import profiles as listed

    return listed(**options)


@command("activate", short_help="Add a profile to the site.")
@click.argument("profile", shell_complete=_profiles)
@SITE
@click.option(
    "--adapter", default="exec@1", show_default=True, metavar="ADAPTER", help="The adapter to allow under it."
)
def activate(**options: Any) -> int:
    """Show what PROFILE permits, and add it to the site file."""
    from .activate import run as activated

    return activated(**options)


@command("lint", short_help="Judge files of the project's own formats.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=Name())
@FORMAT
def lint(**options: Any) -> int:
    """Judge every file of the project's own formats at or below each PATH, with line and column."""
    from .lint import run as linted

    return linted(**options)


@command("init", short_help="Make a directory a workspace.")
@click.argument("directory", type=Name(), metavar="DIR")
@click.option(
    "--site", metavar="FILE", type=Name(), help="Where to write the site file. Else the user's configuration."
)
def init(**options: Any) -> int:
    """Make DIR a workspace: write a commented site file, and an example declaration in DIR."""
    from .init import run as initialised

    return initialised(**options)
