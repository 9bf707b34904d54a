"""Fields of embedded pods that the API server does not know, found before an object is sent.

CRDs keep pod templates whole, so the server stores a misspelt field of one without a word, and the pods that are made
of it lack the field. The server's own OpenAPI document of core/v1 says which fields a pod has; it is read only for
objects that embed parts of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from paddlecloud.api.names import ROLES
from paddlecloud.cli.failures import CliError
from paddlecloud.cli.objects import schema
from paddlecloud.cli.objects.api import Api
from paddlecloud.cli.objects.schema import Schema
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import PODS, Object

TEMPLATE = ("metadata", "spec")
"""What a pod template has of a pod."""

_OF_CONTAINER = ["resources", "volumeMounts", "env", "envFrom", "readinessProbe", "livenessProbe", "startupProbe"]
_PARTS: dict[tuple[str, str], dict[str, str]] = {
    ("batch.paddlepaddle.org", "PaddleJob"): {f"spec.{role}.template": "" for role in ROLES},
    ("kubeflow.org", "PaddleJob"): {f"spec.paddleReplicaSpecs.{role}.template": "" for role in ("Master", "Worker")},
    ("batch.paddlepaddle.org", "SampleSet"): {
        "spec.nodeAffinity": "spec.affinity.nodeAffinity",
        "spec.tolerations": "spec.tolerations",
    },
    ("serving.paddlepaddle.org", "PaddleService"): {
        **{f"spec.{name}": f"spec.containers.{name}" for name in _OF_CONTAINER},
        **{f"spec.{name}": f"spec.{name}" for name in ("volumes", "imagePullSecrets", "tolerations")},
    },
}
"""By group and kind: which field holds which part of a pod; the empty path is a whole template."""


class Unknown(NamedTuple):
    path: str
    """In the object, as servers write it: `spec.worker.template.spec.containers[0].comand`."""
    meant: str
    """The question for the right word; empty where none is near."""
    next: str
    """The command that shows the fields which are known there."""


def unknown_fields(api: Api, obj: Object) -> list[Unknown]:
    parts = list(_embedded(obj))
    if not parts:
        return []
    try:
        document, remembered = api.core_document()
        found = _check(document, parts)
        if found and remembered:  # the server may have learnt the field since
            found = _check(api.core_document(fresh=True)[0], parts)
    except (ApiError, CliError):
        return []  # a server without the document, or one that refuses to show it, still judges the object itself
    return found


def _embedded(obj: Object) -> Iterator[tuple[str, str, Any]]:
    """(path in the object, path in a pod, value)."""
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    for path, of_pod in _PARTS.get((group, str(obj.get("kind"))), {}).items():
        value: Any = obj
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value:
            yield path, of_pod, value


def _check(document: Schema, parts: list[tuple[str, str, Any]]) -> list[Unknown]:
    found: list[Unknown] = []
    for path, of_pod, value in parts:
        field = schema.descend(document, PODS, of_pod.split(".") if of_pod else [])
        declared = schema.resolve(document, field.schema)
        if not of_pod:
            declared = {"properties": {name: declared["properties"][name] for name in TEMPLATE}}
        found += _unknown(document, declared, value, path, of_pod)
    return found


def _unknown(document: Schema, declared: Schema, value: Any, path: str, of_pod: str) -> Iterator[Unknown]:
    declared = schema.resolve(document, declared)
    if isinstance(value, list) and "items" in declared:
        for index, item in enumerate(value):
            yield from _unknown(document, declared["items"], item, f"{path}[{index}]", of_pod)
    properties = declared.get("properties")
    if not isinstance(value, dict) or not properties or declared.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, inner in value.items():
        if name in properties:
            yield from _unknown(document, properties[name], inner, f"{path}.{name}", f"{of_pod}.{name}".strip("."))
        else:
            known = f"pdc explain {'.'.join(filter(None, ('pod', of_pod)))}"
            yield Unknown(f"{path}.{name}", question(str(name), properties), known)
