"""Ports of the gateways, held by the control plane: the two that routes share, and one for each route and tag.

They are kept in files, so that URLs stay as they were when the platform comes back. A port that is held cannot be taken
by another user of the machine while gateways start or restart.
"""

from __future__ import annotations

import itertools
import json
import logging
import socket
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from paddlecloud.kube import descriptors
from paddlecloud.local import lasting_ports
from paddlecloud.local.knative.gateway.sockets import reserved

log = logging.getLogger(__name__)

MOST = min(1000, descriptors.share(one_of=4))
"""Ports of single routes and tags held at a time. Each is a descriptor here and in every gateway, and one port less for
all programs of the machine. Those of one namespace have half of them. Routes and tags beyond them are found by name, on
the port that all share."""

SHARED = ("port", "port-h2c")
"""Files with the ports that routes share, for HTTP/1.1 and for HTTP/2."""
OWN = "ports"
"""File with the ports of single routes, as JSON."""


class Reservations:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shared: list[socket.socket] = []
        self._own: dict[str, socket.socket] = {}
        self._of_namespace: Counter[str] = Counter()
        self._ports: dict[str, int] = {}
        """Of single routes and tags by `namespace/label`."""

    @property
    def ports(self) -> Mapping[str, int]:
        return self._ports

    def take(self) -> tuple[int, int]:
        """Hold the ports of last time, or others for those in use by now. Returns the two that routes share."""
        for name in SHARED:
            file = self._folder / name
            self._shared.append(_reserve(_recorded(file)))
            file.write_text(str(_port(self._shared[-1])))
        found = _recorded(self._folder / OWN)
        for label, port in found.items() if isinstance(found, dict) else ():
            self._hold(str(label), port)
        self._record()
        http1, http2 = map(_port, self._shared)
        return http1, http2

    def hold(self, labels: Collection[str]) -> dict[str, int]:
        """The ports of these routes and tags, reserved now for those that have none; some get none where all are given
        out."""
        fresh = [label for label in labels if label not in self._ports]
        for label in fresh:
            self._hold(label, 0)
        if any(label in self._ports for label in fresh):
            self._record()
        return {label: self._ports[label] for label in labels if label in self._ports}

    def release(self, labels: Collection[str]) -> None:
        gone = [label for label in labels if label in self._ports]
        for label in gone:
            self._own.pop(label).close()
            del self._ports[label]
            self._of_namespace[_namespace(label)] -= 1
        if gone:
            self._record()

    def close(self) -> None:
        for sock in (*self._shared, *self._own.values()):
            sock.close()

    def _hold(self, label: str, port: object) -> None:
        if len(self._ports) >= MOST or self._of_namespace[_namespace(label)] >= MOST // 2:
            return
        try:
            sock = self._own[label] = _reserve(port)
        except OSError as error:
            log.warning("no port for %s alone: %s", label, error)
            return
        self._ports[label] = _port(sock)
        self._of_namespace[_namespace(label)] += 1

    def _record(self) -> None:
        fresh = self._folder / f"{OWN}.new"
        fresh.write_text(json.dumps(self._ports))
        fresh.replace(self._folder / OWN)


def _namespace(label: str) -> str:
    return label.partition("/")[0]


def _recorded(file: Path) -> object:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def _reserve(port: object) -> socket.socket:
    """The port of last time; else one that hardly anything takes before the next start, or any where all are in use."""
    last = [port] if isinstance(port, int) and port else []
    for one in itertools.chain(last, lasting_ports.free()):
        try:
            return reserved(one)
        except (OSError, OverflowError):
            continue  # in use by now, or no port at all: the file can be edited
    return reserved(0)


def _port(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])
