"""The one place that looks at the host: what was seen is a value, and the descriptors it was seen through are kept.

Nothing here decides, starts, creates or writes. Only ``prespawn.facts`` may open, stat or list for the sake of a
decision; ``checker`` reads the values.
"""

from __future__ import annotations

from .gather import gather
from .held import Held

__all__ = ["Held", "gather"]
