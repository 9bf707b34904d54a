"""Filters on system calls: which calls a supervisor is asked about, and which do nothing.

Filters stack and are inherited; none of them is a wall here. Standard library only: the shim imports this.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.local.kubelet.shim import linux

ALLOW = 0x7FFF0000
ASK = 0x7FC00000
"""Leave the answer to the process that holds the listener."""
DO_NOTHING = 0x00050000
"""Return success at once (`SECCOMP_RET_ERRNO` with no error)."""

FORBID = DO_NOTHING | errno.EPERM

NEW_LISTENER = 8

_SET_MODE_FILTER = 1
_INSTRUCTION = struct.Struct("=HBBI")  # code, jump if true, jump if false, operand
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF: load a word, jump if equal, return
_OFFSET_NR, _OFFSET_ARCH, _OFFSET_FIRST_ARGUMENT = 0, 4, 16


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


class OnlyWith(NamedTuple):
    """An action for calls with this first argument, a number of 32 bits; others are allowed."""

    first_argument: int
    action: int


def assemble(rules: Mapping[int, int | OnlyWith], *, audit_arch: int) -> bytes:
    """What happens by number of the call; all others, and those of another machine's binaries, are allowed."""
    judged = [step for number, action in rules.items() for step in _judge(number, action)]
    code = [(_LOAD, 0, 0, _OFFSET_ARCH), (_EQUAL, 0, 1 + len(judged), audit_arch), (_LOAD, 0, 0, _OFFSET_NR)]
    code += [*judged, (_RETURN, 0, 0, ALLOW)]
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)


def _judge(number: int, action: int | OnlyWith) -> list[tuple[int, int, int, int]]:
    if isinstance(action, int):
        return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, action)]
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, _OFFSET_FIRST_ARGUMENT),
        (_EQUAL, 0, 1, action.first_argument & 0xFFFFFFFF),
        (_RETURN, 0, 0, action.action),
        (_RETURN, 0, 0, ALLOW),
    ]


def install(rules: Mapping[int, int | OnlyWith], *, flags: int = 0) -> int:
    """Filter this process and all that come from it. Raises OSError where the kernel does not offer it.

    Needs CAP_SYS_ADMIN in its own user namespace, or `no_new_privs`.
    """
    numbers = linux.SYSCALLS
    if numbers is None:
        raise OSError("no system call numbers known for this machine")
    code = assemble(rules, audit_arch=numbers.audit_arch)
    program = _Program(len(code) // _INSTRUCTION.size, code)
    return linux.syscall(numbers.seccomp, _SET_MODE_FILTER, flags, ctypes.byref(program))


def forgive_ownership() -> None:
    """Let every change of a file's owner succeed and do nothing.

    Where only one identity exists, as in the user namespace of an ordinary user, the kernel refuses to give a file to
    anybody else, and programs that believe themselves root (tar, as `kubectl cp` runs it) take that for a failure.
    """
    if linux.SYSCALLS is not None:
        install(dict.fromkeys(linux.SYSCALLS.chowns, DO_NOTHING))


def forbid_signals_to_everybody() -> None:
    """Let `kill -1` fail with EPERM: without a PID namespace it would end every process of the user on this machine."""
    if linux.SYSCALLS is not None:
        install({linux.SYSCALLS.kill: OnlyWith(-1, FORBID)})
