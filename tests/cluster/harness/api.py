"""The questions that the harness itself asks of the cluster's API."""

from __future__ import annotations

from paddlecloud.kube import config, errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import NODES, Object, Resource
from paddlecloud.kube.stdlib import StdlibTransport, drive

from .layout import Layout

_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


class ClusterApi:
    def __init__(self, layout: Layout) -> None:
        self.client = Client(StdlibTransport(config.load(str(layout.kubeconfig))))

    def close(self) -> None:
        drive(self.client.close())

    def ready(self) -> bool:
        try:
            return drive(self.client.raw("GET", "/readyz")).body == b"ok"
        except errors.ApiError:
            return False

    def node_ready(self, name: str) -> bool:
        return self._condition(NODES, name, None, "Ready")

    def deployment_ready(self, namespace: str, name: str) -> bool:
        return self._condition(_DEPLOYMENTS, name, namespace, "Available")

    def _condition(self, resource: Resource, name: str, namespace: str | None, wanted: str) -> bool:
        try:
            found: Object = drive(self.client.get(resource, name, namespace))
        except errors.NotFound:
            return False
        conditions = found.get("status", {}).get("conditions", [])
        return any(each["type"] == wanted and each["status"] == "True" for each in conditions)
