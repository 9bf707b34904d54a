"""The Linux calls a pod needs and Python does not offer: namespaces, mounts, pivot_root, prctl.

Standard library only, because the shims import it and stay small. Every call raises `OSError` with what was tried in
its text; nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping, Sequence
from typing import NamedTuple

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_NOATIME = 1024
MS_NODIRATIME = 2048
MS_BIND = 4096
MS_REC = 16384
MS_SLAVE = 1 << 19
MS_SHARED = 1 << 20
MS_RELATIME = 1 << 21
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_MM = 35
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_SET_MM_MAP = 14


class SyscallNumbers(NamedTuple):
    """Calls without a libc wrapper, by machine."""

    pivot_root: int
    bind: int
    connect: int
    seccomp: int
    pidfd_open: int
    pidfd_getfd: int
    audit_arch: int  # what seccomp filters compare with
    chowns: tuple[int, ...]  # all that change a file's owner
    kill: int


_MACHINES = {
    "x86_64": SyscallNumbers(155, 49, 42, 317, 434, 438, 0xC000003E, (92, 93, 94, 260), 62),
    "aarch64": SyscallNumbers(41, 200, 203, 277, 434, 438, 0xC00000B7, (54, 55), 129),
}

SYSCALLS = _MACHINES.get(platform.machine())
"""None on a machine whose numbers are not in the table: the sandbox then degrades and says so."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def end_without_destructors() -> None:
    """Let `exit` end this process before the destructors of the libraries that are loaded now, its streams written.

    For a child of fork: its libraries believe in threads that it does not have, and abort when they wait for them.
    Handlers run in the reverse order, so those of libraries that are loaded later run as usual.
    """
    on_exit = getattr(_libc, "on_exit", None)  # of glibc: unlike those of `atexit`, its handlers are given the status
    if on_exit is not None:
        on_exit(_libc._exit, None)
        on_exit(_libc.fcloseall, None)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), f"unshare({flags:#x})")


def setns(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), f"setns({kind:#x})")


def mount(
    source: str | None, target: str, *, kind: str | None = None, flags: int = 0, options: str | None = None
) -> None:
    _check(
        _libc.mount(
            os.fsencode(source) if source else None,
            os.fsencode(target),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            options.encode() if options else None,
        ),
        f"mount {source or kind} at {target}",
    )


def bind(source: str, target: str, *, readonly: bool = False) -> None:
    """Bind a file or tree. Read-only takes a second call: the kernel ignores the flag on the first."""
    mount(source, target, flags=MS_BIND | MS_REC)
    if readonly:
        mount(None, target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | _locked_flags(target))


_STATVFS_TO_MOUNT = {
    os.ST_NOSUID: MS_NOSUID,
    os.ST_NODEV: MS_NODEV,
    os.ST_NOEXEC: MS_NOEXEC,
    os.ST_NOATIME: MS_NOATIME,
    os.ST_NODIRATIME: MS_NODIRATIME,
    os.ST_RELATIME: MS_RELATIME,
}


def _locked_flags(target: str) -> int:
    """Flags of the mount beneath: inside a user namespace a remount that drops one of them is refused."""
    current = os.statvfs(target).f_flag
    flags = 0
    for seen, wanted in _STATVFS_TO_MOUNT.items():
        if current & seen:
            flags |= wanted
    return flags


def unmount(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    if SYSCALLS is None:
        raise OSError(f"pivot_root: no system call numbers known for {platform.machine()}")
    _check(_libc.syscall(SYSCALLS.pivot_root, os.fsencode(new), os.fsencode(old)), f"pivot_root {new}")


def prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl({option})")


# A process that goes on as another program without exec

_SIGNALS = 64
_ACTION_BYTES = 256  # more than any libc's `struct sigaction`, which is only kept and given back


def signal_actions() -> dict[int, bytes]:
    """What the kernel does at each signal, native handlers included, for `set_signal_actions`."""
    actions = {}
    for number in range(1, _SIGNALS + 1):
        action = ctypes.create_string_buffer(_ACTION_BYTES)
        if _libc.sigaction(number, None, action) == 0:
            actions[number] = action.raw
    return actions


def set_signal_actions(actions: Mapping[int, bytes]) -> None:
    for number, action in actions.items():
        _libc.sigaction(number, action, None)  # refused for SIGKILL and SIGSTOP, which cannot be handled


class _MemoryMap(ctypes.Structure):
    """`struct prctl_mm_map`."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("start_code", "end_code", "start_data", "end_data", "start_brk", "brk")),
        *((name, ctypes.c_uint64) for name in ("start_stack", "arg_start", "arg_end", "env_start", "env_end", "auxv")),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    )


_shown: ctypes.Array[ctypes.c_char] | None = None
"""The memory that /proc shows as this process's arguments and environment."""


def set_command_line(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Show `argv` and `env` in /proc, to `ps` and others, as if they had been given to exec."""
    global _shown
    arguments = b"".join(os.fsencode(argument) + b"\0" for argument in argv)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in env.items())
    block = ctypes.create_string_buffer(arguments + variables)
    with open("/proc/self/stat") as handle:
        fields = handle.read().rpartition(")")[2].split()

    def numbered(number: int) -> int:
        """As proc(5) counts; the first two were cut off."""
        return int(fields[number - 3])

    start = ctypes.addressof(block)
    layout = _MemoryMap(
        start_code=numbered(26),
        end_code=numbered(27),
        start_stack=numbered(28),
        start_data=numbered(45),
        end_data=numbered(46),
        start_brk=numbered(47),
        arg_start=start,
        arg_end=start + len(arguments),
        env_start=start + len(arguments),
        env_end=start + len(arguments) + len(variables),
        exe_fd=0xFFFFFFFF,  # stays
    )
    _libc.sbrk.restype = ctypes.c_void_p
    layout.brk = _libc.sbrk(0)
    size = ctypes.c_ulong(ctypes.sizeof(layout))
    done = _libc.prctl(PR_SET_MM, ctypes.c_ulong(PR_SET_MM_MAP), ctypes.byref(layout), size, ctypes.c_ulong(0))
    _check(done, "prctl(PR_SET_MM_MAP)")
    _shown = block


def set_name(name: str) -> None:
    """What `ps` and /proc show as the command, which exec takes from the file's name."""
    _check(_libc.prctl(PR_SET_NAME, os.fsencode(name)[:15] + b"\0", 0, 0, 0), "prctl(PR_SET_NAME)")


def syscall(number: int, *arguments: object) -> int:
    """A raw call, for the few users that build their own structures."""
    return _check(_libc.syscall(number, *arguments), f"syscall {number}")
