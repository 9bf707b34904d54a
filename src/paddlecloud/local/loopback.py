"""Which addresses of 127.0.0.0/8 the platform uses: Linux answers for all of them, without privileges or set-up.

Each platform takes a /16 for its Services and one for its pods, chosen by its data directory, so that two platforms on
one machine rarely meet.
"""

from __future__ import annotations

import hashlib
import ipaddress

SERVICES, PODS, NODES = range(32, 64), range(64, 96), range(96, 97)
"""Second octets."""


def network_for(name: str, octets: range) -> ipaddress.IPv4Network:
    """The /16 for a data directory, `127.64.0.0/16` to `127.95.0.0/16` for pods."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return ipaddress.IPv4Network(f"127.{octets[number % len(octets)]}.0.0/16")


def node_address(node: str) -> str:
    """The address of a further virtual node, so that pods on the networks of two nodes can tell them apart."""
    high, low = hashlib.sha256(node.encode()).digest()[:2]
    return f"127.{NODES[0]}.{high}.{low or 1}"
