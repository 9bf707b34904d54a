"""The scale subresource: `autoscaling/v1` Scale over whatever fields a kind names for replicas and selector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.http import negotiation
from paddlecloud.local.apiserver.http.options import patcher, write_options
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import KindInfo, ScalePaths


async def handle(verbs: Verbs, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
    paths = kind.scale
    assert paths is not None, "the caller checked that the kind scales"
    if info.verb == "get":
        return Response(body=negotiation.encode(scale_of(verbs.get(kind, info.namespace, info.name).object, paths)))
    if info.verb not in ("update", "patch"):
        raise errors.MethodNotAllowed(f"{info.verb} is not supported on {info.resource}/scale")
    options = write_options(request)
    if info.verb == "update":
        change = _replacement(negotiation.read_object(request.body, request.header("content-type")))
    else:
        media = negotiation.media_type(request.header("content-type"))
        if media == negotiation.STRATEGIC_PATCH and not kind.custom:
            media = negotiation.MERGE_PATCH  # Scale has no lists: both merge alike
        change = patcher(media, negotiation.read_json(request.body), kind)

    def mutate(obj: Object) -> Object:
        desired = change(scale_of(obj, paths))
        version = desired.get("metadata", {}).get("resourceVersion")
        if version:
            obj["metadata"]["resourceVersion"] = version
        replicas = desired.get("spec", {}).get("replicas", 0)
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            raise errors.invalid(
                "Scale",
                info.name,
                [("spec.replicas", "FieldValueInvalid", f"Invalid value: {replicas!r}: must be a whole number ≥ 0")],
                group="autoscaling",
            )
        put_at(obj, paths.spec_replicas, replicas)
        return obj

    updated = await verbs.update(kind, info.namespace, info.name, mutate, options=options)
    return Response(body=negotiation.encode(scale_of(updated, paths)))


def _replacement(wanted: Object) -> Callable[[Object], Object]:
    return lambda _: wanted


def scale_of(obj: Object, paths: ScalePaths) -> Object:
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = value_at(obj, paths.selector) if paths.selector else None
    if isinstance(selector, dict):
        selector = str(LabelSelector.of_workload(obj))
    status = {"replicas": value_at(obj, paths.status_replicas) or 0}
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": value_at(obj, paths.spec_replicas) or 0},
        "status": status,
    }


def value_at(obj: Object, path: str) -> Any:
    value: Any = obj
    for part in path.lstrip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def put_at(obj: Object, path: str, value: Any) -> None:
    *parents, last = path.lstrip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value
