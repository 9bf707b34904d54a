"""What Kubernetes lets happen to a pod besides plain writes: binding to a node, eviction, defaults from its place."""

from __future__ import annotations

from dataclasses import replace

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock, rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.api import Handler
from paddlecloud.local.apiserver.builtin.defaults import qos_class
from paddlecloud.local.apiserver.http import negotiation
from paddlecloud.local.apiserver.http.options import write_options
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response
from paddlecloud.local.apiserver.http.responses import success
from paddlecloud.local.apiserver.objects.verbs import DeleteOptions, Verbs
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

PRIORITY_CLASSES = "scheduling.k8s.io/priorityclasses"
LOSS_TOLERATED = 300  # seconds


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
    _rank(store, obj, spec)
    _tolerate_losses(spec)


def _rank(store: Store, obj: Object, spec: Object) -> None:
    """Priority comes from a class, by name or by default; a pod cannot give it to itself."""
    found = _priority_class(store, obj, spec)
    given, priority = spec.get("priority"), found.get("value", 0)
    if given is not None and given != priority:
        raise _refused(
            obj,
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name",
        )
    if found:
        spec["priorityClassName"] = found["metadata"]["name"]
    spec["priority"] = priority
    spec.setdefault("preemptionPolicy", found.get("preemptionPolicy", "PreemptLowerPriority"))


def _priority_class(store: Store, obj: Object, spec: Object) -> Object:
    """The class a pod names, else the one meant for all that name none, else nothing."""
    name = spec.get("priorityClassName")
    if name:
        record = store.latest(ObjectAddress(PRIORITY_CLASSES, "", name))
        if record is None:
            raise _refused(obj, f"no PriorityClass with name {name} was found")
        return record.object
    classes = (record.object for record in store.list(PRIORITY_CLASSES))
    return next((found for found in classes if found.get("globalDefault")), {})


def _tolerate_losses(spec: Object) -> None:
    """A node that is lost for less than five minutes costs no pod its place, unless the pod says otherwise."""
    tolerations = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOSS_TOLERATED}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if not any(t.get("key", key) == key and t.get("effect", "NoExecute") == "NoExecute" for t in tolerations)
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _refused(obj: Object, why: str) -> errors.Forbidden:
    return errors.forbidden("pods", obj["metadata"].get("name", ""), why)


def binding(verbs: Verbs, clock: Clock) -> Handler:
    """POST pods/NAME/binding: how a scheduler places a pod, once."""

    async def bind(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "create":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on pods/binding")
        body = negotiation.read_small(request.body, request.header("content-type"))
        node = (body.get("target") or {}).get("name")
        if not isinstance(node, str) or not node:
            raise errors.invalid("Binding", info.name, [("target.name", "FieldValueRequired", "Required value")])

        def place(pod: Object) -> Object:
            spec = pod["spec"]
            if spec.get("nodeName"):
                why = f'pod {info.name} is already assigned to node "{spec["nodeName"]}"'
                raise errors.conflict("pods/binding", info.name, why)
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
        return Response(status=201, body=negotiation.encode(success({})))

    return bind


def eviction_options(request: Request, info: RequestInfo) -> DeleteOptions:
    """How the pod is to be deleted. A dry run that the URL asks for is one whatever the body says."""
    body = negotiation.read_small(request.body, request.header("content-type"))
    named = (body.get("metadata") or {}).get("name") or info.name
    if named != info.name:
        raise errors.BadRequest("name in URL does not match name in Eviction object")
    options = DeleteOptions.parse(body.get("deleteOptions"), {})
    return replace(options, dry_run=options.dry_run or write_options(request).dry_run)


def eviction(verbs: Verbs) -> Handler:
    """POST pods/NAME/eviction: a deletion that asks first."""

    async def evict(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "create":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on pods/eviction")
        await verbs.delete(kind, info.namespace, info.name, eviction_options(request, info))
        return Response(status=201, body=negotiation.encode(success({})))

    return evict
