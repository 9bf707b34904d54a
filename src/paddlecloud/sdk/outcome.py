"""How far an object is: the end of one that ends by itself (PaddleJob, Job, Workflow, Pod), and the failure of a
PaddleService. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

from paddlecloud.api.names import RETRY_AT
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import parse_rfc3339, rfc3339_micro

SUCCEEDED = frozenset(("Completed", "Succeed", "Succeeded", "Complete"))
FAILED = frozenset(("Failed", "Error", "SyncFailed", "Lost", "Terminated", "Aborted"))

FINISHING = frozenset(("Job", "PaddleJob", "SampleJob", "Workflow"))
"""Kinds whose purpose is to end."""

SPEC_REFUSALS = frozenset(("InvalidSpec", "FolderNotAllowed", "Conflict"))
"""Reasons with which the controller refuses a PaddleService until its spec is changed."""
MODEL_REFUSALS = frozenset(("ModelNotFound", "AliasNotFound", "VersionNotFound", "NoModelHub"))
"""And those that end by themselves once the model is there."""
SERVICE_REFUSALS = SPEC_REFUSALS | MODEL_REFUSALS
"""All reasons with which it makes nothing of a spec."""

_ENDPOINTS = {"Ready": ("DefaultEndpointReady",), "DefaultEndpointReady": ("DefaultEndpointReady",)}
"""By condition that is waited for: the endpoints whose failure it does not survive; of others, the one of that name."""


class ServiceFailure(NamedTuple):
    reason: str
    message: str


def condition(obj: Object, kind: str) -> Object | None:
    for entry in (obj.get("status") or {}).get("conditions") or ():
        if isinstance(entry, dict) and str(entry.get("type", "")).lower() == kind.lower():
            return entry
    return None


def is_true(obj: Object, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def message_of(obj: Object) -> str:
    """The best one-line explanation an object carries in its status."""
    status = obj.get("status") or {}
    text = status.get("message") or status.get("reason") or ""
    for kind in ("Failed", "Ready", "Available", "Progressing"):
        entry = condition(obj, kind)
        if not text and entry is not None:
            text = entry.get("message") or entry.get("reason") or ""
    return str(text)


def ending(obj: Object) -> Literal["succeeded", "failed"] | None:
    """How it ended, or None while it goes on."""
    phase = str((obj.get("status") or {}).get("phase") or "")
    if phase in SUCCEEDED or is_true(obj, "Complete") or is_true(obj, "Succeeded"):
        return "succeeded"
    if phase in FAILED or is_true(obj, "Failed"):
        return "failed"
    return None


def is_final(obj: Object) -> bool:
    """Whether it has ended and its status will not change any more: no other run has been requested since."""
    if obj.get("kind") not in (*FINISHING, "Pod") or ending(obj) is None:
        return False
    if awaits_retry(obj):
        return False
    meta, status = obj.get("metadata") or {}, obj.get("status") or {}
    observed = status.get("observedGeneration")
    return observed is None or int(observed) >= int(meta.get("generation") or 0)


def awaits_retry(obj: Object) -> bool:
    """Whether another attempt was requested that the controller has not begun: its status is of the one before."""
    asked = ((obj.get("metadata") or {}).get("annotations") or {}).get(RETRY_AT)
    return bool(asked) and asked != (obj.get("status") or {}).get("retriedAt")


def service_failure(service: Object, wanted: str) -> ServiceFailure | None:
    """Why the condition `wanted` of a PaddleService does not become true unless its spec or what it needs is changed.

    The controller refused the spec, or reports that the newest revision failed: its image cannot be pulled, its
    configuration is missing, its program ended (which is how the inference server refuses a model), or it made no
    progress until the deadline of its Deployment. As Knative's `kn service create`, this takes False for a failure and
    Unknown for a start in progress. Kubernetes goes on trying, so a later success is not excluded. A plan that the API
    refused (`Refused`) is not meant: the controller retries it.
    """
    if awaits_retry(service):
        return None
    generation = int((service.get("metadata") or {}).get("generation") or 0)
    for kind in ("Ready", *_ENDPOINTS.get(wanted, (wanted,))):
        entry = condition(service, kind) or {}
        reason = str(entry.get("reason") or "")
        if entry.get("status") != "False" or int(entry.get("observedGeneration") or 0) < generation:
            continue
        if kind != "Ready" or reason in SERVICE_REFUSALS:
            return ServiceFailure(reason, str(entry.get("message") or reason))
    return None


def is_behind(service: Object) -> bool:
    """Whether another attempt would serve other files than those that the service keeps: the alias of its model was
    moved and is not followed, or the version was pushed again."""
    return (condition(service, "ModelReady") or {}).get("reason") in ("AliasMoved", "DigestMismatch")


def retry_time(job: Object, now: float) -> str:
    """A request counts when it is later than the end of the run before, by whatever clock that end was written."""
    ended = (job.get("status") or {}).get("completionTime")
    return rfc3339_micro(max(now, parse_rfc3339(ended) + 1e-6 if ended else now))


def retry_patch(obj: Object, now: float) -> Object:
    """Requests another attempt."""
    return {"metadata": {"uid": obj["metadata"]["uid"], "annotations": {RETRY_AT: retry_time(obj, now)}}}
