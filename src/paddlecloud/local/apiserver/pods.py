"""What Kubernetes lets happen to a pod besides plain writes: binding to a node, eviction, defaults from its place."""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock, rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.store.record import Address
from paddlecloud.local.store.store import Store

from . import negotiation
from .api import Handler, success
from .options import write_options
from .registry import KindInfo
from .request import Answer, Request, RequestInfo
from .verbs import DeleteOptions, Verbs

PRIORITY_CLASSES = "scheduling.k8s.io/priorityclasses"


def default(store: Store, info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: service account, priority and tolerations that the rest of the platform counts on."""
    if info.kind != "Pod" or info.resource.group or old is not None:
        return
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("enableServiceLinks", True)
    name = spec.get("priorityClassName")
    if name:
        record = store.latest(Address(PRIORITY_CLASSES, "", name))
        if record is None:
            raise errors.Forbidden(
                f'pods "{obj["metadata"].get("name", "")}" is forbidden: no PriorityClass with name {name} was found'
            )
        spec["priority"] = record.object.get("value", 0)
    else:
        spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def qos_class(spec: Object) -> str:
    """Guaranteed when every container's cpu and memory limits equal its requests, BestEffort when none has any."""
    containers = [c for c in spec.get("containers", []) if isinstance(c, dict)]
    wanted = [c.get("resources") or {} for c in containers]
    if not any(r.get("requests") or r.get("limits") for r in wanted):
        return "BestEffort"
    for resources in wanted:
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            if name not in limits or requests.get(name, limits[name]) != limits[name]:
                return "Burstable"
    return "Guaranteed"


def binding(verbs: Verbs, clock: Clock) -> Handler:
    """POST pods/NAME/binding: how a scheduler places a pod, once."""

    async def bind(request: Request, info: RequestInfo, kind: KindInfo) -> Answer:
        if info.verb != "create":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on pods/binding")
        body = negotiation.read_object(request.body, request.header("content-type"))
        node = (body.get("target") or {}).get("name")
        if not isinstance(node, str) or not node:
            raise errors.invalid("Binding", info.name, [("target.name", "FieldValueRequired", "Required value")])

        def place(pod: Object) -> Object:
            spec = pod["spec"]
            if spec.get("nodeName"):
                raise errors.Conflict(
                    f'Operation cannot be fulfilled on pods/binding "{info.name}": pod {info.name} is already '
                    f'assigned to node "{spec["nodeName"]}"'
                )
            spec["nodeName"] = node
            annotations = (body.get("metadata") or {}).get("annotations")
            if annotations:
                pod["metadata"].setdefault("annotations", {}).update(annotations)
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(clock.now())}
            conditions = pod.setdefault("status", {}).setdefault("conditions", [])
            conditions[:] = [c for c in conditions if c.get("type") != "PodScheduled"] + [scheduled]
            return pod

        await verbs.update(
            kind, info.namespace, info.name, place, options=write_options(request), subresource="binding"
        )
        return Answer(status=201, body=negotiation.encode(success({})))

    return bind


def eviction(verbs: Verbs) -> Handler:
    """POST pods/NAME/eviction: a deletion that asks first."""

    async def evict(request: Request, info: RequestInfo, kind: KindInfo) -> Answer:
        if info.verb != "create":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on pods/eviction")
        body = negotiation.read_object(request.body, request.header("content-type"))
        options = DeleteOptions.parse(body.get("deleteOptions"), {})
        await verbs.delete(kind, info.namespace, info.name, options)
        return Answer(status=201, body=negotiation.encode(success({})))

    return evict
