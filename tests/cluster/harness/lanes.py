"""A second host on this machine, so that two clusters can run at the same time with the same addresses.

A lane is a network namespace and nothing else: a command in it sees this machine's files and processes, an empty
network with a way out through the host, and `PDC_CLUSTER_LANE`, by which its cluster has a folder and cgroups of its
own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import HarnessError
from .node import PRIVATE_FOLDERS

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


@dataclass(frozen=True, slots=True)
class Lane:
    """Where a command runs: on the host itself, or in the network of a lane."""

    number: int

    @property
    def name(self) -> str:
        return f"pdc-lane{self.number}"

    @property
    def prefix(self) -> Sequence[str]:
        # Not `ip netns exec`, which also mounts another /sys, without cgroups.
        return () if self.number == 1 else ("nsenter", f"--net=/run/netns/{self.name}")

    @property
    def environment(self) -> dict[str, str]:
        return {} if self.number == 1 else {"PDC_CLUSTER_LANE": str(self.number)}


@contextmanager
def open_lanes(count: int) -> Iterator[list[Lane]]:
    """The host, and networks beside it for as long as the context is open."""
    lanes = [Lane(number) for number in range(1, count + 1)]
    folders = [Path(folder) for folder in PRIVATE_FOLDERS if not Path(folder).exists()]
    forwarding = FORWARDING.read_text()
    try:
        # Here for all lanes: a cluster that made a mount point removes it, under the mounts of the other one.
        for folder in folders:
            folder.mkdir(parents=True)
        for lane in lanes[1:]:
            _close(lane)
            _open(lane)
        yield lanes
    finally:
        for lane in lanes[1:]:
            _close(lane)
        FORWARDING.write_text(forwarding)
        for folder in folders:
            if not os.listdir(folder):
                folder.rmdir()


def _open(lane: Lane) -> None:
    here, there = _addresses(lane)
    inside = ["nsenter", f"--net=/run/netns/{lane.name}", "ip"]
    for command in (
        ["ip", "netns", "add", lane.name],
        ["ip", "link", "add", lane.name, "type", "veth", "peer", "name", "eth0", "netns", lane.name],
        ["ip", "address", "add", f"{here}/30", "dev", lane.name],
        ["ip", "link", "set", lane.name, "up"],
        [*inside, "link", "set", "lo", "up"],
        [*inside, "address", "add", f"{there}/30", "dev", "eth0"],
        [*inside, "link", "set", "eth0", "up"],
        [*inside, "route", "add", "default", "via", here],
        ["iptables", "-t", "nat", "-A", *_way_out(there)],
    ):
        _run(command)
    FORWARDING.write_text("1")


def _close(lane: Lane) -> None:
    """Also what a killed run left behind; the cable goes with the namespace of its other end."""
    _, there = _addresses(lane)
    for command in (
        ["iptables", "-t", "nat", "-D", *_way_out(there)],
        ["ip", "link", "delete", lane.name],
        ["ip", "netns", "delete", lane.name],
    ):
        subprocess.run(command, capture_output=True, timeout=20)


def _addresses(lane: Lane) -> tuple[str, str]:
    """Of the host and of the lane, on the cable between them; outside of all networks of a cluster."""
    return f"10.202.{lane.number}.1", f"10.202.{lane.number}.2"


def _way_out(address: str) -> list[str]:
    return ["POSTROUTING", "-s", address, "!", "-d", "10.202.0.0/16", "-j", "MASQUERADE"]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    if done.returncode:
        text = f"no second network: `{' '.join(command)}` says {done.stderr.strip()}"
        raise HarnessError(text, reason="NoNetwork")
