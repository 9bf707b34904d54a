"""Names of what a PaddleService becomes: collections, labels, and the Services that clients dial."""

from __future__ import annotations

from paddlecloud.kube.resource import Resource

GROUP = "serving.paddlepaddle.org"
EARLIER_GROUP = "elasticserving.paddlepaddle.org"
PADDLESERVICES = Resource(GROUP, "v1", "paddleservices", "PaddleService")
EARLIER_PADDLESERVICES = Resource(EARLIER_GROUP, "v1", "paddleservices", "PaddleService")

KSERVICES = Resource("serving.knative.dev", "v1", "services", "Service")
KREVISIONS = Resource("serving.knative.dev", "v1", "revisions", "Revision")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")

SERVICE = f"{GROUP}/service"
ENDPOINT = f"{GROUP}/endpoint"
"""Label: whether a revision is a default or a canary."""
REVISION = f"{GROUP}/revision"
ORIGINAL_LABEL = "PaddleService"
"""The label by which the original controller marked pods."""
SOURCE = f"{GROUP}/source"
"""Annotation of a revision: the endpoint it was made from, so that one can go back to it."""
WENT_BACK = f"{GROUP}/went-back"
"""Annotation in a status: the revision that a roll-out went back from."""
MEASURES = "gateway.paddlecloud.dev/measures"
COLD_START = "gateway.paddlecloud.dev/cold-start"
"""Annotations that the embedded Knative leaves in a revision's status, as JSON; other Knatives do not."""
NAME_URL = "gateway.paddlecloud.dev/name-url"
"""Annotation that the embedded Knative leaves in a service's status; other Knatives do not."""
HTTP2_READY = "HTTP2Ready"
"""Condition that the embedded Knative gives to services that speak HTTP/2; other Knatives do not."""
KNATIVE_REVISION = "serving.knative.dev/revision"

DEFAULT, CANARY = "default", "canary"


def revision_name(service: str, endpoint: str, digest: str) -> str:
    return f"{service}-{endpoint}-{digest}"


def aliases(service: str, endpoint: str) -> tuple[str, ...]:
    """Services by which clients dial the pods of an endpoint directly, whatever its revision is called now."""
    if endpoint == DEFAULT:
        return (f"{service}-default", f"{service}-default-private")
    return (f"{service}-canary-private",)


def selector(service: str) -> str:
    return f"{SERVICE}={service}"
