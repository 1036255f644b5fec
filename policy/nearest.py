"""The nearest known word to a misspelt one.

Its own small edit distance: importing ``difflib`` costs as much as importing ``re``, and it knows no swapped letters.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_FAR = 3  # more mistakes than this and it is another word


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that ``word`` was likely meant to be, or None.

    At most one letter in three may be wrong; case, ``-`` and ``_`` count for nothing. Among equals the first in
    alphabetical order wins, so the order of ``known`` does not matter.
    """
    plain = _plain(word)
    allowed = min(_FAR, len(plain) // 3)
    candidates = ((_plain(other), other) for other in sorted(known))
    near = [(_distance(plain, p), other) for p, other in candidates if abs(len(p) - len(plain)) <= allowed]
    distance, best = min(near, default=(allowed + 1, None), key=lambda pair: pair[0])
    return best if distance <= allowed else None


def _plain(word: str) -> str:
    return word.replace("-", "").replace("_", "").lower()


def _distance(left: str, right: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words."""
    older: list[int] = []
    above = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b)))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                row[j] = min(row[j], older[j - 2] + 1)
        older, above = above, row
    return above[-1]
