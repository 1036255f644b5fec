"""``prespawn init DIR``: a commented site file, an example declaration, and the next command to type."""

from __future__ import annotations

import os
import sys

from prespawn import exit_codes
from prespawn.policy.canonical import canonical
from prespawn.policy.errors import InputError

from ..site_file import NAME, config_home

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
    """Write both files; ``InputError`` (``usage``) if one is there already or cannot be written."""
    root = os.path.realpath(directory)
    place = site if site is not None else _site_place()
    if not os.path.isdir(root):
        raise InputError("usage", f"`{directory}` is no directory; make it first")
    _write(place, SITE.format(root=canonical(root)), 0o600)
    _write(os.path.join(root, "declaration.yaml"), DECLARATION, 0o644)
    option = f" --site {place}" if site is not None else ""
    sys.stdout.write(f"wrote {place}\nwrote {os.path.join(root, 'declaration.yaml')}\n")
    sys.stdout.write(f"next: cd {root} && prespawn check{option} declaration.yaml\n")
    return exit_codes.ALLOWED


def _site_place() -> str:
    place = config_home(os.environ)
    if place is None:
        raise InputError("usage", "this user has no configuration directory; name a file with `--site FILE`")
    return os.path.join(place, NAME)


def _write(path: str, text: str, mode: int) -> None:
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise InputError("usage", f"`{path}` is there already; it is not written over, move it away first") from None
    except OSError as failed:
        raise InputError("usage", f"`{path}` cannot be written: {failed.strerror}") from None
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
