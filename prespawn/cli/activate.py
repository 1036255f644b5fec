"""``prespawn activate PROFILE``: show what the profile permits, then add it to the site file.

The file's text is changed where it must be and nowhere else, comments and all; the result is read back through the
strict reader before it replaces the old file, so an edit that did not mean what it should is never written.
"""

from __future__ import annotations

import os
import sys

from prespawn import exit_codes
from prespawn.policy.errors import InputError
from prespawn.policy.site import Pair

from ..gate import Gate
from ..site_file import find
from ..trusted import read_site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.policy.profile import Profile
    from prespawn.policy.site import Site


def run(profile: str, site: str | None, adapter: str) -> int:
    """Activate a profile with an adapter; ``InputError`` (``usage``) if there is no site file or no such profile."""
    gate = Gate.load(site)
    found = find(site, environ=os.environ)
    if profile not in gate.policy.profiles:
        raise InputError("usage", f"there is no profile `{profile}`; `prespawn profiles` lists them")
    sys.stdout.write("".join(f"{line}\n" for line in review(gate.policy.profiles[profile])))
    if found is None:
        raise InputError("usage", "there is no site file to add it to; `prespawn init DIR` writes one")
    text = found.data.decode("utf-8")
    wanted = _with(gate.policy.site, profile, adapter)
    if wanted == gate.policy.site:
        sys.stdout.write(f"{profile} is activated in {found.path} already\n")
        return exit_codes.ALLOWED
    edited = _edited(text, wanted)
    if read_site(edited.encode("utf-8"), found.path) != wanted:
        raise InputError("usage", f"`{found.path}` is written in a way that cannot be edited; add `{profile}` by hand")
    _replace(found.path, edited)
    sys.stdout.write(f"activated {profile} with {adapter} in {found.path}\n")
    return exit_codes.ALLOWED


def review(profile: Profile) -> Iterator[str]:
    """Yield what the profile lets a worker touch and what holds it, for the person who activates it."""
    network, process, limits = profile.network.mode, profile.process, profile.limits
    yield f"{profile.id}: {profile.title}"
    yield f"  launcher {profile.launcher}; level {profile.level.minimum} at least, {profile.level.promises} at most"
    workspace = profile.workspace
    yield f"  workspace: {workspace.access}, .git {workspace.git}" if workspace else "  workspace: none"
    yield f"  system tree: {profile.root.system}; network: {network}"
    yield f"  identity: {process.uid}; capabilities: {', '.join(process.capabilities) or 'none'}; seccomp: {process.seccomp}"
    yield f"  argument vectors: {profile.argv}; environment keys: {', '.join(profile.environment.allowed_keys) or 'none'}"
    yield "  limits: " + ", ".join(f"{name} {value}" for name, value in limits if value is not None)
    yield from (f"  stays possible: {allowance.act}, {allowance.reason}" for allowance in profile.still_allowed)


def _with(site: Site, profile: str, adapter: str) -> Site:
    pair = Pair(adapter=adapter, profile=profile)
    return site.replace(
        activated=site.activated if profile in site.activated else (*site.activated, profile),
        pairs=site.pairs if pair in site.pairs else (*site.pairs, pair),
    )


def _edited(text: str, wanted: Site) -> str:
    """Return the file with its two lists written anew and every other line as it was."""
    pairs = [f"  - {{adapter: {pair.adapter}, profile: {pair.profile}}}" for pair in wanted.pairs]
    lines = _replaced(text.splitlines(), "activated", [f"activated: [{', '.join(wanted.activated)}]"])
    return "\n".join(_replaced(lines, "pairs", ["pairs:", *pairs])) + "\n"


def _replaced(lines: list[str], key: str, new: list[str]) -> list[str]:
    start = next((number for number, line in enumerate(lines) if line.startswith(f"{key}:")), len(lines))
    last = start + 1
    for number in range(last, len(lines)):
        if lines[number].startswith((" ", "- ")):
            last = number + 1
        elif lines[number].strip() and not lines[number].startswith("#"):
            break
    return [*lines[:start], *new, *lines[last:]]


def _replace(path: str, text: str) -> None:
    """Put the new text in the file's place in one step, with its mode and owner."""
    old, fresh = os.stat(path), f"{path}.new"
    try:
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(file, "w", encoding="utf-8") as out:
            os.fchmod(file, old.st_mode & 0o777)
            os.fchown(file, old.st_uid, old.st_gid)
            out.write(text)
            out.flush()
            os.fsync(file)
        os.rename(fresh, path)
    except OSError as failed:
        raise InputError("usage", f"`{path}` cannot be written: {failed.strerror}") from None
