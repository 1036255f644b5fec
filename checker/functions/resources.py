"""Can this host hold the run to the numbers that the profile states?"""

from __future__ import annotations

from prespawn.policy.known import Absent, Unknown

from .finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..evaluate import View


def limit_not_enforceable(view: View) -> Iterable[Finding] | Unknown:
    """A limit of the profile for which the launcher has no enforcer on this host."""
    return _without(view, view.facts.runtime.enforces, "limits", view.profile.limits)


def quota_not_enforceable(view: View) -> Iterable[Finding] | Unknown:
    """A total bound of a lease that nothing on this host enforces."""
    if isinstance(view.profile, Absent) or isinstance(view.profile.quotas, Absent):
        return ()
    return _without(view, view.facts.runtime.enforces, "quotas", view.profile.quotas)


def env_limit(view: View) -> Iterable[Finding] | Unknown:
    """More environment than the profile has room for: in keys, or in bytes of keys and values."""
    keys = view.declaration.env_keys
    if isinstance(view.profile, Absent) or not isinstance(keys, list):
        return ()
    limits = view.profile.limits
    if len(keys) > limits.env_keys:
        return (Finding(field="env_keys", found=f"{len(keys)} keys", allowed=(f"at most {limits.env_keys} keys",)),)
    total = 0
    for entry in view.facts.environment if isinstance(view.facts.environment, tuple) else ():
        if isinstance(entry.size, Unknown):
            return entry.size
        total += entry.size + (len(entry.key.encode("utf-8", "surrogatepass")) if isinstance(entry.key, str) else 0)
    if total > limits.env_bytes:
        return (Finding(field="env_keys", found=f"{total} bytes", allowed=(f"at most {limits.env_bytes} bytes",)),)
    return view.facts.environment if isinstance(view.facts.environment, Unknown) else ()


def execution_preview_argv_limit(view: View) -> Iterable[Finding]:
    """A vector larger than the profile allows, in bytes with the NUL after each element."""
    argv = view.declaration.argv
    if isinstance(view.profile, Absent) or not isinstance(argv, list) or not {str}.issuperset(map(type, argv)):
        return ()
    size = len("\0".join(argv).encode("utf-8", "surrogatepass")) + 1 if argv else 0
    if size <= view.profile.limits.argv:
        return ()
    return (
        Finding(field="execution.argv", found=f"{size} bytes", allowed=(f"at most {view.profile.limits.argv} bytes",)),
    )


FUNCTIONS = (limit_not_enforceable, quota_not_enforceable, env_limit, execution_preview_argv_limit)


def _without(view: View, enforced: object, group: str, bounds: object) -> Iterable[Finding] | Unknown:
    if isinstance(view.profile, Absent):
        return ()
    if isinstance(enforced, Unknown):
        return enforced
    held = enforced if isinstance(enforced, tuple) else ()  # no runtime holds a run to nothing
    wanted = {f"{group}.{name}" for name, bound in bounds if bound is not None}  # type: ignore[attr-defined]  # a record
    missing = sorted(wanted.difference(held))
    return [Finding(field=f"profile.{name}", found="no enforcer on this host", allowed=held) for name in missing]
