"""Where one object is: its collection, its name and its namespace."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import Object, Resource


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
