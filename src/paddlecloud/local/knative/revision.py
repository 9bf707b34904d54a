"""Revisions: each is a Deployment, whose size the autoscaler decides, and two Services. Pure.

A revision is ready from the moment its first pod was, and stays so when its last one has gone to sleep. Until then a
container that cannot start makes it fail at once, with the container's own words.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from paddlecloud.api import mounts
from paddlecloud.kube.conditions import ConditionState, condition_in, conditions_of
from paddlecloud.kube.plan import Plan, PlannedEvent
from paddlecloud.kube.pods import phase_of
from paddlecloud.kube.resource import DEPLOYMENTS, Object, owner_reference
from paddlecloud.local.knative.conditions import YES, judged
from paddlecloud.local.knative.names import (
    CONFIGURATION,
    CONTAINER,
    REVISION,
    REVISION_UID,
    SERVICE,
    deployment_of,
    private_of,
)
from paddlecloud.local.knative.settings import Defaults, Scaling
from paddlecloud.local.workloads.pods import is_active, is_ready

DEFAULT_PORT = 8080
DEFAULT_TIMEOUT = 300
HOPELESS = frozenset(
    ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError",
     "CrashLoopBackOff", "RunContainerError")
)  # fmt: skip
"""Why a container waits, where waiting longer is not likely to help."""

KNATIVE_FIELDS = ("containerConcurrency", "timeoutSeconds", "responseStartTimeoutSeconds", "idleTimeoutSeconds")
"""Of a revision's spec, beside those of a pod's."""

LAST_WORDS = {"exec": {"command": ["/bin/sh", "-c", "sleep 0.5"]}}
"""A pod that is to end goes on answering until every gateway has removed it."""


class Observed(NamedTuple):
    deployment: Object | None = None
    pods: tuple[Object, ...] = ()
    services: tuple[Object, ...] = ()
    defaults: Defaults = Defaults()
    remarks: Mapping[str, str] = {}
    """Annotations for the status."""


def decide(revision: Object, observed: Observed, now: float) -> Plan:
    plan = Plan()
    if revision["metadata"].get("deletionTimestamp"):
        return plan
    if observed.deployment is None:
        plan.create.append(deployment_for(revision, observed.defaults))
    have = {service["metadata"]["name"] for service in observed.services}
    plan.create += [service for service in services_for(revision) if service["metadata"]["name"] not in have]
    plan.status = status_of(revision, observed, now)
    before = condition_in(conditions_of(revision), "Ready") or {}
    after = condition_in(plan.status["conditions"], "Ready") or {}
    if after["status"] != before.get("status") and after["status"] != "Unknown":
        good = after["status"] == "True"
        message = f"Revision {revision['metadata']['name']} is ready" if good else after.get("message", "")
        reason = "RevisionReady" if good else after.get("reason", "RevisionFailed")
        plan.events.append(PlannedEvent(reason, message, type="Normal" if good else "Warning"))
    return plan


def scaling_of(revision: Object, defaults: Defaults) -> Scaling:
    annotations = revision["metadata"].get("annotations") or {}
    limit = int((revision.get("spec") or {}).get("containerConcurrency") or 0)
    return Scaling.of(annotations, limit, defaults)


def port_of(revision: Object) -> int:
    """Where the one container that takes requests listens."""
    for container in (revision.get("spec") or {}).get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("containerPort"):
                return int(port["containerPort"])
    return DEFAULT_PORT


def uses_h2c(revision: Object) -> bool:
    """Whether its port takes HTTP/2 without TLS: Knative goes by the port's name."""
    containers = (revision.get("spec") or {}).get("containers") or ()
    return any(port.get("name") == "h2c" for container in containers for port in container.get("ports") or ())


def is_reached(revision: Object) -> bool:
    """Whether the revision has once been ready."""
    return (condition_in(conditions_of(revision), "ContainerHealthy") or {}).get("status") == "True"


# Objects


