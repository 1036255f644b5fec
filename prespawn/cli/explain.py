"""``prespawn explain ID``: the page of one blocker."""

from __future__ import annotations

import textwrap

from prespawn import exit_codes
from prespawn.pages import page
from prespawn.policy.canonical import canonical
from prespawn.words import value_text

from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

WIDTH = 100


def run(id: str, format: str) -> int:
    """Print the page; an id that does not exist is a usage error that names the nearest one."""
    content = page(id)
    if format == "json":
        say([canonical({"prespawn": "explain/v1", "blocker": dict(content)})])
    else:
        say(_lines(content))
    return exit_codes.ALLOWED


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    yield f"{content['id']}: {content['title']}"
    yield ""
    yield from textwrap.wrap(content["why"], WIDTH)
    yield ""
    yield from textwrap.wrap(f"remedy: {content['remedy']}", WIDTH, subsequent_indent="  ")
    yield ""
    portable = "portable: every adapter reports it under this id; " if content["portable"] else ""
    accepted = (
        "an operator may accept it once while it is unknown" if content["operator"] == "once" else "never accepted"
    )
    yield from textwrap.wrap(
        f"boundary {content['boundary']}; {portable}asked in the {content['phase']} pass; {accepted}; "
        f"since policy version {content['since']}",
        WIDTH,
    )
    for source in content["reference"]:
        yield f"see: {source}"
    yield ""
    for case in content["cases"]:
        yield from _case(case)


def _case(case: Mapping[str, Any]) -> Iterator[str]:
    if "blocks" not in case:
        yield f"  passes  {case['name']}"
        return
    blocks = case["blocks"]
    if blocks.get("because") == "unknown":
        yield f"  unknown {case['name']}"
    else:
        yield f"  blocks  {case['name']}: `{blocks['field']}` is {value_text(blocks['found'])}"
