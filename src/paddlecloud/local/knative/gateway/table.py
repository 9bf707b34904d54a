"""Where requests go: ports, hosts and paths to revisions by weight, as the control plane last said.

A route has its own port, where no Host is needed; on the port that all routes share it is found by Host or path.

A route's shares are given out in a sequence that keeps to them exactly in the long run and nearly so in the short: of
any hundred requests at 50 %, 49 to 51 go either way.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from paddlecloud.local.knative.gateway.http1 import RequestHead
from paddlecloud.local.knative.gateway.revisions import Revision

if TYPE_CHECKING:
    from paddlecloud.local.knative.gateway.client import Client

GOLDEN = 0.6180339887498949
LOCAL = frozenset(("localhost", "127.0.0.1", "[::1]"))
"""Hosts that name this machine and no service: on a route's own port they mean that route, on the shared one the path
begins with `/namespace/name`. Any other host must be that of a route: otherwise a page of the internet whose name is
made to resolve to this machine could read what a service answers (DNS rebinding)."""

HOST, PATH, REVISION, PORT, H2C_PORT = "host:", "path:", "rev:", "port:", "port-h2c:"
"""What an entry is of. `H2C_PORT` is a route's own port where it is Envoy that listens."""
Found = tuple["Revision | None", RequestHead]


class Split:
    """The targets of one route."""

    __slots__ = ("_bounds", "_only", "_step")

    def __init__(self, targets: Iterable[tuple[str, int]], offset: float) -> None:
        shares = [(revision, share) for revision, share in targets if share > 0]
        total = sum(share for _, share in shares)
        ends = itertools.accumulate(share for _, share in shares)
        self._bounds = [(end / total, revision) for end, (revision, _) in zip(ends, shares, strict=True)]
        self._only = shares[0][0] if len(shares) == 1 else None
        self._step = offset

    def next(self) -> str | None:
        if self._only is not None:
            return self._only
        self._step = (self._step + GOLDEN) % 1.0
        for end, revision in self._bounds:
            if self._step < end:
                return revision
        return self._bounds[-1][1] if self._bounds else None


class Table:
    """All a gateway process knows. `wake` is called for a revision that has requests and no pods. No more than `most`
    clients are connected at a time."""

    def __init__(
        self, *, now: Callable[[], float], wake: Callable[[str], None], offset: float = 0.0, most: int = sys.maxsize
    ) -> None:
        self.now = now
        self.clients: dict[Client, None] = {}
        """In the order of their last answer, or of their connection."""
        self._most = most
        self.revisions: dict[str, Revision] = {}
        self._wake = wake
        self._offset = offset
        self._splits: dict[str, dict[str, Split]] = {HOST: {}, PATH: {}, PORT: {}, H2C_PORT: {}}
        self._hosts, self._paths, self._ports = (self._splits[prefix] for prefix in (HOST, PATH, PORT))
        self._empty: asyncio.Future[None] | None = None

    @property
    def ports(self) -> set[int]:
        """Those of single routes."""
        return {int(port) for port in self._ports}

    def find(self, head: RequestHead, port: int | None = None) -> Found | None:
        """The revision of a request and its head as the pod shall see it; no revision for a question about health.
        `port` is the route's own that it came to, if it came to one."""
        split = self._hosts.get(head.host)
        if split is None and port is not None and head.host in LOCAL:
            split = self._ports.get(str(port))
        if split is None:
            if head.host not in LOCAL or port is not None:
                return None
            if head.target == b"/healthz":
                return None, head
            path = self._path(head)
            if path is None:
                return None
            split, head = path
        key = split.next()
        return (self._revision(key), head) if key is not None else None

    def _path(self, head: RequestHead) -> tuple[Split, RequestHead] | None:
        parts = head.target.split(b"/", 3)
        if len(parts) < 3:
            return None
        name, mark, query = parts[2].partition(b"?")
        split = self._paths.get(f"{parts[1].decode('ascii')}/{name.decode('ascii')}")
        if split is None:
            return None
        rest = b"/" + parts[3] if len(parts) > 3 else b"/" + mark + query
        return split, head._replace(target=rest)

    def _revision(self, key: str) -> Revision:
        found = self.revisions.get(key)
        if found is None:
            found = self.revisions[key] = Revision(key, clock=self.now, wake=self._wake)
        return found

    def names(self) -> list[str]:
        """Everything there is an entry of."""
        kept: dict[str, Iterable[str]] = {**self._splits, REVISION: self.revisions}
        return [prefix + name for prefix, entries in kept.items() for name in entries]

    def apply(self, entries: dict[str, Any]) -> None:
        """Take changes; None removes what was there."""
        for name, value in entries.items():
            if name.startswith(REVISION):
                self._apply_revision(name.removeprefix(REVISION), value)
                continue
            prefix = next((prefix for prefix in self._splits if name.startswith(prefix)), "")
            splits = self._splits.get(prefix, {})  # an entry of a later release is none of ours
            if value is None:
                splits.pop(name.removeprefix(prefix), None)
            else:
                splits[name.removeprefix(prefix)] = Split([(r, s) for r, s in value], self._offset)

    def _apply_revision(self, key: str, value: dict[str, Any] | None) -> None:
        if value is None:
            gone = self.revisions.pop(key, None)
            if gone is not None:
                gone.abandon()
        else:
            self._revision(key).update(value)

    def sweep(self) -> None:
        """End what has taken too long; called about once a second."""
        now = self.now()
        for client in [client for client in self.clients if client.deadline <= now]:
            client.expire()
        for revision in self.revisions.values():
            revision.sweep(now)

    def report(self) -> dict[str, Any]:
        now = self.now()
        found = ((key, revision.stats.report(now)) for key, revision in self.revisions.items())
        return {key: report for key, report in found if report is not None}

    async def drain(self, timeout: float) -> None:
        """Until the last client has its answer."""
        for client in list(self.clients):
            client.leave()
        if self.clients:
            self._empty = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._empty}, timeout=timeout)

    def came(self, client: Client) -> None:
        """A client has connected. Of too many the one that has been idle for longest is cut off; else the newcomer."""
        self.clients[client] = None
        if len(self.clients) > self._most:
            excess = next((each for each in self.clients if each.is_idle), client)
            del self.clients[excess]
            excess.transport.abort()

    def answered(self, client: Client) -> None:
        if client in self.clients:
            self.clients[client] = self.clients.pop(client)

    def left(self, client: Client) -> None:
        self.clients.pop(client, None)
        if self._empty is not None and not self.clients and not self._empty.done():
            self._empty.set_result(None)