def deployment_for(revision: Object, defaults: Defaults) -> Object:
    meta = revision["metadata"]
    labels = {**(meta.get("labels") or {}), REVISION: meta["name"], REVISION_UID: meta["uid"], "app": meta["name"]}
    scaling = scaling_of(revision, defaults)
    first = max(scaling.initial_scale, scaling.min_scale)
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {
            "name": deployment_of(meta["name"]),
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(revision)],
        },
        "spec": {
            "replicas": min(first, scaling.max_scale) if scaling.max_scale else first,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": {REVISION_UID: meta["uid"]}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": labels, "annotations": dict(meta.get("annotations") or {})},
                "spec": pod_spec(revision),
            },
        },
    }


def pod_spec(revision: Object) -> Object:
    spec = copy.deepcopy(revision.get("spec") or {})
    for name in KNATIVE_FIELDS:
        spec.pop(name, None)
    spec.setdefault("terminationGracePeriodSeconds", _timeout(revision))
    port = port_of(revision)
    for index, container in enumerate(spec.get("containers") or ()):
        if not container.get("name"):
            container["name"] = CONTAINER if index == 0 else f"{CONTAINER}-{index}"
    _serving_container(spec, revision, port)
    return spec


def _serving_container(spec: Object, revision: Object, port: int) -> None:
    containers = spec.get("containers") or []
    main = next((c for c in containers if c.get("ports")), containers[0] if containers else None)
    if main is None:
        return
    labels = revision["metadata"].get("labels") or {}
    main["ports"] = main.get("ports") or [{"containerPort": port, "name": "user-port", "protocol": "TCP"}]
    own = {
        "PORT": str(port),
        "K_REVISION": revision["metadata"]["name"],
        "K_CONFIGURATION": labels.get(CONFIGURATION, ""),
        "K_SERVICE": labels.get(SERVICE, ""),
    }
    written = {entry.get("name") for entry in main.get("env") or ()}
    main["env"] = [
        *(main.get("env") or ()),
        *({"name": name, "value": value} for name, value in own.items() if name not in written),
    ]
    for kind in ("readinessProbe", "livenessProbe", "startupProbe"):
        probe: Any = main.get(kind)
        if probe or kind == "readinessProbe":
            main[kind] = _probe(probe or {}, port)
    main.setdefault("lifecycle", {}).setdefault("preStop", LAST_WORDS)


def _probe(probe: Object, port: int) -> Object:
    """Knative fills in the port, and its own period where none is given."""
    probe = dict(probe)
    if not any(probe.get(handler) for handler in ("httpGet", "tcpSocket", "exec", "grpc")):
        probe["tcpSocket"] = {"port": port}
    for handler in ("httpGet", "tcpSocket", "grpc"):
        if probe.get(handler) is not None:
            probe[handler] = {**probe[handler], "port": probe[handler].get("port") or port}
    if not probe.get("periodSeconds"):
        probe["periodSeconds"] = 1
    probe.setdefault("successThreshold", 1)
    return probe


def services_for(revision: Object) -> list[Object]:
    meta = revision["metadata"]
    port = port_of(revision)
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": name,
                "namespace": meta["namespace"],
                "labels": {REVISION: meta["name"], REVISION_UID: meta["uid"]},
                "ownerReferences": [owner_reference(revision)],
            },
            "spec": {
                "selector": {REVISION_UID: meta["uid"]},
                "ports": [{"name": "http", "port": 80, "targetPort": port, "protocol": "TCP"}],
            },
        }
        for name in (meta["name"], private_of(meta["name"]))
    ]


def _timeout(revision: Object) -> int:
    return int((revision.get("spec") or {}).get("timeoutSeconds") or DEFAULT_TIMEOUT)


# Status


