"""Which collection, which object, and whether the server is the embedded platform of this machine."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from paddlecloud.kube.resource import Object, Resource

MARK = "-paddlecloud."
"""In the version that the embedded API server reports."""


class ObjectRef(NamedTuple):
    """Where one object is; what a watch of it and a question for it need."""

    resource: Resource
    name: str
    namespace: str | None

    @property
    def display(self) -> str:
        """`pod/x`, `deployment.apps/x`: how `-o name` and messages call an object."""
        group = f".{self.resource.group}" if self.resource.group else ""
        return f"{self.resource.kind.lower()}{group}/{self.name}"

    def __str__(self) -> str:
        return f"{self.display} in {self.namespace}" if self.namespace else self.display


def of_object(resource: Resource, obj: Object) -> ObjectRef:
    meta = obj["metadata"]
    return ObjectRef(resource, str(meta["name"]), meta.get("namespace") if resource.namespaced else None)


def local_port(server: str) -> int | None:
    """The port of a server at a loopback address; None for servers elsewhere."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    local = host in ("localhost", "::1") or host.startswith("127.")
    return parts.port if local else None


def is_embedded(server: str, version: Object) -> bool:
    """Both at this machine's own address and one of ours: a tunnel to another cluster has the first alone."""
    return local_port(server) is not None and MARK in str(version.get("gitVersion"))
