"""Names of what a PaddleService becomes: annotations, and the Services that clients dial."""

from __future__ import annotations

from paddlecloud.api.names import SERVICE, SERVING

WENT_BACK = f"{SERVING}/went-back"
"""Annotation in a status: the revision that a roll-out went back from."""
WENT_BACK_UNDER = f"{SERVING}/went-back-under"
"""Annotation in a status: a digest of the `spec.rollout` under which it went back."""

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
