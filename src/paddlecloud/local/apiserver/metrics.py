"""The API server's metrics for Prometheus at `/metrics`, under the names Kubernetes uses where it has one.

Label values come from the registry of kinds, never from a request as it was sent: a client cannot make memory grow by
asking for things that do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from paddlecloud.kube.metrics import Labels, Registry
from paddlecloud.local.apiserver.auth.audit import AuditLog
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.store import Store

if TYPE_CHECKING:
    from paddlecloud.local.apiserver.http.request import RequestInfo

_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
    "post": "POST",
    "put": "PUT",
}
_LABELS = ("verb", "group", "version", "resource", "subresource")


class ApiMetrics:
    def __init__(self, store: Store, audit: AuditLog, registry: Registry | None = None) -> None:
        self.registry = registry or Registry()

        def gauge(name: str, help: str, read: Callable[[], int]) -> None:
            self.registry.gauge(name, help, source=lambda: {(): float(read())})

        self._requests = self.registry.counter("apiserver_request_total", "Requests answered", (*_LABELS, "code"))
        self._seconds = self.registry.histogram(
            "apiserver_request_duration_seconds", "Time to the answer, or to the first byte of a stream", _LABELS
        )
        gauge("apiserver_storage_revision", "Newest committed revision", lambda: store.revision)
        gauge("apiserver_storage_compacted_revision", "History up to here is forgotten", lambda: store.compacted)
        gauge("apiserver_registered_watchers", "Open watches", lambda: store.watchers)
        gauge("apiserver_watchers_dropped", "Watches cut off for being slow", lambda: store.dropped_watchers)
        gauge("apiserver_audit_dropped", "Audit entries that could not be written", lambda: audit.dropped)
        self.registry.gauge(
            "apiserver_storage_objects", "Objects stored", ("resource",), source=lambda: _objects(store)
        )

    def observe(self, info: RequestInfo | None, kind: KindInfo | None, code: int, seconds: float) -> None:
        """Count one answered request. `kind` is None for what is not an object of this server."""
        if info is None:
            labels = ("", "", "", "", "")
        elif kind is None:
            labels = (_VERBS.get(info.verb, ""), "", "", "", "")
        else:
            subresource = info.subresource if info.subresource in kind.subresources else ""
            resource = kind.resource
            labels = (_VERBS.get(info.verb, ""), resource.group, resource.version, resource.plural, subresource)
        self._requests.inc(*labels, str(code))
        self._seconds.observe(seconds, *labels)


def _objects(store: Store) -> dict[Labels, float]:
    counts: dict[Labels, float] = {}
    for collection in store.collections():
        group, _, plural = collection.partition("/")
        counts[f"{plural}.{group}" if group else plural,] = float(store.count(collection))
    return counts
