"""How far an object is: finished, ready, failed or stuck for want of a node. Pure; behind wait, apply --wait, describe.

Kinds that end by themselves (jobs) are judged by their phase or their Complete/Failed conditions; kinds that serve are
judged by readiness. A kind this module knows nothing of is ready unless a Ready condition says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from paddlecloud.cli.failures import CANCELLED, JOB_FAILED, OK
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.outcome import FINISHING as FINISHING
from paddlecloud.sdk.outcome import SERVICE_REFUSALS, ending, is_final, service_failure
from paddlecloud.sdk.outcome import condition as condition
from paddlecloud.sdk.outcome import is_true as is_true
from paddlecloud.sdk.outcome import message_of as message_of

_BUILD = re.compile(r"pdc image build (?:-f \S+ -t )?\S+")
"""The command that the embedded platform names for an image it cannot make without a recipe."""

_NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '(\w+)'", re.MULTILINE)
"""Of a whole package: of one that lacks a submodule (`a.b`), another version is needed."""

PACKAGES = {"PIL": "pillow", "cv2": "opencv-python-headless", "sklearn": "scikit-learn", "yaml": "pyyaml"}
"""Modules that are often imported and whose package has another name."""


class Outcome(NamedTuple):
    """A final state; `exit_code` is what a waiting command ends with."""

    state: str
    exit_code: int
    message: str = ""


GONE = Outcome("cancelled", CANCELLED, "it was deleted before it finished")


def finished(obj: Object) -> Outcome | None:
    """The end of an object that ends by itself, or None while it goes on."""
    state = ending(obj)
    if state is None:
        return None
    return Outcome(state, OK if state == "succeeded" else JOB_FAILED, message_of(obj))


def holding_deletion(obj: Object) -> str:
    """What the deletion of an object waits for, as its controller reports it; empty where it reports nothing."""
    entry = condition(obj, "InUse") if obj["metadata"].get("deletionTimestamp") else None
    return str(entry.get("message") or "") if entry and entry.get("status") == "True" else ""


def failed_pod(obj: Object) -> str:
    """The pod that made a job fail; empty for a job that has not, and for every other kind."""
    end = finished(obj)
    failures = (obj.get("status") or {}).get("failures") or [{}]
    return str(failures[-1].get("pod") or "") if end is not None and end.state == "failed" else ""


def next_step(obj: Object, *, embedded: bool = False) -> str:
    """What mends a job whose program could not even begin, or lacks a package; empty where its output says it.

    `embedded`: images are made from recipes, on this machine."""
    failures = (obj.get("status") or {}).get("failures") or [{}]
    again = f"pdc retry {obj['metadata']['name']}"
    kind, message = failures[-1].get("failureClass"), str(failures[-1].get("message") or "")
    if kind == "Image":
        build = build_command(message)
        return f"{build}, then: {again}" if build else f"pdc image ls, or another --image; then: {again}"
    if kind == "Config":
        return f"create what is missing, then: {again}"
    if kind == "Mount":
        return f"make what it mounts available, or correct the volume in the job; then: {again}"
    if missing := _NO_MODULE.findall(message):
        return _with_package(obj, PACKAGES.get(missing[-1], missing[-1]), embedded=embedded)
    return ""


def build_command(message: str) -> str:
    """The command that builds an image, where the embedded platform names it; empty otherwise."""
    found = _BUILD.search(message)
    return found[0] if found else ""


def _with_package(job: Object, package: str, *, embedded: bool) -> str:
    if not embedded:
        return f"if it is a package and no file of yours: an --image that has {package}"
    template = ((job.get("spec") or {}).get("worker") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or [{}]
    lines = f"base: {containers[0].get('image') or 'paddlecloud/paddle:3.3'}", f"pip: [{package}]"
    written = " and ".join(f'"{line}"' for line in lines)
    return (
        f"if it is a package and no file of yours: write the lines {written} into image.yaml, "
        "then: pdc image build -f image.yaml -t mine:1, and run it with --image mine:1"
    )


def ended_otherwise(obj: Object, wanted: str = "") -> Outcome | None:
    """How a wait for a status ends that will not come: the object has ended, its spec is refused, or the revision of a
    service failed.

    `wanted` is the condition that is to become true, where it is one.
    """
    if wanted and obj.get("kind") == "PaddleService":
        return _failed(obj, wanted)
    if text := _refusal(obj, changed=False):
        return Outcome("refused", JOB_FAILED, text)
    state = ending(obj)
    if state is None or not is_final(obj):
        return None
    message = message_of(obj)
    text = f"it has {state}, and what is waited for cannot come any more"
    return Outcome(state, JOB_FAILED, f"{text}: {message}" if message else text)


def settled(obj: Object, *, changed: bool = True) -> Outcome | None:
    """What `apply --wait` waits for: the end of a job, the readiness of everything else; None while neither.

    `changed`: the apply was a change, so that a status of this generation was written after it.
    """
    kind = str(obj.get("kind"))
    if text := _refusal(obj, changed=changed):
        return Outcome("refused", JOB_FAILED, text)
    if kind in FINISHING:
        return finished(obj)
    phase = (obj.get("status") or {}).get("phase")
    if kind == "Pod" and phase in ("Succeeded", "Failed"):
        return finished(obj)
    if phase in ("SyncFailed", "Lost"):
        return finished(obj) if _observed(obj) else None
    if kind == "PaddleService" and (failed := _failed(obj, *_awaited_of(obj))) is not None:
        return failed
    if kind == "PaddleService" and _service(obj) and (rollout := rollout_of(obj)):
        return _rolled_out(obj, rollout)
    if not _READY.get(kind, _generic)(obj):
        return None
    return Outcome("ready", OK, remark(obj) if changed or kind != "SampleSet" else "")


def rollout_of(service: Object) -> Object:
    """The roll-out of a new default that has not got all of the traffic, with the names of both revisions."""
    status = service.get("status") or {}
    default, found = status.get("default") or {}, status.get("rollout") or {}
    if service.get("kind") != "PaddleService" or not found.get("phase") or not default.get("latest"):
        return {}
    return {**found, "serving": default.get("name"), "latest": default["latest"]}


def standing_in(service: Object) -> str:
    """The revision that gets the traffic while the present spec of a service has none that could: it failed, is still
    starting, or its controller refused the spec. Empty where there is no such."""
    if service.get("kind") != "PaddleService" or is_true(service, "Ready"):
        return ""
    default = (service.get("status") or {}).get("default") or {}
    refused = (condition(service, "Ready") or {}).get("reason") in SERVICE_REFUSALS
    if default.get("latest") or (refused and is_true(service, "DefaultEndpointReady")):
        return str(default.get("name") or "")
    return ""


def failed_beside(service: Object) -> str:
    """The revision that gets the traffic of a service whose present spec failed; empty where nothing failed."""
    return standing_in(service) if service_failure(service, "Ready") is not None else ""


def _rolled_out(service: Object, rollout: Object) -> Outcome | None:
    if rollout["phase"] == "WentBack":
        return Outcome("failed", JOB_FAILED, remark(service))
    if rollout["phase"] == "Paused":
        return Outcome("ready", OK, f"its roll-out is paused at {rollout.get('percent') or 0} %")
    return None


def is_refused(obj: Object) -> bool:
    """Whether its controller refuses its spec, or waits for the user before it begins."""
    return (condition(obj, "Valid") or {}).get("status") == "False"


_BY_THE_SPEC = frozenset(("InvalidSpec", "SourceChanged", "BadOptions"))
"""Reasons with which the controller of SampleSets refuses a spec, until it is changed."""
_BY_THE_MACHINE = frozenset(("FolderNotAllowed", "SourceIsFile", "SourceNotExist", "DataRetained"))
"""And those that also end when the user changes something else: no watch reports it, so the status may be old."""
_INVALID_POD = re.compile(r"\bis invalid: ")
"""How an API server refuses an object whose fields are wrong; a quota or a permission is refused in other words."""


def _refusal(obj: Object, *, changed: bool) -> str:
    """Why nothing comes of the object before the user changes something; empty where something may."""
    if not _observed(obj):
        return ""
    if obj.get("kind") == "PaddleJob":
        created = condition(obj, "Created") or {}
        text = str(created.get("message") or "")
        return text if created.get("status") == "False" and _INVALID_POD.search(text) else ""
    if obj.get("kind") != "SampleSet":
        return ""
    reasons = _BY_THE_SPEC | _BY_THE_MACHINE if changed else _BY_THE_SPEC
    for entry in (condition(obj, kind) or {} for kind in ("Valid", "Synced")):
        if entry.get("status") == "False" and entry.get("reason") in reasons:
            return str(entry.get("message") or entry["reason"])
    return ""


def remark(obj: Object) -> str:
    """What the controller adds to a service that is ready: that its platform does not route HTTP/2, for one. Of a set
    that was imported: that it has files which its source does not have."""
    if obj.get("kind") == "SampleSet":
        synced = condition(obj, "Synced") or {}
        return str(synced.get("message") or "") if synced.get("reason") == "Synced" else ""
    if obj.get("kind") != "PaddleService":
        return ""
    return " ".join(str((obj.get("status") or {}).get("message") or "").split())


def _failed(service: Object, *wanted: str) -> Outcome | None:
    failures = (service_failure(service, kind) for kind in wanted)
    failure = next((found for found in failures if found is not None), None)
    return Outcome("failed", JOB_FAILED, failure.message) if failure else None


def unschedulable(obj: Object) -> str:
    """The scheduler's words when the object waits for a node it cannot get; empty otherwise."""
    for entry in (obj.get("status") or {}).get("conditions") or ():
        if entry.get("reason") in ("Unschedulable", "NotEnoughResources") and entry.get("status") != "True":
            return str(entry.get("message") or entry["reason"])
        if entry.get("type") == "Unschedulable" and entry.get("status") == "True":
            return str(entry.get("message") or "Unschedulable")
    return ""


