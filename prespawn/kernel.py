"""The system calls that Python has no function for, each as one function that raises ``OSError``.

It owns numbers and calling conventions of Linux on x86_64 and aarch64 and knows nothing of runs. All calls act on the
calling *thread*: ptrace belongs to the thread that attached, ``unshare`` changes the mount namespace of the caller
alone, and real ids are set by the raw call because the C library's function changes every thread of the process.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLONE_NEWNS = 0x20000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, _MOUNT_ATTR_IDMAP = 1, 2, 4, 0x100000
WALL, WNOTHREAD = 0x40000000, 0x20000000

PTRACE_CONT, PTRACE_DETACH, PTRACE_GETEVENTMSG, PTRACE_SEIZE = 7, 17, 0x4201, 0x4206
PTRACE_SECCOMP_GET_FILTER = 0x420C
EVENT_FORK, EVENT_VFORK, EVENT_CLONE, EVENT_EXEC = 1, 2, 3, 4
TRACE_TO_EXEC = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000  # fork, vfork, clone, exec; killed when the tracer ends

IN_MODIFY, IN_ATTRIB, IN_MOVED_TO, IN_CREATE = 0x2, 0x4, 0x80, 0x100
_PR_SET_CHILD_SUBREAPER = 36

AT_SYMLINK_NOFOLLOW, AT_NO_AUTOMOUNT, STATX_MNT_ID = 0x100, 0x800, 0x1000
_STATX_BASIC = 0x7FF

_AT_EMPTY_PATH, _OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _AT_FDCWD = 0x1000, 1, 4, -100
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442  # the same on every architecture
_RESOLVE_IN_ROOT = 0x10
_SETRESUID_SETRESGID = {"x86_64": (117, 119), "aarch64": (147, 149)}
_PIDFD_GET_INFO, _PIDFD_INFO_EXIT, _PIDFD_INFO_SIZE = 0xC040FF0B, 1 << 3, 64

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
_libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


class Statx(ctypes.Structure):
    """``struct statx``, as far as it is used here."""

    _fields_ = [
        ("mask", ctypes.c_uint32), ("_block", ctypes.c_uint32), ("_attributes", ctypes.c_uint64),
        ("_owners", ctypes.c_uint32 * 3), ("mode", ctypes.c_uint16), ("_padding", ctypes.c_uint16),
        ("inode", ctypes.c_uint64), ("_sizes", ctypes.c_uint64 * 3), ("_times", ctypes.c_uint64 * 8),
        ("rdev_major", ctypes.c_uint32), ("rdev_minor", ctypes.c_uint32), ("dev_major", ctypes.c_uint32),
        ("dev_minor", ctypes.c_uint32), ("mount", ctypes.c_uint64), ("_rest", ctypes.c_uint64 * 13),
    ]  # fmt: skip


def ptrace(request: int, pid: int, data: int = 0) -> None:
    """Make a ptrace request that takes no address."""
    _checked(_libc.ptrace(request, pid, None, data))


def event_message(pid: int) -> int:
    """Return what the last ptrace event of a stopped process carries: for a fork the new pid, in our pid namespace."""
    message = ctypes.c_ulong()
    _checked(_libc.ptrace(PTRACE_GETEVENTMSG, pid, None, ctypes.addressof(message)))
    return message.value


def seccomp_filter(pid: int) -> bytes:
    """Return the filter that a stopped process put on last, as an array of ``struct sock_filter``.

    It takes CAP_SYS_ADMIN; ``PermissionError`` (EACCES) without. ``FileNotFoundError`` if there is none.
    """
    count = _checked(_libc.ptrace(PTRACE_SECCOMP_GET_FILTER, pid, None, None))
    program = ctypes.create_string_buffer(8 * count)
    _checked(_libc.ptrace(PTRACE_SECCOMP_GET_FILTER, pid, None, ctypes.addressof(program)))
    return program.raw


def statx(directory: int, path: str, *, follow: bool = False) -> Statx:
    """Return what a path below a directory's descriptor is, and on which mount; an empty path is the directory.

    ``mount`` is its id as in mountinfo, if ``mask`` has ``STATX_MNT_ID`` (Linux 5.8).
    """
    found = Statx()
    flags = AT_NO_AUTOMOUNT | _AT_EMPTY_PATH | (0 if follow else AT_SYMLINK_NOFOLLOW)
    wanted = _STATX_BASIC | STATX_MNT_ID
    _checked(_libc.statx(directory, os.fsencode(path), flags, wanted, ctypes.addressof(found)))
    return found


def open_in_root(root: int, path: bytes, flags: int) -> int:
    """Open a path as a process with that root would, links of any kind included; nothing above the root is reached."""
    how = struct.pack("=QQQ", flags, 0, _RESOLVE_IN_ROOT)
    return _syscall(_OPENAT2, root, path, how, len(how))


def private_mounts() -> None:
    """Give the calling thread a mount namespace of its own, from and to which nothing propagates."""
    _checked(_libc.unshare(CLONE_NEWNS))
    _checked(_libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))


def mount_tmpfs(target: str, options: str) -> None:
    """Mount a tmpfs without setuid, devices or programs of its own."""
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    _checked(_libc.mount(b"prespawn", os.fsencode(target), b"tmpfs", flags, options.encode("ascii")))


def clone_mount(fd: int) -> int:
    """Return a detached copy of the mount that a descriptor is on, with the descriptor's file as its root.

    Mounts below it stay out.
    """
    return _syscall(_OPEN_TREE, fd, b"", _AT_EMPTY_PATH | _OPEN_TREE_CLONE | os.O_CLOEXEC)


def set_mount_attributes(tree: int, attributes: int, mapping: int | None = None) -> None:
    """Set ``MOUNT_ATTR_*`` flags on a mount that is given by its root's descriptor.

    ``mapping`` is a descriptor of the user namespace through whose maps the mount shows the ids of its files; the mount
    must be detached then. EINVAL where its file system does not let that be done.
    """
    if mapping is None:
        wanted = _MountAttributes(attr_set=attributes)
    else:
        wanted = _MountAttributes(attr_set=attributes | _MOUNT_ATTR_IDMAP, userns_fd=mapping)
    _syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, ctypes.byref(wanted), ctypes.sizeof(wanted))


def attach_mount(tree: int, target: str) -> None:
    """Attach a detached mount at a path."""
    _syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)


def set_real_ids(uid: int, gid: int) -> None:
    """Set real uid and gid of the calling thread alone; effective and saved ids stay as they are."""
    try:
        setresuid, setresgid = _SETRESUID_SETRESGID[os.uname().machine]
    except KeyError:
        raise OSError(f"no system call numbers for `{os.uname().machine}`; known: x86_64, aarch64") from None
    _syscall(setresgid, gid, -1, -1)
    _syscall(setresuid, uid, -1, -1)


def exit_record(pidfd: int) -> int | None:
    """Return the wait status of an ended process that need not be our child, or None where the kernel keeps none.

    The kernel keeps it from 6.15 on, for a pidfd that was opened while the process lived.
    """
    info = bytearray(_PIDFD_INFO_SIZE)
    info[:8] = _PIDFD_INFO_EXIT.to_bytes(8, sys.byteorder)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    if not int.from_bytes(info[:8], sys.byteorder) & _PIDFD_INFO_EXIT:
        return None
    return int.from_bytes(info[60:64], sys.byteorder, signed=True)


def change_queue() -> int:
    """Return a descriptor that is readable when something changed in what ``watch`` was asked about."""
    return _checked(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))


def watch(queue: int, fd: int) -> None:
    """Have changes of a directory's entries, or of a file's content, told; nothing is opened for it."""
    _checked(_libc.inotify_add_watch(queue, b"/proc/self/fd/%d" % fd, IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_MOVED_TO))


def subreaper() -> None:
    """Have every descendant whose parent ends become the calling process's child."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def _syscall(number: int, *arguments: Any) -> int:
    words = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    return _checked(_libc.syscall(ctypes.c_long(number), *words))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
