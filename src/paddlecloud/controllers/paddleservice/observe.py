"""What a decision about a PaddleService is based on, engine by engine the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from paddlecloud.api.names import COLD_START, ENDPOINT, MEASURES, MODEL_VERSION, RETRY_AT
from paddlecloud.api.paddleservice import ServiceSettings, decode, normalise, validate
from paddlecloud.api.problems import DecodeError
from paddlecloud.controllers.paddleservice.resolution import Hub, Version, kept_versions, named_models, read_mark
from paddlecloud.controllers.paddleservice.template import Site
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.conditions import condition_of
from paddlecloud.kube.resource import Object

Engine = Literal["Knative", "Deployment"]


class Measure(NamedTuple):
    """What clients of a revision saw lately. `requests` shows how much that is worth."""

    requests: int
    error_percent: float
    latency_milliseconds: float


class RevisionView(NamedTuple):
    """A revision as its engine shows it. `ready` is None while it is not known."""

    name: str
    endpoint: str
    ready: bool | None
    reason: str
    message: str
    replicas: int
    created: float
    uid: str
    cold_start: Mapping[str, int]
    measure: Measure | None = None
    spec: Mapping[str, Any] = {}
    """As the engine holds it, with what it filled in."""
    model: Version | None = None
    """The version of a model that it serves, where it was known by name."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The service's own object, decoded. One that is invalid has `problem` instead of settings."""

    settings: ServiceSettings | None
    warnings: tuple[str, ...] = ()
    problem: str = ""

    @classmethod
    def of(cls, service: Object) -> Parsed:
        try:
            decoded = decode(service)
        except DecodeError as error:
            return cls(None, problem=str(error))
        if problems := validate(decoded):
            return cls(None, problem="; ".join(map(str, problems)))
        settings, warnings = normalise(decoded)
        return cls(settings, tuple(warnings))


@dataclass(frozen=True, slots=True)
class Observed:
    """`rival` is the object of the same name in the other group, if that one came first."""

    parsed: Parsed | None = None
    """The decoded service: observing it took decoding, and `decide` does not repeat it."""
    engine: Engine = "Knative"
    kservice: Object | None = None
    revisions: Mapping[str, RevisionView] = field(default_factory=dict)
    services: Mapping[str, Object] = field(default_factory=dict)
    deployments: Mapping[str, Object] = field(default_factory=dict)
    autoscalers: Mapping[str, Object] | None = field(default_factory=dict)
    """None where the API server has no such kind."""
    rival: str = ""
    trouble: str = ""
    site: Site = field(default_factory=Site)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Of the folders of the node that models are taken from, as they were when the spec was first observed."""
    hub: Hub = field(default_factory=Hub)
    """The Models that the service may mean, and their versions."""


def retry_of(service: Object) -> str:
    """The last request for a retry; empty if there was none."""
    return str((service["metadata"].get("annotations") or {}).get(RETRY_AT) or "")


def versions_kept(service: Object, settings: ServiceSettings) -> dict[str, Version]:
    """What the models of a service meant so far, by endpoint; nothing once another attempt is requested."""
    status = service.get("status") or {}
    if retry_of(service) != str(status.get("retriedAt") or ""):
        return {}
    return kept_versions(status, named_models(settings))


def view(revision: Object) -> RevisionView:
    """Of a Knative Revision."""
    meta, status = revision["metadata"], revision.get("status") or {}
    ready = condition_of(revision, "Ready") or {}
    return RevisionView(
        name=meta["name"],
        endpoint=(meta.get("labels") or {}).get(ENDPOINT, ""),
        ready={"True": True, "False": False}.get(ready.get("status", "")),
        reason=ready.get("reason", ""),
        message=ready.get("message", ""),
        replicas=int(status.get("actualReplicas") or 0),
        created=parse_rfc3339(meta["creationTimestamp"]) if meta.get("creationTimestamp") else 0.0,
        uid=meta.get("uid", ""),
        cold_start=_remark(status, COLD_START),
        measure=_measure(_remark(status, MEASURES)),
        spec=revision.get("spec") or {},
        model=model_of(meta),
    )


def model_of(meta: Object) -> Version | None:
    """Of a revision's metadata, or of a pod template's."""
    return read_mark(str((meta.get("annotations") or {}).get(MODEL_VERSION) or ""))


def _remark(status: Object, name: str) -> Object:
    """JSON that the platform left in a status; nothing where it did not, or where it is not JSON."""
    try:
        found = json.loads((status.get("annotations") or {}).get(name) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _measure(found: Object) -> Measure | None:
    if not found:
        return None
    return Measure(
        requests=int(found.get("requests") or 0),
        error_percent=float(found.get("errorPercent") or 0.0),
        latency_milliseconds=float(found.get("p95Milliseconds") or 0.0),
    )


JUDGED_BY = frozenset({"maxErrorPercent", "maxLatencyMilliseconds"})


def judged_revision(service: Object, observed: Observed) -> RevisionView | None:
    """The revision that a roll-out in progress is to judge by its figures, while there are none."""
    state = service.get("status") or {}
    limits = ((service.get("spec") or {}).get("rollout") or {}).keys() & JUDGED_BY
    default = state.get("default") or {}
    found = observed.revisions.get(default.get("latest") or default.get("name", ""))
    return found if limits and state.get("rollout") and found is not None and found.measure is None else None
