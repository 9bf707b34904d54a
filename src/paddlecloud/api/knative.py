"""Service, Configuration, Revision and Route of Knative (`serving.knative.dev/v1`).

They belong to Knative. A cluster has them from there; the embedded platform, which runs a subset of Knative Serving,
serves them by these declarations. Field names and columns are Knative's. Templates are kept whole: their container is a
core/v1 Container, judged by the platform when it is written.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from paddlecloud.api.fields import CONDITION_LIST, Condition, Embedded, Int32, Int64, Root, Wire, doc
from paddlecloud.api.kind import Column, KindDeclaration

GROUP = "serving.knative.dev"


class TrafficTarget(Wire):
    """A share of the traffic and where it goes."""

    revision_name: Annotated[str | None, doc("The revision that gets it.")] = None
    configuration_name: Annotated[str | None, doc("Whose newest ready revision gets it; for Routes.")] = None
    latest_revision: Annotated[bool | None, doc("Whether the newest ready revision gets it.")] = None
    percent: Annotated[Int64 | None, doc("The share.", minimum=0, maximum=100)] = None
    tag: Annotated[str | None, doc("Gives this target a host of its own, `<tag>-<route>`.")] = None
    url: Annotated[str | None, doc("That host as a URL; in a status.")] = None


class KnativeCondition(Condition):
    """One aspect of the state, in Knative's form."""

    severity: Annotated[str | None, doc("Empty for what decides readiness, else Info.")] = None


Conditions = Annotated[list[KnativeCondition] | None, CONDITION_LIST, doc("Ready, and what it is made of.")]


class Address(Wire):
    """Where it is reached inside the cluster."""

    url: Annotated[str | None, doc("As a URL.")] = None


class ServiceSpec(Wire):
    """What runs and who gets how much of the traffic."""

    template: Annotated[Embedded | None, doc("The next revision: metadata and a pod spec with Knative's fields.")] = (
        None
    )
    traffic: Annotated[
        list[TrafficTarget] | None, doc("Shares; all of it goes to the newest ready revision when left out.")
    ] = None


class ServiceStatus(Wire):
    """What became of it."""

    conditions: Conditions = None
    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    latest_created_revision_name: Annotated[str | None, doc("The newest revision.")] = None
    latest_ready_revision_name: Annotated[str | None, doc("The newest revision that was ready.")] = None
    url: Annotated[str | None, doc("Where it is reached.")] = None
    address: Annotated[Address | None, doc("Where it is reached inside the cluster.")] = None
    traffic: Annotated[list[TrafficTarget] | None, doc("Where the traffic goes now.")] = None
    annotations: Annotated[dict[str, str] | None, doc("Remarks of the platform.")] = None


class Service(Root):
    """A program behind a URL: a Configuration and a Route in one."""

    spec: Annotated[ServiceSpec | None, doc("What runs and who gets how much of the traffic.")] = None
    status: Annotated[ServiceStatus | None, doc("What became of it.")] = None


class ConfigurationSpec(Wire):
    """What the next revision looks like."""

    template: Annotated[Embedded | None, doc("Metadata and a pod spec with Knative's fields.")] = None


class ConfigurationStatus(Wire):
    """Which revisions came of it."""

    conditions: Conditions = None
    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    latest_created_revision_name: Annotated[str | None, doc("The newest revision.")] = None
    latest_ready_revision_name: Annotated[str | None, doc("The newest revision that was ready.")] = None


class Configuration(Root):
    """Every change of its template makes a Revision."""

    spec: Annotated[ConfigurationSpec | None, doc("What the next revision looks like.")] = None
    status: Annotated[ConfigurationStatus | None, doc("Which revisions came of it.")] = None


class RevisionStatus(Wire):
    """Whether it can take requests."""

    conditions: Conditions = None
    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    service_name: Annotated[str | None, doc("The Service before its pods.")] = None
    log_url: Annotated[str | None, doc("Where its logs are read.")] = None
    container_statuses: Annotated[list[Embedded] | None, doc("Which image each container runs.")] = None
    actual_replicas: Annotated[Int32 | None, doc("Pods that are ready.")] = None
    desired_replicas: Annotated[Int32 | None, doc("Pods that should be there.")] = None
    annotations: Annotated[dict[str, str] | None, doc("Remarks of the platform.")] = None


class Revision(Root):
    """One version of a program, never changed."""

    spec: Annotated[Embedded | None, doc("A pod spec with Knative's fields.")] = None
    status: Annotated[RevisionStatus | None, doc("Whether it can take requests.")] = None


class RouteSpec(Wire):
    """Who gets how much of the traffic."""

    traffic: Annotated[list[TrafficTarget] | None, doc("Shares.")] = None


class RouteStatus(Wire):
    """Where it is reached and where its traffic goes."""

    conditions: Conditions = None
    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    url: Annotated[str | None, doc("Where it is reached.")] = None
    address: Annotated[Address | None, doc("Where it is reached inside the cluster.")] = None
    traffic: Annotated[list[TrafficTarget] | None, doc("Where the traffic goes now.")] = None
    annotations: Annotated[dict[str, str] | None, doc("Remarks of the platform.")] = None


class Route(Root):
    """A host name, and the revisions behind it."""

    spec: Annotated[RouteSpec | None, doc("Who gets how much of the traffic.")] = None
    status: Annotated[RouteStatus | None, doc("Where it is reached and where its traffic goes.")] = None


_READY = Column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status")
_REASON = Column("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason")
_CREATED = Column("LatestCreated", "string", ".status.latestCreatedRevisionName")
_LATEST_READY = Column("LatestReady", "string", ".status.latestReadyRevisionName")
_URL = Column("URL", "string", ".status.url")
_CATEGORIES = ("all", "knative", "serving")


def _declare(
    kind: str, type: type[msgspec.Struct], short: tuple[str, ...], doc: str, *columns: Column
) -> KindDeclaration:
    return KindDeclaration(
        group=GROUP,
        versions=("v1",),
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        short_names=short,
        categories=_CATEGORIES,
        type=type,
        doc=doc,
        columns=columns,
        foreign=True,
    )


SERVICE = _declare(
    "Service",
    Service,
    ("kservice", "ksvc"),
    "A program behind a URL that scales with its load, down to zero.",
    *(_URL, _CREATED, _LATEST_READY, _READY, _REASON),
)
CONFIGURATION = _declare(
    "Configuration",
    Configuration,
    ("config", "cfg"),
    "What the next revision looks like; every change of it makes one.",
    *(_CREATED, _LATEST_READY, _READY, _REASON),
)
REVISION = _declare(
    "Revision",
    Revision,
    ("rev",),
    "One version of a program, never changed.",
    Column("Config Name", "string", r".metadata.labels['serving\.knative\.dev/configuration']"),
    Column("Generation", "string", r".metadata.labels['serving\.knative\.dev/configurationGeneration']"),
    _READY,
    _REASON,
    Column("Actual Replicas", "integer", ".status.actualReplicas"),
    Column("Desired Replicas", "integer", ".status.desiredReplicas"),
)
ROUTE = _declare("Route", Route, ("rt",), "A host name, and the revisions behind it.", *(_URL, _READY, _REASON))
KINDS = (SERVICE, CONFIGURATION, REVISION, ROUTE)
