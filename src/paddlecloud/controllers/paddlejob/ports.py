"""Which twenty ports a job uses.

A pod with a network of its own always gets the same block, as in paddle-operator. Where pods share the ports of a
machine (`intranet: Host`, or a platform whose pods are processes on one host) two jobs must not meet: each gets a block
of its own below the ephemeral range and below Kubernetes' node ports. The block is chosen from the job's uid, so it
needs no store: it is written into the job's status and read back from there.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection

BASE = 36000
BLOCK = 20
GLOO_OFFSET = 18
"""The gloo rendezvous server of ps-0 listens this far above its own port."""

SHARED_RANGE = range(20000, 30000, BLOCK)


def choose(uid: str, used: Collection[int]) -> int | None:
    """A block no other job uses, or None when all are taken. The same uid and neighbours give the same block."""
    blocks = len(SHARED_RANGE)
    first = zlib.crc32(uid.encode()) % blocks
    for step in range(blocks):
        base = SHARED_RANGE[(first + step) % blocks]
        if base not in used:
            return base
    return None
