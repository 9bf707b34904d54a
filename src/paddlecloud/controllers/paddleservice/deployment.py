"""A PaddleService where there is no Knative: a Deployment per endpoint, a Service before both, an autoscaler. Pure.

Kubernetes itself keeps the promises here: new pods are ready before old ones go. Without a gateway the shares of
default and canary are those of their pods, and nothing sleeps: one pod stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from paddlecloud.api.names import ENDPOINT, REVISION, SERVICE
from paddlecloud.api.paddleservice import ServiceSettings
from paddlecloud.controllers.paddleservice.names import CANARY, DEFAULT
from paddlecloud.controllers.paddleservice.observe import Observed, RevisionView, model_of
from paddlecloud.controllers.paddleservice.template import DesiredRevision
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.plan import Delete, Patch, Plan
from paddlecloud.kube.resource import DEPLOYMENTS, HORIZONTALPODAUTOSCALERS, SERVICES, Object

MOST = 10
"""Pods of a service that sets no maximum: an autoscaler of Kubernetes must have one."""

NOTE = "without Knative: scaled by CPU, never to zero; shares follow the number of pods"
NO_STEPS = "; a new default replaces the old one pod by pod, without the steps of spec.rollout"


def name_of(service: str, endpoint: str) -> str:
    return f"{service}-{endpoint}"


def apply_to_plan(
    plan: Plan,
    owner: Object,
    reference: Object,
    settings: ServiceSettings,
    wanted: Mapping[str, DesiredRevision],
    seen: Observed,
) -> None:
    meta = owner["metadata"]
    for endpoint in (DEFAULT, CANARY):
        name = name_of(meta["name"], endpoint)
        current, found = seen.deployments.get(name), wanted.get(endpoint)
        if found is None:
            if current is not None:
                plan.delete.append(Delete(DEPLOYMENTS, name, meta["namespace"], uid=current["metadata"].get("uid")))
            continue
        replicas = replicas_of(settings, endpoint, seen.deployments.get(name_of(meta["name"], DEFAULT)))
        _bring_deployment(plan, meta, reference, current, found, replicas)
    _bring_service(plan, owner, reference, settings, seen.services.get(meta["name"]))
    if seen.autoscalers is not None:
        present = seen.autoscalers.get(name_of(meta["name"], DEFAULT))
        _bring_autoscaler(plan, meta, reference, settings, present)


def replicas_of(settings: ServiceSettings, endpoint: str, default: Object | None) -> int:
    """The default begins with its least and is then the autoscaler's; the canary follows it by its share."""
    least = max(1, settings.scaling.min_scale)
    if endpoint == DEFAULT:
        return least
    base = int(((default or {}).get("spec") or {}).get("replicas") or least)
    share = settings.canary_percent
    return 0 if not share else max(1, math.ceil(base * share / max(1, 100 - share)))


def _bring_deployment(
    plan: Plan, meta: Object, reference: Object, current: Object | None, wanted: DesiredRevision, replicas: int
) -> None:
    name = name_of(meta["name"], wanted.endpoint)
    identity = {SERVICE: meta["name"], ENDPOINT: wanted.endpoint}
    pod = {key: value for key, value in wanted.spec.items() if key not in ("containerConcurrency", "timeoutSeconds")}
    template = {
        "metadata": {"labels": {**wanted.labels, REVISION: wanted.name}, "annotations": wanted.annotations},
        "spec": pod,
    }
    if current is None:
        plan.create.append(
            {
                "apiVersion": DEPLOYMENTS.api_version,
                "kind": DEPLOYMENTS.kind,
                "metadata": {
                    "name": name,
                    "namespace": meta["namespace"],
                    "labels": identity,
                    "ownerReferences": [reference],
                },
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": identity},
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                    "template": template,
                },
            }
        )
        return
    operations: list[Object] = []
    if revision_of(current) != wanted.name:
        operations.append({"op": "replace", "path": "/spec/template", "value": template})
    if wanted.endpoint == CANARY and int(current["spec"].get("replicas") or 0) != replicas:
        operations.append({"op": "replace", "path": "/spec/replicas", "value": replicas})
    if operations:
        seen = current["metadata"].get("resourceVersion")
        plan.patch.append(Patch(DEPLOYMENTS, name, meta["namespace"], operations, kind="json", seen=seen))


