"""Where servers of tests may listen."""

from __future__ import annotations

import random
import socket
from pathlib import Path


def free_port(host: str = "127.0.0.1") -> int:
    (port,) = free_ports(host, 1)
    return port


def free_ports(host: str, count: int) -> list[int]:
    """Ports for servers: none that the kernel might give to an outgoing connection before the server has it."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    for port in random.sample(range(first - 20_000, first), 1_000):
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue  # somebody has it
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"{host} has no {count} free ports below {first}")
