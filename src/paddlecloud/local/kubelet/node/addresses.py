"""An address for every pod, out of the platform's network for pods (`local.loopback`).

What is in use is read from the pod directories at start; an address is given again only after the range was gone
through, because clients remember addresses longer than pods live.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


class AddressesExhausted(Exception):
    """Sixty-five thousand pods on one machine."""


class Addresses:
    def __init__(self, network: ipaddress.IPv4Network, in_use: Iterable[str] = (), *, start: int = 0) -> None:
        """The first address given out is that at `start`."""
        self._first = int(network.network_address) + 1
        self._size = network.num_addresses - 2
        self._used: set[int] = set()
        self._next = start
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
