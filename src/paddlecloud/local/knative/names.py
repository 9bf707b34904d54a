"""Names that Knative gives to things: collections, labels, annotations, hosts."""

from __future__ import annotations

import re

from paddlecloud.kube.resource import Object, Resource

GROUP = "serving.knative.dev"
SERVICES = Resource(GROUP, "v1", "services", "Service")
CONFIGURATIONS = Resource(GROUP, "v1", "configurations", "Configuration")
REVISIONS = Resource(GROUP, "v1", "revisions", "Revision")
ROUTES = Resource(GROUP, "v1", "routes", "Route")

SERVICE = f"{GROUP}/service"
CONFIGURATION = f"{GROUP}/configuration"
GENERATION = f"{GROUP}/configurationGeneration"
REVISION = f"{GROUP}/revision"
REVISION_UID = f"{GROUP}/revisionUID"
ROUTE = f"{GROUP}/route"
ROUTED = f"{GROUP}/routes"
"""Annotation of a revision: the routes that lead to it."""

MEASURES = "gateway.paddlecloud.dev/measures"
"""Annotation in a revision's status: what its clients saw lately, as JSON; while it shares a route with another."""
COLD_START = "gateway.paddlecloud.dev/cold-start"
"""Annotation in a revision's status: where the time of its last start from zero went, as JSON."""

HTTP2_READY = "HTTP2Ready"
"""Condition of routes and services whose port is named `h2c`: whether HTTP/2 is routed. Ready does not depend on it."""

AUTOSCALING = "autoscaling.knative.dev"
CONTAINER = "user-container"
"""Name of a container that was given none."""

DOMAIN = "example.com"
"""Knative's stock domain: what a Host header says on a cluster nobody configured."""

OPENABLE = "localhost"
"""Names below it lead to this machine for browsers and curl. Programs that ask the C library find them only where
nss-myhostname is installed, which is why a route has a port of its own as well."""

NAME_URL = "gateway.paddlecloud.dev/name-url"
"""Annotation in the status of routes and services: their URL by name, on the port that all of them share."""

CLUSTER_DOMAIN = "svc.cluster.local"

_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_RULE = "at most 63 lower case letters, digits and '-', a letter first, no '-' last"


def is_label(text: str) -> bool:
    """Whether it is one label of a host (DNS 1035). One with dots could be the host of another namespace."""
    return _LABEL.fullmatch(text) is not None


def deployment_of(revision: str) -> str:
    return f"{revision}-deployment"


def private_of(revision: str) -> str:
    return f"{revision}-private"


def key(obj: Object) -> str:
    """`namespace/name`: how gateways and autoscaler know a revision."""
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def hosts_of(name: str, namespace: str) -> list[str]:
    """Every Host under which a route answers."""
    inside = f"{name}.{namespace}"
    return [
        f"{inside}.{DOMAIN}",
        f"{inside}.{OPENABLE}",
        f"{inside}.{CLUSTER_DOMAIN}",
        f"{inside}.svc",
        inside,
    ]


def address_of(name: str, namespace: str) -> str:
    return f"http://{name}.{namespace}.{CLUSTER_DOMAIN}"
