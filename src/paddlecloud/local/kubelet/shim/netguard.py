"""Gives a pod's servers the pod's own address, although all pods share the machine's network.

Two pods that both listen on `0.0.0.0:8080`, or both on `127.0.0.1:8080`, would collide. So `bind` on either of these
addresses takes place on the pod's address instead, and a `connect` to `127.0.0.1` goes there too when the pod listens
on that port; low ports that the user may not have are replaced (`lowports`). A `connect` to another pod or a Service
comes from the pod's address, so that the peer knows who calls, as in Kubernetes; to its own address it does not, since
a client that repeats its call until its pod listens could take the port of the server and connect to itself.
Everything else is left alone.

Programs of any language need no change and no privileges: the kernel hands these two calls to the shim (seccomp user
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
        binding = linux.SYSCALLS is not None and number == linux.SYSCALLS.bind
        try:
            address = _read_memory(pid, arguments[1], min(arguments[2], 28))
            target = self._redirect(address, binding=binding)
            peer = _ipv4_in(address)
            abroad = not binding and lowports.is_ours(peer) and peer != self._ip
            if target is None and not abroad:
                return go_on
            fcntl.ioctl(listener, _NOTIF_ID_VALID, struct.pack("=Q", identity))  # still the process we read from?
            if target is not None and binding:
                return _RESPONSE.pack(identity, 0, self._bind(pid, arguments[0], target, address), 0)
            if target is not None:
                # The caller's own buffer is changed and the call goes on: a connect may block, and the shim must not.
                _write_memory(pid, arguments[1], target)
            if abroad:
                self._set_source(pid, arguments[0])
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
        with _copy_of(pid, fd) as copy:
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

    def _set_source(self, pid: int, fd: int) -> None:
        """Have the caller's socket connect from the pod's address, unless its program chose another."""
        host = socket.inet_ntoa(self._ip)
        with _copy_of(pid, fd) as copy:
            if copy.getsockname()[:2] == ("0.0.0.0", 0):  # noqa: S104
                source = host
            elif copy.getsockname()[:2] == ("::", 0):
                source = f"::ffff:{host}"
            else:
                return
            copy.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)  # the port is found when it connects
            if copy.type == socket.SOCK_STREAM:  # a server of this pod may want that port later: both can have it
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            copy.bind((source, 0))


_BIND_ADDRESS_NO_PORT = 24
_LITTLE = struct.pack("=H", 1) == b"\x01\x00"


def _copy_of(pid: int, fd: int) -> socket.socket:
    """The same socket as the caller's."""
    assert linux.SYSCALLS is not None
    try:
        handle = linux.syscall(linux.SYSCALLS.pidfd_open, pid, 0)
    except OSError:  # a thread: descriptors belong to its process
        handle = linux.syscall(linux.SYSCALLS.pidfd_open, _thread_group(pid), 0)
    try:
        own = linux.syscall(linux.SYSCALLS.pidfd_getfd, handle, fd, 0)
    finally:
        os.close(handle)
    try:
        return socket.socket(fileno=own)
    except OSError:  # no socket
        os.close(own)
        raise


def _ipv4_in(address: bytes) -> bytes:
    """Of an address as the caller wrote it; empty where it is of another kind."""
    family = int.from_bytes(address[:2], "little" if _LITTLE else "big")
    if family == socket.AF_INET:
        return address[4:8]
    return address[20:24] if family == socket.AF_INET6 and address[8:20] == _MAPPED else b""


def _read_memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)


def _write_memory(pid: int, address: int, data: bytes) -> None:
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(data)


def _thread_group(pid: int) -> int:
    """The process of a thread: the kernel names the thread that called."""
    with open(f"/proc/{pid}/status") as handle:
        for line in handle:
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    return pid
