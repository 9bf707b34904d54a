"""Ports below 1024 for users who may not have them: another port stands in, at the same address.

Only root may listen on port 80 of a machine, unless configured otherwise. Among pods that need not matter: where a low
port of a pod or Service is listened on, it is listened on 64,000 higher, and connections to it go there too:
pods because `netguard` sees their calls, the proxy, probes and port-forward because they ask here. Only programs
outside of pods have to know. Standard library only: the shim imports this.
"""

from __future__ import annotations

import errno
import functools
import socket

SHIFT = 64_000  # above the ports that the kernel gives to clients
NETWORKS = range(32, 97)
"""Second octets of the loopback addresses that are ours (`loopback`). Elsewhere nobody listens for us."""
FIX = "sudo sysctl -w net.ipv4.ip_unprivileged_port_start=0"
_SETTING = "/proc/sys/net/ipv4/ip_unprivileged_port_start"


@functools.cache
def lowest() -> int:
    """The lowest port that this process may listen on. Tried, since capabilities of a user namespace do not count."""
    try:
        with open(_SETTING) as handle:
            start = int(handle.read())
    except (OSError, ValueError):
        start = 1024
    if start <= 1:
        return 1
    with socket.socket() as trial:
        try:
            trial.bind(("127.0.0.1", start - 1))
        except OSError as error:
            return start if error.errno == errno.EACCES else 1
    return 1


def used_for(ip: str, port: int) -> int:
    """The port on which what is called `ip:port` is really listened on."""
    try:
        return stand_in(socket.inet_aton(ip), port, lowest())
    except OSError:
        return port  # a name, or an address of IPv6: none of ours


def stand_in(ip: bytes, port: int, lowest: int) -> int:
    return port + SHIFT if is_ours(ip) and 0 < port < lowest else port


def is_ours(ip: bytes) -> bool:
    """Whether it is an address of a pod, a Service or a further node."""
    return len(ip) == 4 and ip[0] == 127 and ip[1] in NETWORKS
