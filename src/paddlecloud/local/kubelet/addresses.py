"""An address for every pod, out of 127.0.0.0/8: Linux answers for all of it, without privileges or set-up.

A kubelet takes its own /16, chosen by its data directory, so that two platforms on one machine rarely meet. What is
in use is read from the pod directories at start; an address is given again only after the range was gone through,
because clients remember addresses longer than pods live.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable

FIRST, LAST = 64, 95
"""Second octets for pods; addresses of Services lie elsewhere."""


def network_for(name: str) -> ipaddress.IPv4Network:
    """The /16 for a data directory: `127.64.0.0/16` to `127.95.0.0/16`."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return ipaddress.IPv4Network(f"127.{FIRST + number % (LAST - FIRST + 1)}.0.0/16")


def node_address(node: str) -> str:
    """The address of a further virtual node, so that pods on the networks of two nodes can tell them apart."""
    high, low = hashlib.sha256(node.encode()).digest()[:2]
    return f"127.{LAST + 1}.{high}.{low or 1}"


class AddressesExhausted(Exception):
    """Sixty-five thousand pods on one machine."""


class Addresses:
    def __init__(self, network: ipaddress.IPv4Network, in_use: Iterable[str] = ()) -> None:
        self._first = int(network.network_address) + 1
        self._size = network.num_addresses - 2
        self._used: set[int] = set()
        self._next = 0
        for address in in_use:
            self.reserve(address)

    def reserve(self, address: str) -> None:
        """Take note of an address that a pod of an earlier kubelet has; those of another range are harmless."""
        offset = int(ipaddress.IPv4Address(address)) - self._first
        if 0 <= offset < self._size:
            self._used.add(offset)
            self._next = max(self._next, offset + 1) % self._size

    def allocate(self) -> str:
        for step in range(self._size):
            offset = (self._next + step) % self._size
            if offset not in self._used:
                self._used.add(offset)
                self._next = (offset + 1) % self._size
                return str(ipaddress.IPv4Address(self._first + offset))
        raise AddressesExhausted(f"all {self._size} pod addresses are in use; delete finished pods")

    def release(self, address: str) -> None:
        self._used.discard(int(ipaddress.IPv4Address(address)) - self._first)
