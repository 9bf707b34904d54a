"""Which addresses of 127.0.0.0/8 the platform uses: Linux answers for all of them, without privileges or set-up.

Each platform takes a /16 for its Services and one for its pods, chosen by its data directory, and begins to give out
addresses somewhere in it: two platforms on one machine may share a network, but rarely an address.
"""

from __future__ import annotations

import hashlib
import ipaddress

SERVICES, PODS, NODES = range(32, 64), range(64, 96), range(96, 97)
"""Second octets."""
BLOCK = 64
"""Addresses from one possible start to the next."""


def network_for(name: str, octets: range) -> ipaddress.IPv4Network:
    """The /16 for a data directory, `127.64.0.0/16` to `127.95.0.0/16` for pods."""
    return ipaddress.IPv4Network(f"127.{octets[_number(name, 0) % len(octets)]}.0.0/16")


def start_in(network: ipaddress.IPv4Network, name: str) -> int:
    """The offset in its network at which a data directory's platform begins: the start of one of its blocks."""
    blocks = max(1, network.num_addresses // BLOCK)
    return _number(name, 1) % blocks * BLOCK


def _number(name: str, which: int) -> int:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[4 * which : 4 * which + 4], "big")


def node_address(node: str) -> str:
    """The address of a further virtual node, so that pods on the networks of two nodes have different addresses."""
    high, low = hashlib.sha256(node.encode()).digest()[:2]
    return f"127.{NODES[0]}.{high}.{low or 1}"
