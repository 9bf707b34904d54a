"""Knative Services: each is a Configuration and a Route of its name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.api.names import HTTP2_READY
from paddlecloud.kube.conditions import ConditionState, condition_in, conditions_of, state_of
from paddlecloud.kube.plan import Patch, Plan
from paddlecloud.kube.resource import Object, Resource, owner_reference
from paddlecloud.local.knative.conditions import judged, ready_of
from paddlecloud.local.knative.configuration import TAKEN
from paddlecloud.local.knative.names import CONFIGURATIONS, ROUTE, ROUTES, SERVICE


class Observed(NamedTuple):
    configuration: Object | None = None
    route: Object | None = None


def decide(service: Object, observed: Observed, now: float) -> Plan:
    plan = Plan()
    if service["metadata"].get("deletionTimestamp"):
        return plan
    spec = service.get("spec") or {}
    _bring(plan, service, CONFIGURATIONS, observed.configuration, {"template": spec.get("template") or {}})
    if observed.route is None or ready_of(observed.configuration).reason != TAKEN:
        _bring(plan, service, ROUTES, observed.route, {"traffic": _traffic(service)})
    plan.status = _status(service, observed, now)
    return plan


def _traffic(service: Object) -> list[Object]:
    name = service["metadata"]["name"]
    targets = (service.get("spec") or {}).get("traffic") or [{"latestRevision": True, "percent": 100}]
    found = []
    for target in targets:
        body = dict(target)
        if not body.get("revisionName"):
            body |= {"configurationName": name, "latestRevision": True}
        else:
            body["latestRevision"] = False
        found.append(body)
    return found


def _bring(plan: Plan, service: Object, resource: Resource, current: Object | None, spec: Object) -> None:
    meta = service["metadata"]
    if current is None:
        labels = {**(meta.get("labels") or {}), SERVICE: meta["name"]}
        if resource is CONFIGURATIONS:
            labels[ROUTE] = meta["name"]
        plan.create.append(
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {
                    "name": meta["name"],
                    "namespace": meta["namespace"],
                    "labels": labels,
                    "ownerReferences": [owner_reference(service)],
                },
                "spec": spec,
            }
        )
    elif current.get("spec") != spec:
        patch = [{"op": "replace", "path": "/spec", "value": spec}]
        version = current["metadata"].get("resourceVersion")
        plan.patch.append(Patch(resource, meta["name"], meta["namespace"], patch, kind="json", seen=version))


def _status(service: Object, observed: Observed, now: float) -> Object:
    made = ready_of(observed.configuration)
    routed = made if made.reason == TAKEN else ready_of(observed.route)
    states: Mapping[str, ConditionState] = {"ConfigurationsReady": made, "RoutesReady": routed}
    configuration = (observed.configuration or {}).get("status") or {}
    route = (observed.route or {}).get("status") or {}
    status: Object = {
        "observedGeneration": service["metadata"].get("generation", 0),
        "conditions": judged(service, states, now, informative=_http2(observed.route)),
    }
    for source, fields in (
        (configuration, ("latestCreatedRevisionName", "latestReadyRevisionName")),
        (route, ("url", "address", "traffic", "annotations")),
    ):
        status |= {name: source[name] for name in fields if name in source}
    return status


def _http2(route: Object | None) -> dict[str, ConditionState]:
    """What the route says of HTTP/2, where it is asked to."""
    found = condition_in(conditions_of(route or {}), HTTP2_READY)
    return {HTTP2_READY: state_of(found)} if found else {}
