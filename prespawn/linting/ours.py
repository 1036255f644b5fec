"""Is a file ours, and what does it hold? Known by its first key, read by the strict reader.

In a directory most files are somebody else's, and many of those this reader would refuse. One that cannot be read is
ours if its first line says so, whatever hides the rest: a mark, UTF-16, a second document. A filter of system calls
has no such key; ``filters`` says which of them is ours.
"""

from __future__ import annotations

from prespawn.policy.errors import ReadError
from prespawn.policy.format import FIRST_KEY, format_of
from prespawn.policy.reader import DEFAULT_BOUNDS, read, read_error

from ..trusted import SITE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prespawn.policy.reader import Document, Family, Syntax

    from .files import Entry

DECLARATION, PROFILE, SITE, BLOCKER = "declaration/v1", "profile/v1", "site/v1", "blocker/v1"
SYSCALLS = "syscalls/v1"
FORMATS = (
    "adapter/v1", "approval/v1", BLOCKER, DECLARATION, "levels/v1", "list/v1", PROFILE, "schema/v1", SITE, SYSCALLS,
)  # fmt: skip
FILTER = "seccomp"
"""The one form that is not ours: a filter of system calls stays as container runtimes read it."""
NOBODY_DECLARES = (
    "base/v1", "blockers/v1", "check/v1", "explain/v1", "facts/v1", "lint/v1", "preview/v1", "profiles/v1",
    "verdict/v1",
)  # fmt: skip
"""What this program writes itself, and what the blockers' cases start from."""

_HEAD = 4096  # bytes in which the first key of a file stands that cannot be read


def document_of(entry: Entry) -> Document | None:
    """Return the document of a file that is ours, None for one that is not; ``ReadError`` for what should be one."""
    if entry.error is not None:
        raise entry.error
    if entry.data is None:
        return None
    try:
        document = _read(entry.path, entry.data)
    except ReadError:
        if entry.named or _begins_as_ours(entry.data):
            raise
        return None
    root = document.value
    if _is_filter(root):
        return document
    first = next(iter(root.items()), None) if isinstance(root, dict) else None
    if not entry.named and (first is None or first[0] != FIRST_KEY or first[1] in NOBODY_DECLARES):
        return None
    format_of(document, FORMATS)
    return document


def kind_of(document: Document) -> str:
    """Return the format of a document that is ours."""
    return FILTER if _is_filter(document.value) else format_of(document, FORMATS)


def _is_filter(root: object) -> bool:
    return isinstance(root, dict) and FIRST_KEY not in root and {"defaultAction", "syscalls"} <= root.keys()


def _read(path: str, data: bytes) -> Document:
    """Read a file in the family of what it says it is, under the bounds of whoever reads it in earnest."""
    family: Family = "input" if DECLARATION.encode() in _first_line(data) else "policy"
    limit = DEFAULT_BOUNDS.bytes if family == "input" else SITE_BYTES
    if len(data) > limit:
        raise read_error("unreadable", f"{len(data)} bytes; allowed: up to {limit}", source=path, family=family)
    syntax: Syntax = "json" if path.endswith(".json") else "yaml"
    return read(data, source=path, family=family, syntax=syntax)


def _begins_as_ours(data: bytes) -> bool:
    return _first_line(data).lstrip(b" \t{\"'?-").startswith(FIRST_KEY.encode())


def _first_line(data: bytes) -> bytes:
    """Return the first line that says something, of bytes that nobody may be able to read."""
    head = data[:_HEAD].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe").replace(b"\r", b"\n")
    lines = (line.strip() for line in head.split(b"\n"))
    return next((line for line in lines if line not in (b"", b"{", b"---") and line[:1] not in (b"#", b"%")), b"")
