"""Which programs run code that their vector does not name: shells, wrappers, and options that make others do so.

The names stand in policy lists as ``program step step``, read by ``_carries``; here stands only how a command line is
taken apart: the other spellings of a name, abbreviated and joined options, subcommands, and ``sed``, whose scripts are
so common that they are read (``scripts``). Where two readings are possible, the one that blocks is taken.
"""

from __future__ import annotations

from .scripts import sed_executes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prespawn.policy.lists import NamedList

    Lists = Mapping[str, NamedList]

_VERSION = "0123456789."
_ABI = "dmtu"  # python3.11d, python3.13t


def runs_code(lists: Lists, program: str, arguments: Sequence[str]) -> str:
    """Return why this program with these arguments runs code that the vector does not name, or nothing."""
    bare = _bare(program, lists["program-affixes"])
    for name in (program, bare) if bare != program else (program,):
        if lists["shells"].holds(name):
            return "a shell"
        if lists["wrappers"].holds(name):
            return "a wrapper that starts another program"
        if reason := _by_arguments(lists, name, arguments):
            return reason
    return ""


def _by_arguments(lists: Lists, name: str, arguments: Sequence[str]) -> str:
    if lists["dashless-options"].holds(name) and arguments and arguments[0][:1] != "-":
        arguments = (f"-{arguments[0]}", *arguments[1:])
    exact, values = lists["exact-options"].after(name), lists["value-options"].after(name)
    if options := lists["code-options"].after(name):
        leading = tuple(_leading(arguments, lists["module-options"].after(name), values))
        for option in options:
            if _carries(leading, option, exact, values):
                return f"an interpreter with `{option}`"
    if options := lists["global-options"].after(name):
        leading = tuple(_leading(arguments, (), values))
        for option in options:
            if any(_has(argument, option, exact) for argument in leading):
                return f"a program that `{option}` makes start another"
    for option in lists["exec-options"].after(name):
        if _carries(arguments, option, exact, values):
            return f"a program that `{option}` makes start another"
    if lists["script-programs"].holds(name) and sed_executes(arguments):
        return "a program whose script starts another"
    return ""


def _bare(program: str, affixes: NamedList) -> str:
    """Return a name without target, architecture, variant and version: ``perl`` for ``perl5.36-x86_64-linux-gnu``."""
    parts = program.split("-")
    while len(parts) > 1 and affixes.holds(parts[0]):
        del parts[0]
    while len(parts) > 1 and (affixes.holds(parts[-1]) or not parts[-1].strip(_VERSION)):
        del parts[-1]
    word = "-".join(parts)
    plain = word.rstrip(_ABI)
    if plain[-1:].isdigit():
        word = plain
    return word.rstrip(f"{_VERSION}-")


def _leading(arguments: Sequence[str], ends: Sequence[str], values: Sequence[str]) -> Iterator[str]:
    """Yield what stands up to the script or subcommand, that word included.

    A word right after an option may be its value and ends nothing; of a program with ``values`` only those options
    take one. An option that hands the rest to a module counts only where it stands first: anywhere else it could
    itself be the value of another one (``python -W -m -c …`` runs the code after ``-c``).
    """
    if arguments and arguments[0] in ends:
        return
    may_be_value = False
    for argument in arguments:
        if argument == "--":
            return
        yield argument
        if argument.startswith("-"):
            may_be_value = argument in values if values else True
        elif may_be_value:
            may_be_value = False
        else:
            return


def _carries(arguments: Sequence[str], option: str, exact: Sequence[str], values: Sequence[str]) -> bool:
    """Say whether the steps of an option follow each other: a word is a subcommand, all else may stand anywhere."""
    step, _, rest = option.partition(" ")
    if step[0].isalnum():
        leading = tuple(_leading(arguments, (), values))
        places = [index for index, argument in enumerate(leading) if argument == step]
    else:
        places = [index for index, argument in enumerate(arguments) if _has(argument, step, exact)]
    if not rest:
        return bool(places)
    return any(_carries(arguments[index + 1 :], rest, exact, ()) for index in places)


def _has(argument: str, option: str, exact: Sequence[str]) -> bool:
    """Say whether an argument carries an option.

    Whole, with ``=value``, as a letter among joined short options, as the beginning of a long option that is no
    option of its own (``exact``), or, where a list says ``begins*holds``, by its beginning and what it holds after it.
    """
    if argument == option or argument.startswith(f"{option}="):
        return True
    if "*" in option:
        begins, _, holds = option.partition("*")
        return argument.startswith(begins) and holds in argument[len(begins) :]
    if option.startswith("--"):
        name = argument.partition("=")[0]
        return len(name) > 2 and option.startswith(name) and name not in exact
    return len(option) == 2 and len(argument) > 1 and argument[0] == "-" != argument[1] and option[1] in argument[1:]
