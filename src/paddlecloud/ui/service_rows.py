"""A PaddleService as a row and as shares of its traffic: what its pages show and filter by. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from paddlecloud.api.names import ENDPOINT, MEASURES
from paddlecloud.cli.objects.why import FAILED, OK, why
from paddlecloud.kube.conditions import condition_of
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.outcome import service_failure
from paddlecloud.ui.object_lists import searched
from paddlecloud.ui.verdicts import PHASES, phase_of


class Share(NamedTuple):
    """What a revision gets of the traffic."""

    endpoint: str
    """default, rollout or canary."""
    revision: str
    percent: int
    model: str


class ServiceRow(NamedTuple):
    namespace: str
    name: str
    phase: str
    created: str
    serves: str
    """Its model or image."""
    shares: tuple[Share, ...]
    replicas: int
    why: str
    """Nothing of one that is ready."""
    text: str


class Figures(NamedTuple):
    """What clients of a revision saw lately."""

    requests: int
    error_percent: float
    milliseconds: float
    """The 95th percentile."""


class RevisionRow(NamedTuple):
    name: str
    endpoint: str
    state: str
    percent: int
    serves: str
    replicas: int
    created: str
    reason: str
    figures: Figures | None


def row_of(service: Object) -> ServiceRow:
    meta, status = service["metadata"], service.get("status") or {}
    verdict = why(service, now=0.0)
    found = shares(service)
    serves = _content(endpoint_of(service, "default"))
    names = (one.model for one in found)
    return ServiceRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        phase=PHASES[FAILED] if service_failure(service, "Ready") else phase_of(verdict),
        created=str(meta.get("creationTimestamp") or ""),
        serves=serves,
        shares=found,
        replicas=_whole(status.get("replicas")),
        why="" if verdict.state == OK else verdict.text,
        text=searched(service, serves, verdict.text, *names),
    )


def endpoint_of(service: Object, name: str) -> Any:
    """As the spec has it; `spec.model` is short for a default."""
    spec = service.get("spec") or {}
    return spec.get(name) or ({"model": spec["model"]} if name == "default" and spec.get("model") else {})


def _content(endpoint: Mapping[str, Any]) -> str:
    image = ":".join(str(endpoint[part]) for part in ("containerImage", "tag") if endpoint.get(part))
    return str(endpoint.get("model") or image)


def shares(service: Object) -> tuple[Share, ...]:
    """In the order of `status.traffic`: the default that serves, the one that is rolled out, the canary."""
    status = service.get("status") or {}
    rollout, default, canary = (status.get(part) or {} for part in ("rollout", "default", "canary"))
    models = {
        one.get("revision"): f"{one.get('name')}:{one.get('version')}" for one in status.get("models") or () if one
    }
    found = []
    if default.get("name"):
        found.append(Share("default", str(default["name"]), _whole(default.get("percent")), _model(default, models)))
    if default.get("latest") and default["latest"] != default.get("name"):
        latest = str(default["latest"])
        found.append(Share("rollout", latest, _whole(rollout.get("percent")), str(models.get(latest) or "")))
    if canary.get("name"):
        found.append(Share("canary", str(canary["name"]), _whole(canary.get("percent")), _model(canary, models)))
    return tuple(found)


def _model(endpoint: Mapping[str, Any], models: Mapping[Any, str]) -> str:
    return str(endpoint.get("model") or models.get(endpoint.get("name")) or "")


def revision_of(revision: Object, given: tuple[Share, ...]) -> RevisionRow:
    """Of a Knative Revision."""
    meta, status = revision["metadata"], revision.get("status") or {}
    ready = condition_of(revision, "Ready") or {}
    share = next((one for one in given if one.revision == meta["name"]), None)
    containers = (revision.get("spec") or {}).get("containers") or [{}]
    return RevisionRow(
        name=str(meta["name"]),
        endpoint=share.endpoint if share else str((meta.get("labels") or {}).get(ENDPOINT) or ""),
        state={"True": "Ready", "False": "Failed"}.get(str(ready.get("status")), "Starting"),
        percent=share.percent if share else 0,
        serves=(share.model if share else "") or str(containers[0].get("image") or ""),
        replicas=_whole(status.get("actualReplicas")),
        created=str(meta.get("creationTimestamp") or ""),
        reason="" if ready.get("status") == "True" else str(ready.get("message") or ready.get("reason") or ""),
        figures=_figures(status),
    )


def _figures(status: Mapping[str, Any]) -> Figures | None:
    """Only while the revision shares a route with another one, and on the embedded platform."""
    try:
        found = json.loads((status.get("annotations") or {}).get(MEASURES) or "{}")
        values = (found["requests"], found["errorPercent"], found["p95Milliseconds"])
        return Figures(int(values[0]), float(values[1]), float(values[2]))
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