def revision_of(deployment: Object) -> str:
    labels = ((deployment["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    return str(labels.get(REVISION, ""))


def _bring_service(
    plan: Plan, owner: Object, reference: Object, settings: ServiceSettings, current: Object | None
) -> None:
    meta = owner["metadata"]
    if current is not None or settings.default is None:
        return
    port = "http1" if settings.protocol == "http1" else "h2c"
    plan.create.append(
        {
            "apiVersion": SERVICES.api_version,
            "kind": SERVICES.kind,
            "metadata": {
                "name": meta["name"],
                "namespace": meta["namespace"],
                "labels": {SERVICE: meta["name"]},
                "ownerReferences": [reference],
            },
            "spec": {
                "selector": {SERVICE: meta["name"]},
                "ports": [{"name": "http", "port": 80, "targetPort": port, "protocol": "TCP"}],
            },
        }
    )


def autoscaler_spec(settings: ServiceSettings) -> Object:
    least = max(1, settings.scaling.min_scale)
    return {
        "scaleTargetRef": {
            "apiVersion": DEPLOYMENTS.api_version,
            "kind": DEPLOYMENTS.kind,
            "name": name_of(settings.name, DEFAULT),
        },
        "minReplicas": least,
        "maxReplicas": max(least, settings.scaling.max_scale or MOST),
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {
                        "type": "Utilization",
                        "averageUtilization": round(float(settings.scaling.target_utilization)),
                    },
                },
            }
        ],
    }


def _bring_autoscaler(
    plan: Plan, meta: Object, reference: Object, settings: ServiceSettings, current: Object | None
) -> None:
    name, spec = name_of(meta["name"], DEFAULT), autoscaler_spec(settings)
    if current is None:
        plan.create.append(
            {
                "apiVersion": HORIZONTALPODAUTOSCALERS.api_version,
                "kind": HORIZONTALPODAUTOSCALERS.kind,
                "metadata": {"name": name, "namespace": meta["namespace"], "ownerReferences": [reference]},
                "spec": spec,
            }
        )
        return
    changed = {key: value for key, value in spec.items() if current["spec"].get(key) != value}
    if changed:
        seen = current["metadata"].get("resourceVersion")
        plan.patch.append(Patch(HORIZONTALPODAUTOSCALERS, name, meta["namespace"], {"spec": changed}, seen=seen))


def view(deployment: Object) -> RevisionView:
    """A Deployment's present template as a revision."""
    meta, status = deployment["metadata"], deployment.get("status") or {}
    conditions = {c.get("type"): c for c in status.get("conditions") or ()}
    current = int(status.get("observedGeneration") or 0) >= int(meta.get("generation") or 0)
    updated, wanted = int(status.get("updatedReplicas") or 0), int(deployment["spec"].get("replicas") or 0)
    stuck = conditions.get("Progressing", {})
    ready: bool | None = None
    if current and stuck.get("status") == "False":
        ready = False
    elif current and updated >= wanted and int(status.get("availableReplicas") or 0) >= wanted:
        ready = True
    return RevisionView(
        name=revision_of(deployment),
        endpoint=(meta.get("labels") or {}).get(ENDPOINT, ""),
        ready=ready,
        reason=stuck.get("reason", "") if ready is False else "",
        message=stuck.get("message", "") if ready is False else "",
        replicas=int(status.get("readyReplicas") or 0),
        created=parse_rfc3339(meta["creationTimestamp"]) if meta.get("creationTimestamp") else 0.0,
        uid=meta.get("uid", ""),
        cold_start={},
        model=model_of((deployment["spec"].get("template") or {}).get("metadata") or {}),
    )
