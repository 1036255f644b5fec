"""``prespawn blockers`` and ``prespawn profiles``: what there is, one line each."""

from __future__ import annotations

import sys

from prespawn import exit_codes
from prespawn.pages import ids, page
from prespawn.policy.canonical import canonical, digest

from ..gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.policy.profile import Profile

SUMMARY = ("id", "boundary", "title", "portable", "status", "since", "phase", "operator", "remedy")


def blockers(format: str) -> int:
    """Print every blocker, the portable ones marked."""
    pages = [page(id) for id in ids()]
    if format == "json":
        rows = [{name: content[name] for name in SUMMARY} for content in pages]
        sys.stdout.write(canonical({"prespawn": "blockers/v1", "blockers": rows}) + "\n")
        return exit_codes.ALLOWED
    width = max(len(content["id"]) for content in pages)
    for content in pages:
        mark = "*" if content["portable"] else " "
        sys.stdout.write(f"{mark} {content['id']:{width}}  {content['title']}\n")
    sys.stdout.write("\n* portable: every adapter reports it under this id\n")
    return exit_codes.ALLOWED


def profiles(site: str | None, format: str) -> int:
    """Print every profile with its launcher, its levels, and whether the site has activated it."""
    policy = Gate.load(site).policy
    rows = [_row(profile, policy.site.activated) for _, profile in sorted(policy.profiles.items())]
    if format == "json":
        sys.stdout.write(canonical({"prespawn": "profiles/v1", "profiles": rows}) + "\n")
        return exit_codes.ALLOWED
    for row in rows:
        state = "activated" if row["activated"] else "not activated"
        sys.stdout.write(f"{row['id']}: {row['title']}\n")
        sys.stdout.write(f"  {state}; launcher {row['launcher']}; level {row['minimum']}, at most {row['promises']}\n")
    return exit_codes.ALLOWED


def _row(profile: Profile, activated: tuple[str, ...]) -> dict[str, object]:
    identity = digest(profile)
    return {
        "id": profile.id,
        "title": profile.title,
        "digest": identity,
        "launcher": profile.launcher,
        "minimum": profile.level.minimum,
        "promises": profile.level.promises,
        "activated": profile.id in activated or f"{profile.id}@{identity}" in activated,
    }