def _number(obj: Object, section: str, field: str, default: int = 0) -> int:
    value = (obj.get(section) or {}).get(field)
    return value if isinstance(value, int) else default


def _observed(obj: Object) -> bool:
    return _number(obj, "status", "observedGeneration") >= int(obj["metadata"].get("generation") or 0)


def _deployment(obj: Object) -> bool:
    wanted = _number(obj, "spec", "replicas", 1)
    counts = [_number(obj, "status", field) for field in ("updatedReplicas", "availableReplicas", "replicas")]
    return _observed(obj) and counts == [wanted] * 3


def _replicas(obj: Object) -> bool:
    return _observed(obj) and _number(obj, "status", "readyReplicas") >= _number(obj, "spec", "replicas", 1)


def _daemonset(obj: Object) -> bool:
    wanted = _number(obj, "status", "desiredNumberScheduled", -1)
    return _observed(obj) and _number(obj, "status", "numberAvailable") == wanted


def _generic(obj: Object) -> bool:
    entry = condition(obj, "Ready")
    if entry is not None:
        return entry.get("status") == "True" and _observed_by(entry, obj)
    return True


def _observed_by(entry: Object, obj: Object) -> bool:
    """A condition that names the generation it was judged on counts only for that generation."""
    seen = entry.get("observedGeneration") or (obj.get("status") or {}).get("observedGeneration")
    return seen is None or int(seen) >= int(obj["metadata"].get("generation") or 0)


