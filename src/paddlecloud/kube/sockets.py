"""Settings of sockets that stay open in silence."""

from __future__ import annotations

import socket

KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))  # a dead peer is noticed within a minute


def keep_alive(sock: socket.socket) -> None:
    """A watch can be silent for long; let the kernel notice a peer that vanished without closing."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE:
        if hasattr(socket, option):  # macOS names the first one differently; its default then stays
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
