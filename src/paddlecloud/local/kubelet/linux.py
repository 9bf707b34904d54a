"""The Linux calls a pod needs and Python does not offer: namespaces, mounts, pivot_root, prctl.

Standard library only, because the shims import it and stay small. Every call raises `OSError` with what was tried in
its text; nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import os
import platform
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
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


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


_MACHINES = {
    "x86_64": SyscallNumbers(155, 49, 42, 317, 434, 438, 0xC000003E, (92, 93, 94, 260)),
    "aarch64": SyscallNumbers(41, 200, 203, 277, 434, 438, 0xC00000B7, (54, 55)),
}

SYSCALLS = _MACHINES.get(platform.machine())
"""None on a machine whose numbers are not in the table: the sandbox then degrades and says so."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


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


def syscall(number: int, *arguments: object) -> int:
    """A raw call, for the few users that build their own structures."""
    return _check(_libc.syscall(number, *arguments), f"syscall {number}")