def status_of(revision: Object, observed: Observed, now: float) -> Object:
    active = [pod for pod in observed.pods if is_active(pod)]
    ready = [pod for pod in active if is_ready(pod)]
    wanted = int(((observed.deployment or {}).get("spec") or {}).get("replicas") or 0)
    healthy = _healthy(revision, active, ready)
    resources = _resources(revision, observed.deployment, ready)
    trouble = ConditionState("False", "NoTraffic", "The target is not receiving traffic.")
    awaited = ConditionState(
        "Unknown", "Queued", "Requests to the target are being buffered as resources are provisioned."
    )
    return {
        "observedGeneration": revision["metadata"].get("generation", 0),
        "serviceName": revision["metadata"]["name"],
        "actualReplicas": len(ready),
        "desiredReplicas": wanted,
        **({"annotations": dict(observed.remarks)} if observed.remarks else {}),
        "conditions": judged(
            revision,
            {"ContainerHealthy": healthy, "ResourcesAvailable": resources},
            now,
            informative={"Active": YES if ready else awaited if wanted else trouble},
        ),
    }


def _healthy(revision: Object, active: list[Object], ready: list[Object]) -> ConditionState:
    if ready:
        return YES
    trouble = _trouble(active)
    if trouble is not None:
        return trouble
    if is_reached(revision):
        return YES
    before = condition_in(conditions_of(revision), "ContainerHealthy") or {}
    if before.get("status") == "False":  # between two attempts, or asleep after one
        return ConditionState("False", before.get("reason", ""), before.get("message", ""))
    if any(phase_of(pod) == "Running" for pod in active):
        return ConditionState(
            "Unknown", "ContainerStarting", f"port {port_of(revision)} of its program does not answer yet"
        )
    return ConditionState("Unknown", "Deploying", "")


def lasting_failure(pods: Iterable[Object]) -> ConditionState | None:
    """Why no pod will serve a waiting request, as far as the kubelet reports it; None while one is ready or may become
    so, and while there is none.

    A container that ended counts from its second end on: the first may be an accident, and it is restarted at once.
    Knative's activator has no such rule and holds the request until its timeout.
    """
    found = [None if is_ready(pod) else _trouble([pod], restarts=1) for pod in pods if is_active(pod)]
    return found[0] if found and all(found) else None


def _trouble(pods: list[Object], *, restarts: int = 0) -> ConditionState | None:
    """The first container that cannot start, or that ended after so many restarts."""
    for pod in pods:
        status = pod.get("status") or {}
        for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in HOPELESS:
                return ConditionState("False", str(waiting["reason"]), _words(container, waiting))
            if mounts.has_failed(waiting):
                return ConditionState("False", mounts.REASON, str(waiting["message"]))
            ended = (container.get("state") or {}).get("terminated") or {}
            if ended and not container.get("ready") and int(container.get("restartCount") or 0) >= restarts:
                return ConditionState("False", f"ExitCode{ended.get('exitCode')}", _words(container, ended))
    return None


def _words(container: Object, state: Object) -> str:
    """What the container says of its end, or the kubelet of its wait."""
    last = (container.get("lastState") or {}).get("terminated") or {}
    parts = [state.get("message", "")]
    if last:
        why = f" ({last['reason']})" if last.get("reason") not in (None, "Error", "Completed") else ""
        said = str(last.get("message") or "").strip()
        parts.append(f"it last exited with code {last.get('exitCode')}{why}" + (f": {said}" if said else ""))
    if "exitCode" in state:
        parts.append(f"it exited with code {state['exitCode']}")
    text = "; ".join(part for part in parts if part)
    return f"Container {container.get('name')}: {text or state.get('reason', '')}"


def _resources(revision: Object, deployment: Object | None, ready: list[Object]) -> ConditionState:
    if ready or is_reached(revision):
        return YES
    progress = condition_in(conditions_of(deployment or {}), "Progressing") or {}
    failure = condition_in(conditions_of(deployment or {}), "ReplicaFailure") or {}
    if failure.get("status") == "True":
        return ConditionState("False", failure.get("reason", "FailedCreate"), failure.get("message", ""))
    if progress.get("status") == "False":
        return ConditionState(
            "False", progress.get("reason", ""), f"Initial scale was never achieved: {progress.get('message', '')}"
        )
    return ConditionState("Unknown", "Deploying", "")
