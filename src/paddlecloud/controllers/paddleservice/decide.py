"""The judgement of the PaddleService controller: `decide(service, observed, now)` is pure and says everything to do."""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.api.names import ENDPOINT, HTTP2_READY, KNATIVE_REVISION, NAME_URL, SERVICE
from paddlecloud.api.paddleservice import ServiceSettings
from paddlecloud.controllers.paddleservice import (
    aliases,
    deployment,
    hub_pods,
    knative,
    resolution,
    status,
    traffic,
)
from paddlecloud.controllers.paddleservice.names import CANARY, DEFAULT, WENT_BACK, WENT_BACK_UNDER
from paddlecloud.controllers.paddleservice.observe import Observed, Parsed, retry_of, versions_kept
from paddlecloud.controllers.paddleservice.resolution import Resolution
from paddlecloud.controllers.paddleservice.status import READY
from paddlecloud.controllers.paddleservice.template import DesiredRevision, folder_problem, wanted
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.conditions import ConditionState, condition_in, condition_of
from paddlecloud.kube.plan import Plan, PlannedEvent
from paddlecloud.kube.resource import Object, owner_reference

LOOK_AGAIN = 2.0
"""Seconds between two looks at the errors and times of a roll-out."""


def decide(service: Object, observed: Observed, now: float) -> Plan:
    if service["metadata"].get("deletionTimestamp"):
        return Plan()  # what was made goes with its owner
    if observed.rival:
        name = service["metadata"]["name"]
        text = f"{name} exists in {observed.rival} as well and came first; delete one of them or rename it"
        return _refusal(service, status.CONFLICT, text, now)
    parsed = observed.parsed or Parsed.of(service)
    settings = parsed.settings
    if settings is None:
        return _refusal(service, "InvalidSpec", parsed.problem, now)
    if problem := folder_problem(settings, observed.site):
        return _refusal(service, "FolderNotAllowed", problem, now)
    resolutions = _resolve(service, settings, observed)
    if (unserved := _unserved(resolutions, observed)) is not None:
        return _refusal(service, unserved.reason, unserved.message, now, resolutions)
    versions = {endpoint: found.version for endpoint, found in resolutions.items() if found.version is not None}
    found = wanted(settings, observed.site, observed.fingerprints, versions, retry=retry_of(service))
    if observed.engine == "Knative":
        plan = _on_knative(service, settings, found, observed, resolutions, now)
    else:
        plan = _on_deployments(service, settings, found, observed, resolutions, now)
    plan.events += _news(service, plan.status or {})
    if int((service.get("status") or {}).get("observedGeneration") or 0) != service["metadata"].get("generation", 0):
        plan.events += [PlannedEvent("Note", warning) for warning in parsed.warnings]
    return plan


def _resolve(service: Object, settings: ServiceSettings, observed: Observed) -> dict[str, Resolution]:
    kept = versions_kept(service, settings)
    return resolution.resolve(settings, observed.hub, kept, endpoint=observed.site.model_endpoint)


def _unserved(resolutions: Mapping[str, Resolution], observed: Observed) -> ConditionState | None:
    """Why no pod can be made of a model that is named."""
    for endpoint, found in resolutions.items():
        if found.version is None:
            return found.state._replace(message=f"{endpoint} model: {found.state.message}")
        if found.version.in_hub and not (observed.site.hub.url and observed.site.hub.key):
            return ConditionState("False", "NoModelHub", f"{endpoint} model: {hub_pods.NO_HUB}")
    return None


def _refusal(
    service: Object, reason: str, message: str, now: float, resolutions: Mapping[str, Resolution] | None = None
) -> Plan:
    after = status.refused(service, reason, message, now=now, resolutions=resolutions)
    said = (service.get("status") or {}).get("message") == message
    events = [] if said else [PlannedEvent(reason, message, type="Warning")]
    return Plan(status=after, events=events)


def _on_knative(
    service: Object,
    settings: ServiceSettings,
    found: Mapping[str, DesiredRevision],
    observed: Observed,
    resolutions: Mapping[str, Resolution],
    now: float,
) -> Plan:
    plan = Plan()
    old = service.get("status") or {}
    split = traffic.decide(_situation(service, settings, found, observed, now))
    own = owner_reference(service)
    knative.apply_to_plan(plan, service, own, observed.kservice, found, observed.revisions, split.shares)
    endpoints = {DEFAULT: (split.serving, settings.default), CANARY: (found.get(CANARY), settings.canary)}
    dialled: dict[str, tuple[Object, int]] = {}
    for endpoint, (target, spec) in endpoints.items():
        if target is not None and spec is not None:
            name = target if isinstance(target, str) else target.name
            dialled[endpoint] = ({KNATIVE_REVISION: name}, spec.port)
    aliases.apply_to_plan(plan, service, own, observed.services, dialled)
    if observed.kservice is not None:
        needed = {*split.shares, *(revision.name for revision in found.values()), split.went_back}
        knative.forget(plan, service["metadata"]["namespace"], observed.kservice, observed.revisions, needed)
    note = _not_routed(observed.kservice)
    plan.status = status.status_of(
        service,
        settings,
        found,
        observed,
        split,
        routes=_routes(observed.kservice),
        place=_place(observed.kservice),
        note=note,
        now=now,
        resolutions=resolutions,
    )
    if note and note == plan.status.get("message") != old.get("message"):
        plan.events.append(PlannedEvent("Note", note))
    if split.step is not None and split.step.due is not None:
        plan.after = max(0.05, min(split.step.due - now, LOOK_AGAIN))
    elif split.step is not None and split.step.percent and settings.rollout and settings.rollout.has_limits:
        plan.after = LOOK_AGAIN  # paused, and judged all the same
    return plan


