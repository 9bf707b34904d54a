"""What promotion and withdrawal of a canary change in the spec of a PaddleService. Pure."""

from __future__ import annotations

from paddlecloud.kube.resource import Object

WITHDRAWAL: Object = {"canary": None, "canaryTrafficPercent": None}


def promotion(service: Object, canary: Object) -> Object:
    return {**as_default(service, canary), **WITHDRAWAL}


def as_default(service: Object, endpoint: Object) -> Object:
    """The fields of the spec that make it the default. `spec.model` where the spec has that: the file that the service
    was made from writes it, and applies as it stands later on."""
    present = service.get("spec") or {}
    if present.get("model") and not present.get("default") and endpoint.keys() == {"model"}:
        return {"model": endpoint["model"]}
    return {"default": endpoint, "model": None}
