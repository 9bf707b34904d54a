"""Which backend a connection goes to: in turn, or the one its client had before. Keeps no connection itself."""

from __future__ import annotations

from collections import OrderedDict

from paddlecloud.local.proxy.routes import Route, SocketAddress

REMEMBERED = 4096  # clients; the least recently used is dropped first


class Balancer:
    def __init__(self, route: Route) -> None:
        self.route = route
        self._turn = 0
        self._clients: OrderedDict[str, tuple[SocketAddress, float]] = OrderedDict()

    def update(self, route: Route) -> None:
        """Clients keep their backend if it is still there; turns go on."""
        self.route = route
        known = set(route.backends)
        for client in [client for client, (backend, _) in self._clients.items() if backend not in known]:
            del self._clients[client]

    def candidates(self, client: str, now: float) -> list[SocketAddress]:
        """All backends in the order they should be tried."""
        backends = self.route.backends
        kept = self._kept(client, now)
        start = backends.index(kept) if kept is not None else self._turn % len(backends)
        if kept is None:
            self._turn += 1
        return [*backends[start:], *backends[:start]]

    def connected(self, client: str, backend: SocketAddress, now: float) -> None:
        """The client's connection stands: the next one goes there too, where that is asked for."""
        if self.route.affinity:
            self._clients[client] = (backend, now)
            self._clients.move_to_end(client)
            if len(self._clients) > REMEMBERED:
                self._clients.popitem(last=False)

    def _kept(self, client: str, now: float) -> SocketAddress | None:
        backend, last = self._clients.get(client, (None, 0.0))
        if backend is None or now - last > self.route.affinity or backend not in self.route.backends:
            return None
        return backend