def _situation(
    service: Object, settings: ServiceSettings, found: Mapping[str, DesiredRevision], observed: Observed, now: float
) -> traffic.Situation:
    old = service.get("status") or {}
    rollout, remembered = old.get("rollout") or {}, old.get("annotations") or {}
    default, due = found[DEFAULT].name, _time(rollout.get("nextStepTime"))
    went_back, not_before = str(remembered.get(WENT_BACK, "")), None
    under = status.rollout_digest(service)
    if went_back == default and remembered.get(WENT_BACK_UNDER, under) != under:
        went_back, not_before = "", (_time(rollout.get("wentBackTime")) or now) + traffic.FORGOTTEN_AFTER
    elif rollout.get("phase") == "Waiting" and (old.get("default") or {}).get("latest") == default:
        not_before = due
    return traffic.Situation(
        settings=settings,
        default=default,
        canary=found[CANARY].name if CANARY in found else None,
        revisions=observed.revisions,
        current=knative.shares_of(observed.kservice),
        due=due,
        went_back=went_back,
        now=now,
        reason=str(rollout.get("message") or "went back"),
        not_before=not_before,
    )


def _time(text: str | None) -> float | None:
    return parse_rfc3339(text) if text else None


def _place(kservice: Object | None) -> Object:
    """Where it is reached; by name as well, where its platform says so."""
    status = (kservice or {}).get("status") or {}
    place = {name: status[name] for name in ("url", "address") if status.get(name)}
    if by_name := (status.get("annotations") or {}).get(NAME_URL):
        place["nameUrl"] = by_name
    return place


def _not_routed(kservice: Object | None) -> str:
    """Why HTTP/2 does not reach a service that uses it, where its platform says so."""
    found = condition_of(kservice or {}, HTTP2_READY) or {}
    return str(found.get("message", "")) if found.get("status") == "False" else ""


def _routes(kservice: Object | None) -> ConditionState:
    found = condition_of(kservice or {}, "RoutesReady") or {}
    if not found:
        return ConditionState("Unknown", "Creating", "the route is being created")
    if found.get("status") == "True":
        return READY
    return ConditionState(str(found.get("status")), found.get("reason") or "NotReady", found.get("message", ""))


def _on_deployments(
    service: Object,
    settings: ServiceSettings,
    found: Mapping[str, DesiredRevision],
    observed: Observed,
    resolutions: Mapping[str, Resolution],
    now: float,
) -> Plan:
    plan = Plan()
    own, name = owner_reference(service), settings.name
    deployment.apply_to_plan(plan, service, own, settings, found, observed)
    ports = {DEFAULT: settings.default, CANARY: settings.canary}
    dialled = {
        endpoint: ({SERVICE: name, ENDPOINT: endpoint}, ports[endpoint].port)  # type: ignore[union-attr]
        for endpoint in found
    }
    aliases.apply_to_plan(plan, service, own, observed.services, dialled)
    percent = settings.canary_percent
    shares = {found[DEFAULT].name: 100 - percent}
    if CANARY in found:
        shares[found[CANARY].name] = percent
    url = f"http://{name}.{settings.namespace}.svc.cluster.local"
    note = deployment.NOTE + (deployment.NO_STEPS if settings.rollout else "")
    routes = ConditionState("True", "WithoutKnative", note)
    if observed.services.get(name) is None:
        routes = ConditionState("Unknown", "Creating", "the Service is being created")
    plan.status = status.status_of(
        service,
        settings,
        found,
        observed,
        traffic.TrafficSplit(shares, found[DEFAULT].name),
        routes=routes,
        place={"url": url, "address": {"url": url}},
        note=note,
        now=now,
        resolutions=resolutions,
    )
    return plan


def _news(service: Object, after: Object) -> list[PlannedEvent]:
    """One event for each change that people would want to know of."""
    before = service.get("status") or {}
    events = []
    old, new = (_condition(s, "Ready") for s in (before, after))
    moved = new.get("status") != old.get("status")
    if moved and new.get("status") == "True":
        events.append(PlannedEvent("Ready", f"answers at {after.get('url', '')}"))
    if new.get("status") == "False" and (moved or new.get("reason") != old.get("reason")):
        events.append(PlannedEvent(str(new["reason"]), new.get("message", ""), type="Warning"))
    if new.get("reason") == status.AWAITED and new.get("message") != old.get("message"):
        events.append(PlannedEvent(status.AWAITED, new["message"]))
    model_old, model_new = (_condition(s, status.MODEL_READY) for s in (before, after))
    if model_new.get("reason") != model_old.get("reason") and model_new.get("message"):
        kind = "Normal" if model_new.get("status") == "True" else "Warning"
        events.append(PlannedEvent(str(model_new["reason"]), model_new["message"], type=kind))
    canary_old, canary_new = (_condition(s, "CanaryEndpointReady") for s in (before, after))
    if canary_new.get("status") == "False" and canary_old.get("status") != "False":
        events.append(PlannedEvent("CanaryFailed", canary_new.get("message", ""), type="Warning"))
    went_back = (after.get("annotations") or {}).get(WENT_BACK)
    if went_back and (before.get("annotations") or {}).get(WENT_BACK) != went_back:
        text = f"{went_back} {(after.get('rollout') or {}).get('message', '')}"
        events.append(PlannedEvent("WentBack", text, type="Warning"))
    was, now = (status.newest(s) for s in (before, after))
    if was and was != now:
        events.append(PlannedEvent("NewRevision", f"{now} follows {was}"))
    return events


def _condition(status: Object, kind: str) -> Object:
    return condition_in(status.get("conditions") or (), kind) or {}
