"""Servers of the daemon that scripts and pods call: a port that is kept from start to start, and a Service.

The port is kept as scripts name it, unless another program holds it: that one may receive the tokens of scripts, so
the port is given up for good. The Service keeps its address too: pods remember it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.resource import ENDPOINTSLICES, SERVICES, Object, resource_of
from paddlecloud.kube.server.process import ListeningServer
from paddlecloud.local import lasting_ports
from paddlecloud.local.privatefiles import write_private
from paddlecloud.platform import endpoint

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_ADDRESS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", "sessionAffinity")
_RBAC = "rbac.authorization.k8s.io"


class PublishedService(NamedTuple):
    name: str
    namespace: str
    port: int
    """Of the Service; that of the server is another."""
    what: str
    """For messages."""


def account_objects(service: PublishedService, account_namespace: str, *more: Object) -> list[Object]:
    """An account that keeps the Service, in a namespace where users create no pods: it may write EndpointSlices, which
    could lead the requests of others anywhere."""
    meta = {"namespace": service.namespace, "name": service.name}
    rules = [
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "create", "update"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "create", "update"]},
        *more,
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"namespace": account_namespace, "name": service.name},
        },
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": dict(meta), "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": dict(meta),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": service.name},
            "subjects": [{"kind": "ServiceAccount", "namespace": account_namespace, "name": service.name}],
        },
    ]


class PublishedServer:
    """`client` has the account that keeps the Service; `kept` is the name of the file with the port."""

    def __init__(
        self, server: ListeningServer, client: Client, service: PublishedService, *, data: Path, kept: str
    ) -> None:
        self._server, self._client, self._service = server, client, service
        self._data, self._kept = data, kept
        self.port = 0

    async def start(self) -> None:
        kept = endpoint.kept_number(self._data, self._kept)
        wanted = kept or next(lasting_ports.free(), 0)
        try:
            self.port = await self._server.start(_HOST, wanted)
        except OSError:
            self.port = await self._server.start(_HOST, next(lasting_ports.free(), 0))
            log.warning("port %d of %s is taken; from now on it listens on %d", wanted, self._service.what, self.port)
        if self.port != kept:
            write_private(self._data / self._kept, f"{self.port}\n".encode())
        try:
            await publish(self._client, self._service, self.port)
        except ApiError as error:  # users may change the role or the Service; the port serves without them
            log.warning("pods do not find %s: %s", self._service.what, error.message)

    async def stop(self) -> None:
        await self._server.stop()


async def publish(client: Client, of: PublishedService, port: int) -> None:
    """Its endpoint follows the port. What users of the namespace changed in the Service is set back: a selector would
    lead the tokens of callers of all namespaces to pods of theirs."""
    service, endpoints = service_objects(of, port)
    try:
        kept = await client.get(SERVICES, of.name, of.namespace)
        if (wanted := restored(kept, service)) != kept:
            await client.update(SERVICES, wanted)
    except NotFound:
        await client.create(SERVICES, service)
    try:
        found = await client.get(ENDPOINTSLICES, of.name, of.namespace)
        await client.update(ENDPOINTSLICES, {**found, "endpoints": endpoints["endpoints"], "ports": endpoints["ports"]})
    except NotFound:
        await client.create(resource_of(endpoints), endpoints)


def restored(kept: Object, service: Object) -> Object:
    """A Service with the address that it has, and all else as it was made."""
    address = {key: value for key, value in kept["spec"].items() if key in _ADDRESS}
    return {**kept, "spec": {**address, **service["spec"]}}


def service_objects(of: PublishedService, port: int) -> tuple[Object, Object]:
    meta = {"name": of.name, "namespace": of.namespace}
    http = {"name": "http", "protocol": "TCP"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": dict(meta),
        "spec": {"type": "ClusterIP", "ports": [{**http, "port": of.port, "targetPort": of.port}]},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**meta, "labels": {"kubernetes.io/service-name": of.name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [_HOST], "conditions": {"ready": True}}],
        "ports": [{**http, "port": port}],
    }
    return service, endpoints
