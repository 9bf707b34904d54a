"""Names that Knative gives to things: collections, labels, annotations, hosts."""

from __future__ import annotations

import re

from paddlecloud.kube.resource import (
    KNATIVE_CONFIGURATIONS,
    KNATIVE_REVISIONS,
    KNATIVE_ROUTES,
    KNATIVE_SERVICES,
    Object,
)

GROUP = "serving.knative.dev"
SERVICES, CONFIGURATIONS = KNATIVE_SERVICES, KNATIVE_CONFIGURATIONS
REVISIONS, ROUTES = KNATIVE_REVISIONS, KNATIVE_ROUTES

SERVICE = f"{GROUP}/service"
CONFIGURATION = f"{GROUP}/configuration"
GENERATION = f"{GROUP}/configurationGeneration"
REVISION = f"{GROUP}/revision"
REVISION_UID = f"{GROUP}/revisionUID"
ROUTE = f"{GROUP}/route"

AUTOSCALING = "autoscaling.knative.dev"
CONTAINER = "user-container"
"""Name of a container that was given none."""

DOMAIN = "example.com"
"""Knative's stock domain: what a Host header says on a cluster nobody configured."""

OPENABLE = "localhost"
"""Names below it lead to this machine for browsers and curl. Programs that ask the C library find them only where
nss-myhostname is installed, which is why a route has its own port as well."""

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
