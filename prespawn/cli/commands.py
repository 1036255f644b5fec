"""The command line as click reads it: options, help, completion, and the texts of both.

Each command's work stands in a module of its own, imported when the command is chosen. Exit codes are returned, never
raised, so that ``main`` stays the one place that ends the program.
"""

from __future__ import annotations

import click

from prespawn import exit_codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

SITE = click.option("--site", metavar="FILE", help="The site file; else the user's, the system's, or the built-in one.")
WORKSPACE = click.option(
    "--workspace", "workspaces", metavar="NAME=DIR", multiple=True, help="Set the root of a named workspace."
)
FORMAT = click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="prespawn")
def cli() -> None:
    """Decide whether an agent worker may start, and hold it to what was decided."""


def with_click(line: Sequence[str]) -> int:
    """Run a command line through click and return its exit code."""
    try:
        code = cli.main(list(line), prog_name="prespawn", standalone_mode=False)
    except click.ClickException as wrong:
        wrong.show()
        return exit_codes.EXEC_NOT_STARTED if line[:1] == ["exec"] else exit_codes.USAGE
    except click.Abort:
        return exit_codes.EXEC_SIGNAL + 2
    return code if isinstance(code, int) else exit_codes.ALLOWED


def command(name: str, **settings: Any) -> Callable[[Callable[..., int]], click.Command]:
    """Return a decorator that adds a command to the group."""
    return cli.command(name, **settings)


@command("check")
@click.argument("files", nargs=-1, required=True)
@SITE
@WORKSPACE
@FORMAT
@click.option("--facts", metavar="FILE", help="Judge on recorded facts instead of looking at this host.")
@click.option("--record-facts", metavar="FILE", help="Write down what this host showed.")
def check(**options: Any) -> int:
    """Give the verdict on each declaration FILE (`-` is standard input). Nothing is started."""
    from .check import run

    return run(**options)


@command("exec", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
@SITE
@WORKSPACE
@click.option("--profile", default="sandbox-v1", show_default=True, metavar="PROFILE")
@click.option("--env", multiple=True, metavar="KEY", help="Pass this variable of yours on, if the profile allows it.")
def exec_(words: tuple[str, ...], **options: Any) -> int:
    """Run a command in the sandbox, the current directory as its workspace: prespawn exec -- CMD..."""
    from .exec import run

    return run(words, **options)


@command("run")
@click.argument("file")
@SITE
@WORKSPACE
@FORMAT
def run(**options: Any) -> int:
    """Preview a declaration: the verdict and the exact invocation. Nothing is started."""
    from .preview import run as preview

    return preview(**options)


@command("explain")
@click.argument("id")
@FORMAT
def explain(**options: Any) -> int:
    """Say what a blocker means, why it is there, and what to change."""
    from .explain import run as explained

    return explained(**options)


@command("blockers")
@FORMAT
def blockers(**options: Any) -> int:
    """List every blocker."""
    from .listing import blockers as listed

    return listed(**options)


@command("profiles")
@SITE
@FORMAT
def profiles(**options: Any) -> int:
    """List every profile, and whether the site has activated it."""
    from .listing import profiles as listed

    return listed(**options)


@command("activate")
@click.argument("profile")
@SITE
@click.option("--adapter", default="exec@1", show_default=True, help="The adapter to allow under it.")
def activate(**options: Any) -> int:
    """Show what a profile permits and add it to the site file."""
    from .activate import run as activated

    return activated(**options)


@command("lint")
@click.argument("paths", nargs=-1, required=True)
@FORMAT
def lint(**options: Any) -> int:
    """Judge every file of the project's own formats below each PATH, with line and column."""
    from .lint import run as linted

    return linted(**options)


@command("init")
@click.argument("directory")
@click.option("--site", metavar="FILE", help="Where to write the site file; else the user's configuration.")
def init(**options: Any) -> int:
    """Make DIRECTORY a workspace: a commented site file, and an example declaration."""
    from .init import run as initialised

    return initialised(**options)
