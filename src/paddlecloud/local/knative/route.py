"""Routes: which revisions the traffic of a host goes to, and the Service by which pods reach it. Pure.

Traffic moves only to revisions that are ready. While one of the targets is not, everything stays where it was. The
status names the traffic first; IngressReady is True when all gateways that take connections have acknowledged it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.api.names import HTTP2_READY, NAME_URL
from paddlecloud.kube.conditions import ConditionState, condition_in, conditions_of
from paddlecloud.kube.plan import Patch, Plan, PlannedEvent
from paddlecloud.kube.resource import ENDPOINTSLICES, Object, owner_reference
from paddlecloud.kube.resource import SERVICES as CORE_SERVICES
from paddlecloud.local.knative.conditions import YES, judged, ready_of
from paddlecloud.local.knative.names import OPENABLE, ROUTE, address_of, is_label
from paddlecloud.local.knative.routing import NO_PORTS, route_entries
from paddlecloud.local.workloads.endpoints import SERVICE_LABEL

GATEWAY_ADDRESS = "127.0.0.1"
PORT_NAME = "http"
LOOK_AGAIN = 1.0
"""Seconds between looks at a route that gateways have not acknowledged: one that hangs is not waited for."""
STARTING = ConditionState("Unknown", "GatewayStarting", "The gateway does not take connections yet.")
NOT_CONFIGURED = ConditionState(
    "Unknown", "IngressNotConfigured", "Not all gateways have acknowledged the traffic of this route yet."
)

NO_ENVOY = (
    "HTTP/2 and gRPC are routed by Envoy, which is not installed: pip install 'paddlecloud[h2c]', then pdc down and "
    "pdc up. Until then only HTTP/1.1 is routed here; the Services of the pods lead to the port as it is."
)


class Observed(NamedTuple):
    """`port` is the gateway's for this route, None while there is none that takes connections."""

    revisions: Mapping[str, Object]
    configurations: Mapping[str, Object]
    service: Object | None = None
    slice: Object | None = None
    port: int | None = None
    http2: ConditionState | None = None
    """Of a route to a revision that uses HTTP/2: whether it is routed."""
    published: bool = False
    """Whether all gateways on `port` have acknowledged the route's present `status.traffic`."""
    ports: Mapping[str, int] = NO_PORTS
    """Of the route and its tags alone, by `namespace/label`; empty while `port` is None."""
    settled: bool = True
    """Whether gateways that were started before this control plane have had their time to connect to it."""


def decide(route: Object, observed: Observed, now: float) -> Plan:
    plan = Plan()
    if route["metadata"].get("deletionTimestamp"):
        return plan
    targets, assigned = resolve(route, observed)
    if targets is None:
        targets = (route.get("status") or {}).get("traffic")
    if observed.port is not None:
        _bring_service(plan, route, observed)
    meta = route["metadata"]
    status: Object = {
        "observedGeneration": meta.get("generation", 0),
        "address": {"url": address_of(meta["name"], meta["namespace"])},
    }
    before = route.get("status") or {}
    if observed.port is not None:
        status["url"] = _url(meta["name"], meta, observed)
        status["annotations"] = {NAME_URL: name_url_of(meta["name"], meta["namespace"], observed.port)}
        if targets:
            status["traffic"] = [_with_url(target, meta, observed) for target in targets]
    elif before.get("url"):
        status |= {name: before[name] for name in ("url", "annotations") if name in before}
        status |= {"traffic": targets} if targets else {}
    states = {"AllTrafficAssigned": assigned, "IngressReady": _ingress(route, status, observed)}
    status["conditions"] = judged(route, states, now, informative=_http2(observed))
    plan.status = status
    if status.get("traffic") and states["IngressReady"] == NOT_CONFIGURED:
        plan.after = LOOK_AGAIN
    plan.events += _news(route, observed)
    return plan


def _ingress(route: Object, status: Object, observed: Observed) -> ConditionState:
    """Unknown while the ingress is being programmed (MarkIngressNotConfigured of Knative's route_lifecycle.go)."""
    entries = route_entries({**route, "status": status}, observed.ports)
    unchanged = bool(entries) and entries == route_entries(route, observed.ports)
    before = condition_in(conditions_of(route), "IngressReady") or {}
    if not observed.settled and unchanged and before.get("status") == "True":
        return YES
    if observed.port is None:
        return STARTING
    return YES if unchanged and observed.published else NOT_CONFIGURED


