"""The API of Kubeflow Pipelines on the embedded platform: a port of the daemon, and the Service by which pods find it.

It runs in the daemon's process and asks the platform's own API server over HTTPS, with the credentials of the caller:
the same code as on a cluster, and no way around RBAC. The port is kept from start to start, as scripts name it,
unless another program holds it: that one may receive the tokens of scripts, so the port is given up for good.
"""

from __future__ import annotations

import logging

from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.resource import ENDPOINTSLICES, SERVICES, Object, resource_of
from paddlecloud.local import lasting_ports
from paddlecloud.local.apiserver.auth.authentication import service_account
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.privatefiles import write_private
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api.server import PipelinesServer
from paddlecloud.platform import endpoint

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_OWN = "kube-system"
_ADDRESS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", "sessionAffinity")
_RBAC = "rbac.authorization.k8s.io"


def objects() -> list[Object]:
    """What the API itself needs to be found by pods: an account that keeps its Service. And the account of people who
    gave kfp a token with `pdc pipeline login`: it may work in the namespace of pipelines alone.

    The account of the Service is in a namespace where users create no pods: it may write EndpointSlices, which could
    lead the requests of others anywhere.
    """
    meta = {"namespace": names.SYSTEM_NAMESPACE}
    rules = [
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "create", "update"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "create", "update"]},
    ]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**meta, "name": names.USER}},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {**meta, "name": names.USER},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "namespace": names.SYSTEM_NAMESPACE, "name": names.USER}],
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": _OWN, "name": names.SERVICE}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": {**meta, "name": names.SERVICE}, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {**meta, "name": names.SERVICE},
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": names.SERVICE},
            "subjects": [{"kind": "ServiceAccount", "namespace": _OWN, "name": names.SERVICE}],
        },
    ]


class PipelinesApi:
    """Made once the control plane listens."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._data = control_plane.data
        account = service_account(_OWN, names.SERVICE)
        self._client = control_plane.client(account, user_agent="ml-pipeline")
        self._server = PipelinesServer(Config(control_plane.url, ca=control_plane.certs.ca_cert.read_bytes()))
        self.port = 0

    async def start(self) -> None:
        kept = endpoint.kept_pipelines_port(self._data)
        wanted = kept or next(lasting_ports.free(), 0)
        try:
            self.port = await self._server.start(_HOST, wanted)
        except OSError:
            self.port = await self._server.start(_HOST, next(lasting_ports.free(), 0))
            log.warning("port %d of the pipelines' API is taken; from now on it listens on %d", wanted, self.port)
        if self.port != kept:
            write_private(self._data / endpoint.PIPELINES_PORT, f"{self.port}\n".encode())
        try:
            await publish(self._client, self.port)
        except ApiError as error:  # users may change the role or the Service; the port serves without them
            log.warning("pods do not find the pipelines' API: %s", error.message)

    async def stop(self) -> None:
        await self._server.stop()


async def publish(client: Client, port: int) -> None:
    """The Service keeps its address from start to start: pods remember it. Its endpoint follows the port.

    What users of the namespace changed in it is set back. A selector would lead the tokens of callers of all
    namespaces to pods of theirs.
    """
    service, endpoints = service_objects(port)
    try:
        kept = await client.get(SERVICES, names.SERVICE, names.SYSTEM_NAMESPACE)
        if (wanted := restored(kept, service)) != kept:
            await client.update(SERVICES, wanted)
    except NotFound:
        await client.create(SERVICES, service)
    try:
        found = await client.get(ENDPOINTSLICES, names.SERVICE, names.SYSTEM_NAMESPACE)
        await client.update(ENDPOINTSLICES, {**found, "endpoints": endpoints["endpoints"], "ports": endpoints["ports"]})
    except NotFound:
        await client.create(resource_of(endpoints), endpoints)


def restored(kept: Object, service: Object) -> Object:
    """A Service with the address that it has, and all else as it was made."""
    address = {key: value for key, value in kept["spec"].items() if key in _ADDRESS}
    return {**kept, "spec": {**address, **service["spec"]}}


def service_objects(port: int) -> tuple[Object, Object]:
    meta = {"name": names.SERVICE, "namespace": names.SYSTEM_NAMESPACE}
    http = {"name": "http", "protocol": "TCP"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": dict(meta),
        "spec": {
            "type": "ClusterIP",
            "ports": [{**http, "port": names.SERVICE_PORT, "targetPort": names.SERVICE_PORT}],
        },
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**meta, "labels": {"kubernetes.io/service-name": names.SERVICE}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [_HOST], "conditions": {"ready": True}}],
        "ports": [{**http, "port": port}],
    }
    return service, endpoints
