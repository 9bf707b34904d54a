"""Ports that stay the same over restarts, of the API server and of services: which to choose when there is none yet.

They lie below NodePorts and below what the kernel gives to outgoing connections, so that hardly anything takes one
while the platform is down.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

RANGE = range(20_000, 30_000)
TRIES = 100
HOST = "127.0.0.1"


def free() -> Iterator[int]:
    """Ports of the range that nobody holds at this moment, in random order; none where all that were tried are held.

    Tried without SO_REUSEPORT, which would bind a port beside another program of the same user.
    """
    for port in random.sample(RANGE, TRIES):
        with socket.socket() as trial:
            try:
                trial.bind((HOST, port))
            except OSError:
                continue  # in use by another program
        yield port
