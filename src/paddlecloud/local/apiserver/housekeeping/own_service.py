"""The API server as its own pods find it: the Service `kubernetes` in the namespace `default`, and its endpoint.

The endpoint is there twice, as in Kubernetes: as an EndpointSlice, and as Endpoints for clients that know only those.
"""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.kube.worker import Worker
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import Registry
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

NAME, NAMESPACE, PORT = "kubernetes", "default", 443
_LABELS = {"component": "apiserver", "provider": "kubernetes"}
_KINDS = {
    ObjectAddress("/services", NAMESPACE, NAME): "Service",
    ObjectAddress("discovery.k8s.io/endpointslices", NAMESPACE, NAME): "EndpointSlice",
    ObjectAddress("/endpoints", NAMESPACE, NAME): "Endpoints",
}


def objects(*, cluster_ip: str, host: str, port: int) -> list[Object]:
    meta = {"name": NAME, "namespace": NAMESPACE}
    https = {"name": "https", "protocol": "TCP"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**meta, "labels": dict(_LABELS)},
            "spec": {
                "type": "ClusterIP",
                "clusterIP": cluster_ip,
                "ports": [{**https, "port": PORT, "targetPort": port}],
            },
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**meta, "labels": {"kubernetes.io/service-name": NAME}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
            "ports": [{**https, "port": port}],
        },
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**meta, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": host}], "ports": [{**https, "port": port}]}],
        },
    ]


class OwnService:
    """Keeps these objects as they should be: they follow the port, and come back when somebody deletes them."""

    def __init__(self, store: Store, registry: Registry, verbs: Verbs, *, cluster_ip: str) -> None:
        self._registry = registry
        self._verbs = verbs
        self._cluster_ip = cluster_ip
        self._at: tuple[str, int] | None = None
        self._worker: Worker[str] = Worker("the server's own", self._publish)
        store.subscribe(self._observe)

    def serve(self, host: str, port: int) -> None:
        """The API server listens here from now on."""
        self._at = (host, port)
        for kind in _KINDS.values():
            self._worker.add(kind)

    def _observe(self, change: Change) -> None:
        if change.op is Op.DELETE and (kind := _KINDS.get(change.record.address)) is not None:
            self._worker.add(kind)

    async def run(self) -> None:
        await self._worker.run()

    async def _publish(self, kind: str) -> None:
        if self._at is None:
            return
        host, port = self._at
        for obj in objects(cluster_ip=self._cluster_ip, host=host, port=port):
            if obj["kind"] == kind:
                await self._write(obj)

    async def _write(self, obj: Object) -> None:
        group, _, version = obj["apiVersion"].rpartition("/")
        info = self._registry.by_kind(group, version, obj["kind"])
        assert info is not None, f"{obj['kind']} is always served"
        options = WriteOptions(manager="apiserver")

        def refresh(current: Object) -> Object:
            if obj["kind"] == "Service":  # its address stays what it was: pods remember it
                current["spec"]["ports"] = obj["spec"]["ports"]
                return current
            return {**current, **{field: obj[field] for field in ("endpoints", "ports", "subsets") if field in obj}}

        try:
            await self._verbs.update(info, NAMESPACE, NAME, refresh, options=options)
        except errors.NotFound:
            await self._verbs.create(info, obj, namespace=NAMESPACE, options=options)
