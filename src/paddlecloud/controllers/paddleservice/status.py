"""The status of a PaddleService: where it is, who answers, and what is awaited. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from paddlecloud.api.paddleservice import ServiceSettings
from paddlecloud.controllers.paddleservice import served_models
from paddlecloud.controllers.paddleservice.names import CANARY, DEFAULT, WENT_BACK, WENT_BACK_UNDER, selector
from paddlecloud.controllers.paddleservice.observe import Observed, RevisionView, retry_of
from paddlecloud.controllers.paddleservice.resolution import Resolution, named_models, worst
from paddlecloud.controllers.paddleservice.template import DesiredRevision
from paddlecloud.controllers.paddleservice.traffic import TrafficSplit
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.conditions import ConditionState, dated, state_of
from paddlecloud.kube.resource import Object

MODEL_READY = "ModelReady"
SEVERITIES = {"CanaryEndpointReady": "Info", "Conflict": "Info"}


READY = ConditionState("True", "Ready")
CONFLICT = "Conflict"
AWAITED = "Waiting"
"""A revision is starting, and what it waits for is known."""


def with_conditions(old: Object, states: Mapping[str, ConditionState], *, generation: int, now: float) -> list[Object]:
    """In a fixed order; a time moves only with its status."""
    known = {c.get("type"): c for c in old.get("conditions") or ()}
    return [
        dated(
            {
                "type": kind,
                "status": state.status,
                "reason": state.reason,
                **({"message": state.message} if state.message else {}),
                "severity": SEVERITIES.get(kind, "Error"),
                "observedGeneration": generation,
            },
            known.get(kind),
            now,
        )
        for kind, state in states.items()
    ]


def endpoint_state(view: RevisionView | None, name: str) -> ConditionState:
    if view is None:
        return ConditionState("Unknown", "Creating", f"revision {name} is being created")
    if view.ready is None and view.message:
        return ConditionState("Unknown", AWAITED, f"revision {name} is starting: {view.message}")
    if view.ready is None:
        return ConditionState("Unknown", "Starting", f"revision {name} is starting")
    if view.ready:
        return READY
    return ConditionState("False", view.reason or "RevisionFailed", f"revision {name}: {view.message or 'failed'}")


def refused(
    service: Object,
    reason: str,
    message: str,
    *,
    now: float,
    resolutions: Mapping[str, Resolution] | None = None,
) -> Object:
    """The status of a service whose spec cannot be carried out: what serves goes on, and is still described."""
    old = service.get("status") or {}
    generation = int(service["metadata"].get("generation") or 0)
    before = {c["type"]: state_of(c) for c in _conditions(old)}
    if reason == CONFLICT:
        before = {CONFLICT: ConditionState("True", "NameInUse", message)}
    if (state := worst((resolutions or {}).values())) is not None:
        before = {MODEL_READY: state, **{kind: other for kind, other in before.items() if kind != MODEL_READY}}
    conditions = with_conditions(
        old, {**before, "Ready": ConditionState("False", reason, message)}, generation=generation, now=now
    )
    changed: Object = {"observedGeneration": generation, "conditions": conditions, "message": message}
    if retry := retry_of(service):
        changed["retriedAt"] = retry
    if resolutions and old.get("models"):
        changed["models"] = served_models.refused(old, resolutions)
    return {**old, **changed}


def newest(status: Object) -> str:
    """The revision of the default that the spec asks for, whether or not it is the one that serves already."""
    default = status.get("default") or {}
    return str(default.get("latest") or default.get("name") or "")


def rollout_digest(service: Object) -> str:
    written = json.dumps((service.get("spec") or {}).get("rollout"), sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:8]


def _conditions(status: Object) -> Sequence[Object]:
    return [c for c in status.get("conditions") or () if c.get("type") != CONFLICT]


def status_of(
    service: Object,
    settings: ServiceSettings,
    wanted: Mapping[str, DesiredRevision],
    observed: Observed,
    split: TrafficSplit,
    *,
    routes: ConditionState,
    place: Object,
    note: str,
    now: float,
    resolutions: Mapping[str, Resolution],
) -> Object:
    """`place` holds the url and address; `note` is said when nothing else is."""
    old = service.get("status") or {}
    generation = int(service["metadata"].get("generation") or 0)
    views = observed.revisions
    default = endpoint_state(views.get(wanted[DEFAULT].name), wanted[DEFAULT].name)
    model = worst(resolutions.values())
    states = {MODEL_READY: model} if model is not None else {}
    states["DefaultEndpointReady"] = default
    if CANARY in wanted:
        states["CanaryEndpointReady"] = endpoint_state(views.get(wanted[CANARY].name), wanted[CANARY].name)
    states["RoutesReady"] = routes
    if observed.trouble:
        states["Ready"] = ConditionState("False", "Refused", observed.trouble)
    else:
        states["Ready"] = next((v for v in (default, routes) if v.status != "True"), _served(wanted, split))
    status: Object = {
        **place,
        "observedGeneration": generation,
        "conditions": with_conditions(old, states, generation=generation, now=now),
        "default": _default(wanted, views, split),
        "traffic": _traffic(wanted, split),
        "replicas": sum(view.replicas for view in views.values()),
        "selector": selector(settings.name),
        "engine": observed.engine,
    }
    references = named_models(settings)
    if served := served_models.entries(old, wanted, views, split.shares, references, now):
        status["models"] = served
    if CANARY in wanted:
        status["canary"] = _endpoint(wanted[CANARY].name, views, split, wanted)
    if retry := retry_of(service):
        status["retriedAt"] = retry
    if split.step is not None:
        step = split.step
        status["rollout"] = {
            "phase": step.phase,
            "step": step.done,
            "percent": step.percent,
            **({"nextStepTime": rfc3339(step.due)} if step.due is not None else {}),
            **({"message": step.message} if step.message else {}),
            **({"wentBackTime": _went_back_time(old, split, now)} if split.went_back else {}),
        }
    if split.went_back:
        status["annotations"] = {WENT_BACK: split.went_back, WENT_BACK_UNDER: rollout_digest(service)}
    if cold := next((dict(view.cold_start) for view in views.values() if view.cold_start), None):
        status["coldStart"] = cold
    troubles = (v.message for v in states.values() if v.status != "True" and v.message)
    remarks = (states["Ready"].message if split.went_back else "", model.message if model is not None else "", note)
    message = next(troubles, "") or next(filter(None, remarks), "")
    if message:
        status["message"] = message
    return status


def _endpoint(
    name: str, views: Mapping[str, RevisionView], split: TrafficSplit, wanted: Mapping[str, DesiredRevision]
) -> Object:
    view = views.get(name)
    new = next((revision.model for revision in wanted.values() if revision.name == name), None)
    model = new or (view.model if view else None)
    return {
        "name": name,
        "percent": split.shares.get(name, 0),
        "replicas": view.replicas if view else 0,
        **({"model": model.shown} if model is not None else {}),
    }


def _default(wanted: Mapping[str, DesiredRevision], views: Mapping[str, RevisionView], split: TrafficSplit) -> Object:
    """Of the revision that serves; beside it, the one that is to take its place."""
    latest = wanted[DEFAULT].name
    found = _endpoint(split.serving, views, split, wanted)
    return {**found, **({"latest": latest} if latest != split.serving else {})}


def _served(wanted: Mapping[str, DesiredRevision], split: TrafficSplit) -> ConditionState:
    if not split.went_back or split.step is None:
        return READY
    text = f"the roll-out of {wanted[DEFAULT].name} {split.step.message}; {split.serving} is served"
    return ConditionState("True", "WentBack", text)


def _went_back_time(old: Object, split: TrafficSplit, now: float) -> str:
    before = (old.get("annotations") or {}).get(WENT_BACK) == split.went_back
    return str((before and (old.get("rollout") or {}).get("wentBackTime")) or rfc3339(now))


def _traffic(wanted: Mapping[str, DesiredRevision], split: TrafficSplit) -> str:
    """Of the default that serves, of the one that is being rolled out, and of the canary; the latter two if any."""
    latest = wanted[DEFAULT].name
    canary = split.shares.get(wanted[CANARY].name, 0) if CANARY in wanted else 0
    rolled = split.shares.get(latest, 0) if latest != split.serving else 0
    parts = [100 - canary - rolled, *([rolled] if rolled else []), *([canary] if CANARY in wanted else [])]
    return "/".join(map(str, parts))