def _news(route: Object, observed: Observed) -> list[PlannedEvent]:
    before = condition_in(conditions_of(route), HTTP2_READY) or {}
    if observed.http2 is None or observed.http2.status != "False" or before.get("status") == "False":
        return []
    return [PlannedEvent(observed.http2.reason, observed.http2.message, type="Warning")]


def _http2(observed: Observed) -> dict[str, ConditionState]:
    return {} if observed.http2 is None else {HTTP2_READY: observed.http2}


def name_url_of(name: str, namespace: str, port: int) -> str:
    return f"http://{name}.{namespace}.{OPENABLE}:{port}"


def _url(label: str, meta: Object, observed: Observed) -> str:
    """Of the route or a tag of it: at its own port, where every program of this machine can call it."""
    own = observed.ports.get(f"{meta['namespace']}/{label}")
    return f"http://{GATEWAY_ADDRESS}:{own}" if own else name_url_of(label, meta["namespace"], observed.port or 0)


def _with_url(target: Object, meta: Object, observed: Observed) -> Object:
    if not target.get("tag"):
        return target
    return {**target, "url": _url(f"{target['tag']}-{meta['name']}", meta, observed)}


def resolve(route: Object, observed: Observed) -> tuple[list[Object] | None, ConditionState]:
    """The targets by name of revision; None while one of them cannot take traffic."""
    found: list[Object] = []
    for target in (route.get("spec") or {}).get("traffic") or ():
        tag = target.get("tag")
        if tag and not is_label(f"{tag}-{route['metadata']['name']}"):
            tag = None  # stored by an earlier release: its host could be that of another namespace
        name = target.get("revisionName")
        if not name:
            configuration = observed.configurations.get(target.get("configurationName", ""))
            if configuration is None:
                return None, _missing("Configuration", target.get("configurationName", ""))
            name = (configuration.get("status") or {}).get("latestReadyRevisionName")
            if not name:
                return None, _unready(configuration, "Configuration")
        revision = observed.revisions.get(name)
        if revision is None:
            return None, _missing("Revision", name)
        if ready_of(revision).status != "True" and not _serves(route, name):
            return None, _unready(revision, "Revision")
        found.append(
            {
                "revisionName": name,
                "latestRevision": not target.get("revisionName"),
                **({"percent": target["percent"]} if target.get("percent") is not None else {}),
                **({"tag": tag} if tag else {}),
            }
        )
    return found, YES


def _serves(route: Object, revision: str) -> bool:
    """One that gets traffic already keeps it in bad times: there is nowhere better."""
    traffic = (route.get("status") or {}).get("traffic") or ()
    return any(target.get("revisionName") == revision for target in traffic)


def _missing(kind: str, name: str) -> ConditionState:
    return ConditionState("False", f"{kind}Missing", f'{kind} "{name}" referenced in traffic not found.')


def _unready(obj: Object, kind: str) -> ConditionState:
    state = ready_of(obj)
    name = obj["metadata"]["name"]
    if state.status == "False":
        return ConditionState(
            "False", "RevisionMissing", f'{kind} "{name}" does not have any ready Revision: {state.message}'
        )
    if kind == "Revision":
        return ConditionState("Unknown", "Unready", f'Revision "{name}" is not ready yet.')
    return ConditionState("Unknown", "Unready", f'{kind} "{name}" is waiting for a Revision to become ready.')


# The Service of the route's name: pods call the gateway by it


def _bring_service(plan: Plan, route: Object, observed: Observed) -> None:
    meta = route["metadata"]
    common = {
        "namespace": meta["namespace"],
        "ownerReferences": [owner_reference(route)],
    }
    if observed.service is None:
        plan.create.append(
            {
                "apiVersion": CORE_SERVICES.api_version,
                "kind": CORE_SERVICES.kind,
                "metadata": {"name": meta["name"], "labels": {ROUTE: meta["name"]}, **common},
                "spec": {"ports": [{"name": PORT_NAME, "port": 80, "targetPort": observed.port, "protocol": "TCP"}]},
            }
        )
    ports = [{"name": PORT_NAME, "port": observed.port, "protocol": "TCP"}]
    name = f"{meta['name']}-gateway"
    if observed.slice is None:
        plan.create.append(
            {
                "apiVersion": ENDPOINTSLICES.api_version,
                "kind": ENDPOINTSLICES.kind,
                "metadata": {"name": name, "labels": {SERVICE_LABEL: meta["name"], ROUTE: meta["name"]}, **common},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [GATEWAY_ADDRESS], "conditions": {"ready": True}}],
                "ports": ports,
            }
        )
    elif observed.slice.get("ports") != ports:
        plan.patch.append(Patch(ENDPOINTSLICES, name, meta["namespace"], {"ports": ports}))
