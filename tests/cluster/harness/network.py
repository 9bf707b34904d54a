"""How host, control machine and nodes reach each other: one bridge, one cable each, static routes.

The bridge lies on the control machine, so that every interface but the host's end of its own cable goes when the
machines go. The kernel removes that one with its other end.
"""

from __future__ import annotations

import ipaddress
import subprocess
import time

from .errors import HarnessError
from .layout import (
    CONTROL_ADDRESS,
    HOST_ADDRESS,
    HOST_LINK,
    MACHINE_NETWORK,
    MOST_NODES,
    POD_NETWORK,
    SERVICE_NETWORK,
    Node,
)
from .machine import Machine

_BRIDGE = "machines"
_BRIDGE_MAC = "02:00:0a:c9:00:01"  # fixed: a bridge without one changes it with its ports, and neighbours lose it


def connect_control(control: Machine) -> None:
    """The bridge, and the cable from the host to it."""
    _ip(f"link add {HOST_LINK} type veth peer name host netns {control.holder}")
    lines = [
        "link set lo up",
        f"link add {_BRIDGE} address {_BRIDGE_MAC} type bridge",
        f"addr add {CONTROL_ADDRESS}/24 dev {_BRIDGE}",
        f"link set {_BRIDGE} up",
        f"link set host master {_BRIDGE} up",
        *(f"route add {route}" for route in pod_routes()),
    ]
    control.run(["ip", "-batch", "-"], input="\n".join(lines))
    control.script(["sysctl -qw net.ipv4.ip_forward=1"])
    _ip(f"addr add {HOST_ADDRESS}/24 dev {HOST_LINK}", f"link set {HOST_LINK} up")
    _ip(f"route add {SERVICE_NETWORK} via {Node(1).address}", *(f"route add {route}" for route in pod_routes()))


def connect_node(node: Node, machine: Machine, control: Machine) -> None:
    port = f"to-{node.name}"
    _ip(f"link add {port} netns {control.holder} type veth peer name eth0 netns {machine.holder}")
    control.run(["ip", "link", "set", port, "master", _BRIDGE, "up"])
    lines = [
        "link set lo up",
        f"addr add {node.address}/24 dev eth0",
        "link set eth0 up",
        f"route add default via {CONTROL_ADDRESS}",
        *(f"route add {route}" for route in pod_routes(without=node)),
    ]
    machine.run(["ip", "-batch", "-"], input="\n".join(lines))
    machine.script(["sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1"])


def pod_routes(*, without: Node | None = None) -> list[str]:
    """Where each node's pods are, for all nodes there may ever be."""
    nodes = [Node(number) for number in range(1, MOST_NODES + 1)]
    return [f"{node.pods} via {node.address}" for node in nodes if node != without]


def disconnect_host() -> None:
    """Remove the host's end of the cable, if the kernel has not done so yet."""
    deadline = time.monotonic() + 10
    while has_link():
        subprocess.run(["ip", "link", "delete", HOST_LINK], capture_output=True, timeout=10)
        if time.monotonic() > deadline:
            raise HarnessError(
                f"interface {HOST_LINK} cannot be removed: try `ip link delete {HOST_LINK}`", reason="LinkBusy"
            )
        time.sleep(0.02)


def has_link() -> bool:
    return subprocess.run(["ip", "link", "show", HOST_LINK], capture_output=True, timeout=10).returncode == 0


def clashing_routes(routes: str | None = None) -> list[str]:
    """Routes of the host into networks of the cluster. A wider one, such as a VPN's, does no harm: ours win over it."""
    if routes is None:
        shown = subprocess.run(["ip", "-4", "route"], capture_output=True, text=True, check=True, timeout=10)
        routes = shown.stdout
    ours = [ipaddress.IPv4Network(each) for each in (MACHINE_NETWORK, POD_NETWORK, SERVICE_NETWORK)]
    lines = [line.strip() for line in routes.splitlines() if f"dev {HOST_LINK}" not in line]
    return [line for line in lines if any(_destination(line).subnet_of(network) for network in ours)]


def _destination(route: str) -> ipaddress.IPv4Network:
    """`blackhole 10.1.0.0/16`, `10.1.0.0/16 via …`, `default via …`."""
    for word in route.split()[:2]:
        try:
            return ipaddress.IPv4Network(word)
        except ValueError:
            continue  # a route's type, or `default`
    return ipaddress.IPv4Network("0.0.0.0/0")


def _ip(*lines: str) -> None:
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), capture_output=True, text=True, timeout=10)
    if done.returncode != 0:
        raise HarnessError(f"the network of the cluster cannot be set up: {done.stderr.strip()}", reason="NoNetwork")
