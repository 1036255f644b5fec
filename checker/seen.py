"""What the held run showed: trees of plain values, one tree for each strength of evidence.

``prespawn.attest`` reads it, ``checker.attestation`` compares it with what the plan means. A leaf is a JSON value, or
``Unknown`` with the reason why nobody could look; so is any branch. No environment value and no argument stands in it,
and of the worker's own files neither name nor content: at the hold there are none but in the workspace, which is not
walked.

* ``attested``: the kernel's records of the held process, of bubblewrap's init beside it, and of their mount namespace.
  ``payload`` and ``init`` (ids as the host counts them, capabilities by name, namespaces as ``own`` or ``the host's``,
  limits, descriptors, environment keys …), ``mounts`` by place, ``tree`` (every entry of every tmpfs, by path),
  ``network``, and ``filter`` where the kernel shows it.
* ``observed``: what the host showed beside that. ``sources`` (device and inode of what was to be mounted, in the
  parent's own view), ``runtime`` (the running bubblewrap), and ``filter`` where only its count is the kernel's word.
* ``declared``: what the parent told the runtime, which nothing on the outside confirms. ``told``, by option.
"""

from __future__ import annotations

from prespawn.policy.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Seen(Record):
    """One look at a held run; no name stands at the top of two trees."""

    attested: Mapping[str, object]
    observed: Mapping[str, object]
    declared: Mapping[str, object]
