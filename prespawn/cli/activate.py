"""``prespawn activate PROFILE``: show what the profile permits, then add it to the site file.

The file's text is changed where it must be and nowhere else, comments and all (``site_edit``).
"""

from __future__ import annotations

import os

from prespawn import exit_codes
from prespawn.policy.canonical import digest
from prespawn.policy.errors import InputError
from prespawn.policy.nearest import nearest
from prespawn.policy.site import Pair

from ..enforcers import LAUNCHERS
from ..gate import Gate
from ..site_edit import replace, with_entry
from ..site_file import find
from ..trusted import SITE_BYTES, read_site
from ..trusted_path import named
from .listing import evidence_lacking, is_activated
from .output import remark, say
from .review import review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from prespawn.policy.bundle import Policy
    from prespawn.policy.profile import Profile
    from prespawn.policy.site import Site

NOT_ACTIVATABLE = "profile-not-activatable"


def run(profile: str, site: str | None, adapter: str) -> int:
    """Activate a profile with an adapter; ``InputError`` (``usage``) if there is no site file or no such pair."""
    gate = Gate.load(site)
    chosen = _chosen(gate.policy, profile, adapter)
    say(review(chosen))
    if missing := evidence_lacking(chosen):
        remark(f"{NOT_ACTIVATABLE}: {profile} needs {', '.join(missing)}; {gate.remedies[NOT_ACTIVATABLE]}")
        return exit_codes.BLOCKED
    found = find(site, environ=os.environ, limit=SITE_BYTES)
    if found is None:
        raise InputError("usage", "there is no site file to add it to; `prespawn init DIR` writes one")
    text = found.data.decode("utf-8")
    edited = _edited(text, chosen, adapter, found.path)
    if edited == text:
        say([f"{profile} is activated with {adapter} in {named(found.path)} already"])
        return exit_codes.ALLOWED
    replace(found.path, edited)
    say([f"activated {profile} with {adapter} in {named(found.path)}"])
    if chosen.launcher not in LAUNCHERS:
        remark(f"this installation has no launcher `{chosen.launcher}`: declarations can be checked, and not run")
    return exit_codes.ALLOWED


def _chosen(policy: Policy, profile: str, adapter: str) -> Profile:
    if profile not in policy.profiles:
        raise _unknown("profile", profile, policy.profiles, "`prespawn profiles` lists them")
    if adapter not in policy.adapters:
        raise _unknown("adapter", adapter, policy.adapters, f"allowed here: {_listed(policy.adapters)}")
    if profile not in policy.adapters[adapter].profiles:
        allowed = _listed(policy.adapters[adapter].profiles)
        raise InputError("usage", f"adapter `{adapter}` does not work with `{profile}`; allowed here: {allowed}")
    return policy.profiles[profile]


def _unknown(what: str, name: str, known: Iterable[str], otherwise: str) -> InputError:
    near = nearest(name, known)
    return InputError("usage", f"there is no {what} `{name}`; {f'did you mean `{near}`' if near else otherwise}")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _edited(text: str, profile: Profile, adapter: str, path: str) -> str:
    """Return the file's text with what it lacks, the same text if it lacks nothing."""
    site = read_site(text.encode("utf-8"), path)
    if not is_activated(profile, site.activated):
        _refuse_pinned(site, profile, path)
        site = site.replace(activated=(*site.activated, profile.id))
        text = with_entry(text, "activated", profile.id, site, path)
    pair = Pair(adapter=adapter, profile=profile.id)
    if pair not in site.pairs:
        site = site.replace(pairs=(*site.pairs, pair))
        text = with_entry(text, "pairs", f"{{adapter: {adapter}, profile: {profile.id}}}", site, path)
    return text


def _refuse_pinned(site: Site, profile: Profile, path: str) -> None:
    """An owner who pinned a form of a profile meant that form: another one is not added beside it by a command."""
    for entry in site.activated:
        if entry.partition("@")[0] == profile.id:
            raise InputError(
                "usage",
                f"{named(path)} pins `{entry}`, and the profile is `{profile.id}@{digest(profile)}`; change it by hand",
            )
