"""What conditions answer, and how answers and operands that nobody could look at go together.

Shared by the two forms of a condition: the function that ``conditions`` compiles, and the code that ``source`` writes.
"""

from __future__ import annotations

from prespawn.policy.known import ABSENT, Absent, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Answer = bool | Unknown | Absent

UNJUDGED: frozenset[object] = frozenset((Unknown, Absent))
"""Asked by ``type``: with a metaclass, ``isinstance`` takes four times as long."""


def weakest(*answers: Answer) -> Answer:
    """Return what ``all`` says where no part is false: the first that is unknown, else absent if one is, else true."""
    said: Answer = True
    for answer in answers:
        if type(answer) is Unknown:
            return answer
        if answer is not True:
            said = answer
    return said


def strongest(*answers: Answer) -> Answer:
    """Return what ``any`` says where no part is true: the first that is unknown, else false if one is, else absent."""
    said: Answer = ABSENT
    for answer in answers:
        if type(answer) is Unknown:
            return answer
        if answer is not ABSENT:
            said = answer
    return said


def unjudged(first: object, second: object) -> Unknown | Absent:
    """Return what is said of two operands that cannot both be judged: what is unknown outweighs what is absent."""
    for value in (first, second):
        if isinstance(value, Unknown):
            return value
    return ABSENT


def is_inside(path: object, root: object) -> bool:
    """Say whether an absolute resolved path lies below a root, by whole components: ``/ws-evil`` is not in ``/ws``."""
    if not isinstance(path, str) or not isinstance(root, str):
        return False
    above = f"{root.rstrip('/')}/"
    if not path.startswith(above) or not path[len(above) :].strip("/"):
        return False
    return ".." not in path or ".." not in path.split("/")


def is_same_file(one: Any, other: Any) -> Answer:
    """Say whether two places are one file; unknown where a number is, nothing to judge where a place is absent."""
    parts: tuple[object, ...] = (one.device, one.inode, other.device, other.inode)
    for part in parts:
        if isinstance(part, Unknown):
            return part
    if isinstance(one, Absent) or isinstance(other, Absent):
        return ABSENT
    return parts[1] is not ABSENT and parts[:2] == parts[2:]
