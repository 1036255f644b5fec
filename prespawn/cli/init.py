"""``prespawn init DIR``: a commented site file, an example declaration, and the next command to type."""

from __future__ import annotations

import os
import shlex

from prespawn import exit_codes
from prespawn.blockers import shipped as blockers
from prespawn.blockers.rule import shipped_rules
from prespawn.checker.lint import REMEDIES, Lint
from prespawn.policy.errors import InputError
from prespawn.policy.spelling import is_printable_name
from prespawn.words import blocker_text

from ..site_file import NAME, config_home, find, refuse_inside
from ..trusted import expanded, read_site, shipped_policy
from ..trusted_path import named, reason
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.policy.site import Site

SITE = """\
# This installation's trusted configuration. No declaration can change it, and no worker may see it.
prespawn: site/v1

# The parent's own records: registry, receipts, reports. Outside every workspace.
state_dir: ~/.local/state/prespawn

# Directories that a run may be given. `reports` lies below `state_dir`; `protected_paths` are paths of the workspace
# that no run may change or be pointed at; `toolchains` names entries of the table below.
workspaces:
  main: {{root: {root}, reports: reports, protected_paths: [], toolchains: []}}

# Programs outside the system tree, read-only and at the same path: name the version's own directory.
toolchains: {{}}

# Profiles that may be used here (`prespawn activate PROFILE` adds one), and with which adapter.
activated: [sandbox-v1]
pairs:
  - {{adapter: exec@1, profile: sandbox-v1}}

# Which profile a driver's kind of call gets.
callers: {{}}

# Who may approve a run. `blocker-free`: the driver itself, where nothing stands in the way and nothing is unknown.
approvals: {{directory: approvals, require_separate_approver: false, driver_may_approve: blocker-free}}

# Whole argument vectors that have been reviewed, by profile: needed for shells, and for profiles on the host.
argv: {{}}

# Values of the environment keys that declarations may ask for.
env: {{TZ: UTC}}

# Container images by name, and model providers.
images: {{}}
providers: {{}}
"""

DECLARATION = """\
# What one run asks for: `prespawn check declaration.yaml` judges it, `prespawn run declaration.yaml` previews it.
prespawn: declaration/v1
profile: sandbox-v1
adapter: exec@1
cwd: .
declared_files: []
env_keys: [LANG]
execution: {argv: [ls, -la]}
file_contract: {mode: read-only}
"""


def run(directory: str, site: str | None) -> int:
    """Write both files, or none: ``InputError`` if one is there already, cannot be written, or could not be used."""
    if not directory or not os.path.isdir(directory):
        raise InputError("usage", f"{named(directory)} is no directory; make it first")
    root = _real(directory)
    place = _absolute(site) if site is not None else _site_place()
    declaration = os.path.join(root, "declaration.yaml")
    text = SITE.format(root=_quoted(root))
    _judge(read_site(text.encode("utf-8"), place), root, place)
    _refuse_present(place, declaration)
    made = _write(place, text, 0o600, None)
    try:
        _usable(place, root)
        _write(declaration, DECLARATION, 0o644, os.stat(root))
    except BaseException:
        for path in reversed(made):
            (os.rmdir if os.path.isdir(path) else os.unlink)(path)
        raise
    option = f" --site {shlex.quote(place)}" if site is not None else ""
    next_one = f"next: cd {shlex.quote(root)} && prespawn check{option} declaration.yaml"
    say([f"wrote {named(place)}", f"wrote {named(declaration)}", next_one])
    return exit_codes.ALLOWED


def _real(directory: str) -> str:
    try:
        return os.path.realpath(directory)
    except OSError:
        raise _gone() from None


def _absolute(site: str) -> str:
    if not site or "\0" in site:
        raise InputError("usage", f"{named(site)} is no name of a file; allowed here: where to write the site file")
    try:
        return os.path.abspath(site)
    except OSError:
        raise _gone() from None


def _gone() -> InputError:
    return InputError("usage", "the current directory is not there any more; change into one that is")


def _site_place() -> str:
    place = config_home(os.environ)
    if place is None:
        raise InputError("usage", "this user has no configuration directory; name a file with `--site FILE`")
    return os.path.join(place, NAME)


def _quoted(root: str) -> str:
    """Return a path as a string of YAML; one with characters that no report can show is refused."""
    if not is_printable_name(root):
        raise InputError("usage", f"{named(root)} has characters that no name may have here; rename the directory")
    escaped = root.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _judge(site: Site, root: str, place: str) -> None:
    """Refuse what the gate would refuse at every run: a home, a directory that would hold the site's own files."""
    policy = shipped_policy()
    for finding in Lint(policy, shipped_rules(policy.lists)).site(site):
        blocker = finding.blocker
        remedy = REMEDIES.get(blocker.id) or blockers.RULES[blocker.id]["remedy"]
        raise InputError("usage", blocker_text(blocker, remedy))
    held = sorted(name for name in os.listdir(root) if policy.lists["credential-entries"].holds(name))
    if held:
        found = f"{named(root)} holds {', '.join(map(named, held))}, which no worker may see"
        raise InputError("usage", f"{found}; make a directory for the work alone")
    for what, path in (("the site file", place), ("the state directory", expanded(site.state_dir))):
        if _is_below(os.path.realpath(path), root):
            raise InputError(
                "usage", f"{named(root)} would hold {what}, {named(path)}; make a directory for the work alone"
            )


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath((path, root)) == root


def _refuse_present(*paths: str) -> None:
    for path in paths:
        if os.path.lexists(path):
            message = f"{named(path)} is there already and is not written over; move it away, or name another file"
            raise InputError("usage", f"{message} with `--site FILE`" if path == paths[0] else message)


def _usable(place: str, root: str) -> None:
    """Read the site file back as every later command will: nobody else may be able to write it."""
    found = find(place, environ={})
    if found is not None:
        refuse_inside(found.path, found.above, (root,))


def _write(path: str, text: str, mode: int, owner: os.stat_result | None) -> list[str]:
    """Write a new file and return what had to be made for it, outermost first; ``owner`` is whom root gives it to."""
    made: list[str] = []
    try:
        for directory in _missing(os.path.dirname(path)):
            os.mkdir(directory, 0o700)  # whatever the umask: what its group could write would not be trusted
            made.append(directory)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        made.append(path)
        with open(file, "w", encoding="utf-8") as out:
            os.fchmod(file, mode)
            if owner is not None and os.geteuid() == 0:
                os.fchown(file, owner.st_uid, owner.st_gid)
            out.write(text)
    except OSError as failed:
        for there in reversed(made):
            (os.rmdir if os.path.isdir(there) else os.unlink)(there)
        raise InputError("usage", f"{named(path)} cannot be written: {reason(failed)}") from None
    return made


def _missing(directory: str) -> list[str]:
    """Return the directories on a way that are not there, outermost first."""
    missing: list[str] = []
    while not os.path.lexists(directory):
        missing.insert(0, directory)
        directory = os.path.dirname(directory)
    return missing
