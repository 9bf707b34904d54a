"""A kopf operator on PaddleJobs: notes each of them in a ConfigMap that the job owns, and writes down its deletion."""

from __future__ import annotations

import os
from typing import Any

import kopf
import pykube

NAMESPACE = os.environ["OPERATOR_NAMESPACE"]
api = pykube.HTTPClient(pykube.KubeConfig.from_file(os.environ["KUBECONFIG"]))


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@kopf.on.create("batch.paddlepaddle.org", "v1", "paddlejobs")
def noted(name: str, spec: kopf.Spec, **_: Any) -> None:
    body = config_map(f"note-{name}", replicas=str(spec["worker"]["replicas"]))
    kopf.adopt(body)
    pykube.ConfigMap(api, body).create()


@kopf.on.field("batch.paddlepaddle.org", "v1", "paddlejobs", field="spec.suspend")
def resumed(name: str, old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    if old and not new:
        patch.metadata.annotations["example.org/resumed"] = "yes"


@kopf.on.delete("batch.paddlepaddle.org", "v1", "paddlejobs")
def ended(name: str, **_: Any) -> None:
    pykube.ConfigMap(api, config_map(f"ended-{name}")).create()
