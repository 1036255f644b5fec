"""Which limit is held by whom: the parent itself, or a launcher of this installation.

A limit of a profile that nobody here holds is the blocker ``limit-not-enforceable``. Names are those of the profile's
fields; the numbers stand in the profile.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LOCAL = "local"  # host processes: what is started is checked, and held by nothing afterwards
ALWAYS = tuple(
    f"limits.{name}"
    for name in (
        "wall_clock", "output", "diagnostics", "argv", "declared_files", "env_keys", "env_bytes", "tree_entries",
    )
)  # fmt: skip
LAUNCHERS: Mapping[str, tuple[str, ...]] = {
    LOCAL: tuple(f"limits.{name}" for name in ("open_files", "file_size")),
    "bwrap": tuple(f"limits.{name}" for name in ("processes", "open_files", "file_size", "tmp", "home", "shm")),
}
