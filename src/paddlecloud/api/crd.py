"""CustomResourceDefinitions made from the declarations.

What comes out is plain data in a fixed order, ready for YAML. A CRD stays far below the 256 kB that `kubectl apply`
can keep in an annotation, because pod templates and other objects of Kubernetes are not spelled out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paddlecloud.api.kind import Column, KindDeclaration
from paddlecloud.api.schema import root_schema

Object = dict[str, Any]


def generate(kinds: Iterable[KindDeclaration] | None = None) -> list[Object]:
    """CRDs of everything the embedded platform serves, or of the kinds given.

    For a cluster use `generate(KINDS)`: PodGroup, Queue and Kubeflow's PaddleJob belong to other projects there, and
    installing ours over theirs would break them.
    """
    if kinds is None:
        from paddlecloud.api.catalogue import EMBEDDED_KINDS

        kinds = EMBEDDED_KINDS
    return [definition(kind) for kind in kinds]


def definition(kind: KindDeclaration) -> Object:
    """One CRD."""
    names: Object = {
        "kind": kind.kind,
        "listKind": kind.list_kind,
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": kind.scope,
            "versions": [_version(kind, version) for version in kind.versions],
        },
    }


def _version(kind: KindDeclaration, version: str) -> Object:
    body: Object = {
        "name": version,
        "served": True,
        "storage": version == kind.versions[0],
        "schema": {"openAPIV3Schema": root_schema(kind)},
    }
    subresources: Object = {}
    if kind.status:
        subresources["status"] = {}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": kind.scale.spec_replicas,
            "statusReplicasPath": kind.scale.status_replicas,
            **({"labelSelectorPath": kind.scale.selector} if kind.scale.selector else {}),
        }
    if subresources:
        body["subresources"] = subresources
    if kind.columns:
        body["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    return body


def _column(column: Column) -> Object:
    body: Object = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        body["priority"] = column.priority
    if column.description:
        body["description"] = column.description
    return body
