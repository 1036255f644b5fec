"""``prespawn blockers`` and ``prespawn profiles``: what there is, one line each."""

from __future__ import annotations

from prespawn import exit_codes
from prespawn.pages import ids, page
from prespawn.policy.canonical import canonical, digest
from prespawn.policy.spelling import shown

from ..enforcers import LAUNCHERS
from ..gate import Gate
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from prespawn.policy.profile import Profile

SUMMARY = ("id", "boundary", "title", "portable", "status", "since", "phase", "operator", "remedy")


def blockers(format: str) -> int:
    """Print every blocker, the portable ones marked."""
    pages = [page(id) for id in ids()]
    if format == "json":
        rows = [{name: content[name] for name in SUMMARY} for content in pages]
        say([canonical({"prespawn": "blockers/v1", "blockers": rows})])
        return exit_codes.ALLOWED
    width = max(len(content["id"]) for content in pages)
    say(f"{'*' if content['portable'] else ' '} {content['id']:{width}}  {content['title']}" for content in pages)
    say(["", "* portable: every adapter reports it under this id"])
    return exit_codes.ALLOWED


def profiles(site: str | None, format: str) -> int:
    """Print every profile with its launcher, its levels, whether the site has activated it, and what it lacks here."""
    policy = Gate.load(site).policy
    listed = [profile for _, profile in sorted(policy.profiles.items())]
    if format == "json":
        rows = [_row(profile, policy.site.activated) for profile in listed]
        say([canonical({"prespawn": "profiles/v1", "profiles": rows})])
    else:
        say(line for profile in listed for line in _lines(profile, policy.site.activated))
    return exit_codes.ALLOWED


def lacking(profile: Profile) -> tuple[str, ...]:
    """Return what this installation lacks for runs under a profile, in words."""
    launcher = () if profile.launcher in LAUNCHERS else (f"launcher `{profile.launcher}`",)
    return (*launcher, *evidence_lacking(profile))


def evidence_lacking(profile: Profile) -> tuple[str, ...]:
    """Return the evidence that a profile requires before it may be used at all, and that nothing here produces yet."""
    return tuple(f"evidence `{kind}`" for kind in profile.activation.requires)


def is_activated(profile: Profile, activated: tuple[str, ...]) -> bool:
    """Say whether a site's list has a profile, by its id or pinned in exactly this form."""
    return profile.id in activated or f"{profile.id}@{digest(profile)}" in activated


def _lines(profile: Profile, activated: tuple[str, ...]) -> Iterator[str]:
    state, level = "activated" if is_activated(profile, activated) else "not activated", profile.level
    yield shown(f"{profile.id}: {profile.title}")
    yield f"  {state}; launcher {profile.launcher}; level {level.minimum}, at most {level.promises}"
    if missing := lacking(profile):
        yield f"  {'not activatable' if evidence_lacking(profile) else 'cannot run here'}: no {', no '.join(missing)}"


def _row(profile: Profile, activated: tuple[str, ...]) -> dict[str, object]:
    return {
        "id": profile.id,
        "title": profile.title,
        "digest": digest(profile),
        "launcher": profile.launcher,
        "minimum": profile.level.minimum,
        "promises": profile.level.promises,
        "activated": is_activated(profile, activated),
        "activatable": not evidence_lacking(profile),
        "lacking": lacking(profile),
    }
