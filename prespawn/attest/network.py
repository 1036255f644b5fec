"""The network of a held run: its interfaces, and those that any route leads to.

An interface that is down has no route, so a tunnel that the kernel puts into every namespace shows whether it is more
than that.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reading import Process

_HEADER_LINES = {"net/dev": 2, "net/route": 1, "net/ipv6_route": 0}


def interfaces(process: Process) -> tuple[str, ...]:
    """Return the names of all interfaces, sorted."""
    return tuple(sorted(line.partition(":")[0].strip() for line in _lines(process, "net/dev")))


def routes(process: Process) -> tuple[str, ...]:
    """Return the names of the interfaces that a route leads to, sorted; of IPv6 where the kernel has it."""
    names = {line.split()[0] for line in _lines(process, "net/route")}
    try:
        newer = _lines(process, "net/ipv6_route")
    except FileNotFoundError:
        newer = []  # a kernel without IPv6
    return tuple(sorted(names | {line.split()[-1] for line in newer}))


def _lines(process: Process, name: str) -> list[str]:
    return [line for line in process.text(name).splitlines()[_HEADER_LINES[name] :] if line.strip()]
