"""Experiments, pipelines and their versions as ConfigMaps. Pure: objects in, objects out.

The name of the ConfigMap is derived from what must be unique (an experiment's name in its namespace), so that the API
server itself refuses the second one.
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.pipelines import names

Kind = Literal["experiment", "pipeline", "version"]
PACKAGE = "package"
"""The key of a version's ConfigMap under which its file is."""
MAX_PACKAGE = 900_000
"""Bytes of a stored file: Kubernetes takes 1 MiB for a ConfigMap with its metadata."""
MAX_NAME = 256
MAX_DESCRIPTION = 16 * 1024


class Record(NamedTuple):
    id: str
    name: str
    namespace: str
    description: str
    created_at: str
    archived: bool
    object_name: str
    uid: str
    parent_id: str
    """Of a version: its pipeline."""
    default_version: str
    """Of a pipeline: the version that runs when none is named; empty for the newest."""
    revision: int = 0
    """The resourceVersion, which tells apart what was created within one second."""

    @property
    def row(self) -> dict[str, object]:
        """For filters and sorting."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "created_at": parse_rfc3339(self.created_at),
            "storage_state": "ARCHIVED" if self.archived else "AVAILABLE",
        }


FIELDS = ("created_at", "name", "id", "description", "storage_state")


def object_name(kind: Kind, *unique: str) -> str:
    digest = hashlib.sha256("\0".join(unique).encode()).hexdigest()
    return f"kfp-{kind}-{digest[:20]}"


def selector(kind: Kind, **labels: str) -> str:
    """Of all ConfigMaps of a kind; `id` and `parent` narrow it."""
    keys = {"id": names.ID, "parent": names.PIPELINE_ID}
    return ",".join([f"{names.KIND}={kind}", *(f"{keys[key]}={value}" for key, value in labels.items())])


def config_map(
    kind: Kind, own_id: str, name: str, namespace: str, *, description: str = "", parent: Record | None = None
) -> Object:
    labels = {names.KIND: kind, names.ID: own_id}
    meta: Object = {
        "name": object_name(kind, *([parent.id] if parent else []), name),
        "namespace": namespace,
        "labels": labels,
        "annotations": {names.DISPLAY_NAME: name, **({names.DESCRIPTION: description} if description else {})},
    }
    if parent is not None:
        labels[names.PIPELINE_ID] = parent.id
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": parent.object_name, "uid": parent.uid}
        meta["ownerReferences"] = [owner]  # versions go with their pipeline
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def of_config_map(obj: Object) -> Record:
    meta = obj["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    return Record(
        id=labels.get(names.ID, ""),
        name=annotations.get(names.DISPLAY_NAME, meta["name"]),
        namespace=meta["namespace"],
        description=annotations.get(names.DESCRIPTION, ""),
        created_at=meta["creationTimestamp"],
        archived=labels.get(names.STORAGE_STATE) == "ARCHIVED",
        object_name=meta["name"],
        uid=meta["uid"],
        parent_id=labels.get(names.PIPELINE_ID, ""),
        default_version=annotations.get(names.DEFAULT_VERSION, ""),
        revision=int(meta.get("resourceVersion") or 0),
    )