def _phase(*good: str) -> Callable[[Object], bool]:
    def check(obj: Object) -> bool:
        status: dict[str, Any] = obj.get("status") or {}
        return status.get("phase") in good

    return check


def _has_ready(obj: Object) -> bool:
    return condition(obj, "Ready") is not None and _generic(obj)


def _service(obj: Object) -> bool:
    found = [condition(obj, kind) or {} for kind in _awaited_of(obj)]
    return all(entry.get("status") == "True" and _observed_by(entry, obj) for entry in found)


def _awaited_of(service: Object) -> tuple[str, ...]:
    """With its canary, where it has one: its share of the traffic is not answered before."""
    return ("Ready", "CanaryEndpointReady") if (service.get("spec") or {}).get("canary") else ("Ready",)


_READY: dict[str, Callable[[Object], bool]] = {
    "Pod": _has_ready,
    "Deployment": _deployment,
    "StatefulSet": _replicas,
    "ReplicaSet": _replicas,
    "ReplicationController": _replicas,
    "DaemonSet": _daemonset,
    "PersistentVolumeClaim": _phase("Bound"),
    "Namespace": _phase("Active"),
    "SampleSet": _phase("Ready"),
    "PaddleService": _service,
    "CustomResourceDefinition": lambda obj: is_true(obj, "Established"),
}
