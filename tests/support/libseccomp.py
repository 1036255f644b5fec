"""libseccomp through ctypes, used as container runtimes use it: a second opinion on numbers and on filters."""

from __future__ import annotations

import ctypes
import os
import tempfile
from typing import Any

TOKENS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ACT_ALLOW, ACT_ERRNO = 0x7FFF0000, 0x00050000
CMP_EQ, CMP_MASKED_EQ = 4, 7


class Comparison(ctypes.Structure):
    """``struct scmp_arg_cmp``."""

    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def library() -> ctypes.CDLL | None:
    """Return the library, or None where it is not installed."""
    try:
        lib = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return None
    lib.seccomp_init.restype = ctypes.c_void_p
    return lib


def number(lib: ctypes.CDLL, name: str, architecture: str) -> int:
    """Return the number that the library knows a call by; negative if it is none on this architecture."""
    found: int = lib.seccomp_syscall_resolve_name_arch(ctypes.c_uint32(TOKENS[architecture]), name.encode())
    return found


def exported(lib: ctypes.CDLL, value: Any, architecture: str) -> tuple[bytes, set[str]]:
    """Return the program that the library makes of a filter, and the names in it that it knows."""
    context = ctypes.c_void_p(lib.seccomp_init(_action(value["defaultAction"], value["defaultErrnoRet"])))
    _done(lib.seccomp_arch_add(context, ctypes.c_uint32(TOKENS[architecture])), allowed=(0, -17))
    for other, token in TOKENS.items():
        if other != architecture:
            lib.seccomp_arch_remove(context, ctypes.c_uint32(token))
    known: set[str] = set()
    for rule in value["syscalls"]:
        action = _action(rule["action"], rule.get("errnoRet"))
        args = [_comparison(one) for one in rule.get("args", [])]
        for name in rule["names"]:
            if number(lib, name, architecture) >= 0:
                known.add(name)
                native = lib.seccomp_syscall_resolve_name(name.encode())  # the library goes from there by name
                array = (Comparison * len(args))(*args)
                _done(lib.seccomp_rule_add_exact_array(context, action, native, len(args), array))
    with tempfile.TemporaryFile() as file:
        _done(lib.seccomp_export_bpf(context, file.fileno()))
        lib.seccomp_release(context)
        return os.pread(file.fileno(), 1 << 20, 0), known


def _action(name: str, errno: int | None) -> ctypes.c_uint32:
    return ctypes.c_uint32(ACT_ALLOW if name == "SCMP_ACT_ALLOW" else ACT_ERRNO | (errno or 0))


def _comparison(condition: Any) -> Comparison:
    if condition["op"] == "SCMP_CMP_EQ":
        return Comparison(condition["index"], CMP_EQ, condition["value"], 0)
    return Comparison(condition["index"], CMP_MASKED_EQ, condition["value"], condition["valueTwo"])


def _done(result: int, allowed: tuple[int, ...] = (0,)) -> None:
    assert result in allowed, os.strerror(-result)
