"""Gives a pod's servers the pod's own address, although all pods share the machine's network.

Two pods that both listen on `0.0.0.0:8080`, or both on `127.0.0.1:8080`, would collide. So `bind` on either of these
addresses takes place on the pod's address instead, and a `connect` to `127.0.0.1` goes there too when the pod listens
on that port; low ports that the user may not have are replaced (`lowports`); everything else is left alone. Programs
of any language need no change and no privileges: the kernel hands these two calls to the shim (seccomp user
notification), which carries them out or lets them continue.

Needs Linux 5.6. Where it cannot be had, pods run without it, and the sandbox's reason says so. This is a convenience
for well-meaning programs, not a wall. Standard library only: the shim imports this.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import struct

from paddlecloud.local import lowports
from paddlecloud.local.kubelet.shim import linux, seccomp

_CONTINUE = 1
_NOTIF_RECV = 0xC0502100
_NOTIF_SEND = 0xC0182101
_NOTIF_ID_VALID = 0x40082102

_NOTIF = struct.Struct("=QIIiIQ6Q")  # id, pid, flags, nr, arch, instruction pointer, arguments
_RESPONSE = struct.Struct("=QqiI")  # id, value, error, flags


_ANY4, _LOCAL4 = bytes(4), bytes((127, 0, 0, 1))
_ANY6, _LOCAL6 = bytes(16), bytes(15) + b"\x01"
_MAPPED = bytes(10) + b"\xff\xff"
_AS_IPV4 = {_ANY6: _ANY4, _LOCAL6: _LOCAL4}
_PORT = struct.Struct("!H")


def install(*, privileged: bool) -> int:
    """Filter this process and all that come from it; returns the descriptor on which a supervisor is asked.

    Raises OSError where the kernel does not offer it.
    """
    numbers = linux.SYSCALLS
    if numbers is None:
        raise OSError("no system call numbers known for this machine")
    if not privileged:
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    asked: dict[int, int | seccomp.OnlyWith] = dict.fromkeys((numbers.bind, numbers.connect), seccomp.ASK)
    return seccomp.install(asked, flags=seccomp.NEW_LISTENER)


class NetGuard:
    """The supervisor's side, shared by the containers of a pod."""

    def __init__(self, ip: str, *, lowest: int) -> None:
        """`lowest` is the lowest port that this process may listen on."""
        self._ip = socket.inet_aton(ip)
        self._lowest = lowest
        self._listening: set[int] = set()  # ports, as the pod calls them, that were moved to its address

    def answer(self, listener: int) -> bool:
        """Handle one call that waits on `listener`; False when no process is left that could ask."""
        waiting = select.poll()
        waiting.register(listener, select.POLLIN)
        if not any(events & select.POLLIN for _, events in waiting.poll(0)):
            return False  # hung up: receiving now would wait forever on older kernels
        buffer = bytearray(_NOTIF.size)
        try:
            fcntl.ioctl(listener, _NOTIF_RECV, buffer)
        except OSError as error:
            # ENOENT: the caller was killed while it waited. Anything else: the last filtered process is gone.
            return error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN)
        identity, pid, _, number, _, _, *arguments = _NOTIF.unpack(buffer)
        response = self._decide(listener, identity, pid, number, arguments)
        try:
            fcntl.ioctl(listener, _NOTIF_SEND, bytearray(response))
        except OSError:
            pass  # the caller is gone, and with it the need for an answer
        return True

    def _decide(self, listener: int, identity: int, pid: int, number: int, arguments: list[int]) -> bytes:
        go_on = _RESPONSE.pack(identity, 0, 0, _CONTINUE)
        try:
            address = _read_memory(pid, arguments[1], min(arguments[2], 28))
            target = self._redirect(address, binding=linux.SYSCALLS is not None and number == linux.SYSCALLS.bind)
            if target is None:
                return go_on
            fcntl.ioctl(listener, _NOTIF_ID_VALID, struct.pack("=Q", identity))  # still the process we read from?
            if linux.SYSCALLS is not None and number == linux.SYSCALLS.bind:
                return _RESPONSE.pack(identity, 0, self._bind(pid, arguments[0], target, address), 0)
            # The caller's own buffer is changed and the call goes on: a connect may block, and the shim must not.
            _write_memory(pid, arguments[1], target)
        except OSError:
            return go_on
        return go_on

    def _redirect(self, address: bytes, *, binding: bool) -> bytes | None:
        """The address to use instead, in the family of the caller's; None to leave the call alone."""
        if len(address) < 8:
            return None
        family = int.from_bytes(address[:2], "little" if _LITTLE else "big")
        (port,) = _PORT.unpack(address[2:4])
        if port == 0:
            return None  # any free port: no collision, and a client may need a route to elsewhere
        if family == socket.AF_INET:
            before, own, after = b"", address[4:8], address[8:16]
        elif family == socket.AF_INET6 and len(address) >= 24:
            before, after = address[4:8] + _MAPPED, address[24:28]
            own = _AS_IPV4.get(address[8:24], address[8:24]).removeprefix(_MAPPED)
        else:
            return None
        found = self._moved(own, port, binding=binding) if len(own) == 4 else None
        return address[:2] + _PORT.pack(found[1]) + before + found[0] + after if found else None

    def _moved(self, ip: bytes, port: int, *, binding: bool) -> tuple[bytes, int] | None:
        """Where a call to this address takes place instead; None: just there."""
        own = (binding and ip == _ANY4) or (ip == _LOCAL4 and (binding or port in self._listening))
        here = self._ip if own else ip
        found = (here, lowports.stand_in(here, port, self._lowest))
        return found if found != (ip, port) else None

    def _bind(self, pid: int, fd: int, target: bytes, address: bytes) -> int:
        """Bind the caller's socket here; returns the error for the caller, negative as the kernel wants it."""
        assert linux.SYSCALLS is not None
        handle = linux.syscall(linux.SYSCALLS.pidfd_open, _thread_group(pid), 0)
        try:
            own = linux.syscall(linux.SYSCALLS.pidfd_getfd, handle, fd, 0)
        finally:
            os.close(handle)
        with socket.socket(fileno=own) as copy:
            try:
                if copy.family == socket.AF_INET6:
                    # A server for IPv6 alone cannot have the pod's address, which is of IPv4.
                    copy.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                (port,) = _PORT.unpack(target[2:4])
                host = socket.inet_ntoa(target[4:8] if copy.family == socket.AF_INET else target[20:24])
                copy.bind((host, port) if copy.family == socket.AF_INET else (f"::ffff:{host}", port))
                self._listening.add(*_PORT.unpack(address[2:4]))
            except OSError as error:
                return -(error.errno or errno.EINVAL)
        return 0


_LITTLE = struct.pack("=H", 1) == b"\x01\x00"


def _read_memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)


def _write_memory(pid: int, address: int, data: bytes) -> None:
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(data)


def _thread_group(pid: int) -> int:
    """The kernel names the thread that called; descriptors belong to its process."""
    with open(f"/proc/{pid}/status") as handle:
        for line in handle:
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    return pid
