"""A custom kind with one of everything: defaults, bounds, keyed lists, columns, status and scale."""

from __future__ import annotations

import copy

from paddlecloud.kube.resource import Object, Resource

from .world import CRDS, Api, ScratchNamespace, eventually

STRING = {"type": "string"}

SCHEMA: Object = {
    "type": "object",
    "description": "A widget of the conformance suite.",
    "properties": {
        "spec": {
            "type": "object",
            "description": "What the widget should be.",
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3, "description": "How large."},
                "colour": {"type": "string", "enum": ["red", "green", "blue"]},
                "code": {"type": "string", "pattern": "^[a-z]{2}-[0-9]+$", "maxLength": 8},
                "replicas": {"type": "integer"},
                "tags": {"type": "array", "items": STRING, "maxItems": 3},
                "flags": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": STRING, "weight": {"type": "integer"}, "maker": STRING},
                    },
                },
                "settings": {"type": "object", "additionalProperties": STRING},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "note": {"type": "string", "nullable": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": STRING,
                "replicas": {"type": "integer"},
                "selector": STRING,
            },
        },
    },
}

COLUMNS: list[Object] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]

SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def definition(group: str, plural: str, kind: str, *, schema: Object = SCHEMA, scope: str = "Namespaced") -> Object:
    """A CRD of one version, with both subresources and the columns above."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": copy.deepcopy(schema)},
        "subresources": {"status": {}, "scale": SCALE},
        "additionalPrinterColumns": copy.deepcopy(COLUMNS),
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": [plural[:3]]}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
    }


def install(api: Api, crd: Object) -> Resource:
    """Create a CRD and wait until its objects can be listed."""
    clusterwide = ScratchNamespace(api, "")
    clusterwide.create(CRDS, crd)
    spec = crd["spec"]
    resource = Resource(
        spec["group"], "v1", spec["names"]["plural"], spec["names"]["kind"], spec["scope"] == "Namespaced"
    )
    eventually(lambda: api.send("GET", resource.path()).status, 200)
    return resource
