"""Canonical JSON and its digest.

The canonical form is what ``json.dumps(value, sort_keys=True, separators=(",", ":"))`` gives for null, booleans,
integers, strings, lists and string-keyed mappings: any language can make it, it is ASCII, and it exists for every
string, lone surrogates included. Anything else (a float, bytes, a set) is a ``TypeError``: digests are taken over
canonical models, and those hold nothing else.
"""

from __future__ import annotations

try:  # hashlib pulls in OpenSSL, 3 ms at every start; the same code is a module of its own
    from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]  # CPython 3.11
except ImportError:
    try:
        from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # CPython 3.12 and later
    except ImportError:
        from hashlib import sha256

try:
    from _json import encode_basestring_ascii as quoted  # what json.dumps itself calls, without importing json
except ImportError:
    from json.encoder import encode_basestring_ascii as quoted


def canonical(value: object) -> str:
    """Return the canonical JSON text of a value; ``TypeError`` for what JSON or this form does not have."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(_pair(key, value[key]) for key in sorted(value))}}}"
    raise TypeError(f"no canonical form for {type(value).__name__}")


def digest(value: object) -> str:
    """Return ``sha256:<64 hex digits>`` of the canonical form."""
    return digest_bytes(canonical(value).encode("ascii"))


def digest_bytes(data: bytes) -> str:
    """Return ``sha256:<64 hex digits>`` of bytes."""
    return f"sha256:{sha256(data).hexdigest()}"


def _pair(key: object, value: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"no canonical form for a key of type {type(key).__name__}")
    return f"{quoted(key)}:{canonical(value)}"
