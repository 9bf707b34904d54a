"""The questions that the harness itself asks of the cluster's API."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paddlecloud.kube import config, errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import NODES, Object, Resource
from paddlecloud.kube.stdlib import StdlibTransport, drive

from .layout import Layout

_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
_DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
_STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
_OF_TESTS = re.compile(r"[ct]-\d+-\d+")
"""Namespaces that tests make for themselves (`tests/conftest.py`): what is amiss there is their own business."""


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

    def missing(self) -> list[str]:
        """What keeps the cluster from being whole: nodes that are not Ready, engines with fewer pods than they want."""
        nodes = drive(self.client.list(NODES)).items
        found = [f"node {_name(each)} is not Ready" for each in nodes if not _has_condition(each, "Ready")]
        for resource in (_DEPLOYMENTS, _DAEMONSETS, _STATEFULSETS):
            for each in drive(self.client.list(resource)).items:
                if not _OF_TESTS.fullmatch(each["metadata"]["namespace"]):
                    found += _lacking(resource.kind, each)
        return found

    def _condition(self, resource: Resource, name: str, namespace: str | None, wanted: str) -> bool:
        try:
            found: Object = drive(self.client.get(resource, name, namespace))
        except errors.NotFound:
            return False
        return _has_condition(found, wanted)


def _has_condition(found: Object, wanted: str) -> bool:
    conditions = found.get("status", {}).get("conditions", [])
    return any(each["type"] == wanted and each["status"] == "True" for each in conditions)


def _name(found: Object) -> str:
    return str(found["metadata"]["name"])


def _lacking(kind: str, found: Object) -> Iterator[str]:
    status = found.get("status", {})
    wanted = status.get("desiredNumberScheduled", 0) if kind == "DaemonSet" else found["spec"].get("replicas", 1)
    ready = status.get("numberReady" if kind == "DaemonSet" else "readyReplicas", 0)
    if ready < wanted:
        yield f"{kind} {found['metadata']['namespace']}/{_name(found)} has {ready} of {wanted} pods ready"
