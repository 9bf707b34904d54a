"""Which volume a claim gets, and what becomes of a volume whose claim is gone. Pure.

The rules are those of Kubernetes: same class, enough capacity, all access modes, same mode, matching selector; the
smallest that fits. A volume is first given to the claim (`claimRef`), then the claim to the volume, so that a crash in
between is completed by the next pass and no volume ever has two claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from paddlecloud.kube.plan import Delete, Patch, Plan, PlannedEvent
from paddlecloud.kube.quantity import whole
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, Object
from paddlecloud.kube.selectors import selects

LOCAL_CLASS = "local"
LOCAL_PROVISIONER = "paddlecloud.org/local"
DEFAULT_MARK = "storageclass.kubernetes.io/is-default-class"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def local_class() -> Object:
    """The class of claims that say nothing about theirs: a directory of this machine."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": LOCAL_CLASS, "annotations": {DEFAULT_MARK: "true"}},
        "provisioner": LOCAL_PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def class_of(claim: Object, classes: Mapping[str, Object]) -> str:
    """The claim's class; without one, the class marked as default. An empty text means: no class, on purpose."""
    named = claim["spec"].get("storageClassName")
    if named is not None:
        return str(named)
    for name, body in classes.items():
        if (body["metadata"].get("annotations") or {}).get(DEFAULT_MARK) == "true":
            return name
    return ""


def decide_claim(claim: Object, volumes: Collection[Object], classes: Mapping[str, Object], *, folder: Path) -> Plan:
    """Bring a claim one step closer to its volume. `folder` is where local volumes are made."""
    plan = Plan()
    status = claim.get("status") or {}
    if claim["metadata"].get("deletionTimestamp"):
        return plan
    if status.get("phase") == "Bound":
        if not any(volume["metadata"]["name"] == claim["spec"].get("volumeName") for volume in volumes):
            plan.status = {**status, "phase": "Lost"}
        return plan
    given = next((volume for volume in volumes if _is_given_to(volume, claim)), None)
    if given is not None:
        _complete(plan, claim, given)
        return plan
    chosen = _choose(claim, volumes, classes)
    if chosen is not None:
        plan.patch.append(_give(chosen, claim))
        return plan
    if claim["spec"].get("volumeName"):
        return plan  # it waits for that one volume
    body = classes.get(class_of(claim, classes))
    if body is not None and body.get("provisioner") == LOCAL_PROVISIONER:
        plan.create.append(_local_volume(claim, body, folder))
    else:
        plan.events.append(PlannedEvent("FailedBinding", _why_not(claim, classes), "Warning"))
    return plan


def _is_given_to(volume: Object, claim: Object) -> bool:
    ref = volume["spec"].get("claimRef") or {}
    return bool(ref.get("uid") == claim["metadata"]["uid"])


def _choose(claim: Object, volumes: Iterable[Object], classes: Mapping[str, Object]) -> Object | None:
    wanted = claim["spec"].get("volumeName")
    fitting = [
        volume
        for volume in volumes
        if _is_free_for(volume, claim)
        and wanted in (None, "", volume["metadata"]["name"])
        and (bool(wanted and volume["spec"].get("claimRef")) or _fits(volume, claim, classes))
    ]
    reserved = [volume for volume in fitting if volume["spec"].get("claimRef")]
    return min(reserved or fitting, key=lambda volume: (_capacity(volume), volume["metadata"]["name"]), default=None)


def _is_free_for(volume: Object, claim: Object) -> bool:
    """Nobody's, or reserved by its author for a claim of this name."""
    if volume["metadata"].get("deletionTimestamp"):
        return False
    ref = volume["spec"].get("claimRef")
    if not ref:
        return (volume.get("status") or {}).get("phase") not in ("Released", "Failed")
    meta = claim["metadata"]
    return not ref.get("uid") and (ref.get("namespace"), ref.get("name")) == (meta["namespace"], meta["name"])


def _fits(volume: Object, claim: Object, classes: Mapping[str, Object]) -> bool:
    spec, asked = volume["spec"], claim["spec"]
    selector = asked.get("selector")
    return (
        (spec.get("storageClassName") or "") == class_of(claim, classes)
        and set(asked.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and (spec.get("volumeMode") or "Filesystem") == (asked.get("volumeMode") or "Filesystem")
        and _capacity(volume) >= _requested(claim)
        and (not selector or selects(selector, volume["metadata"].get("labels") or {}))
    )


def _capacity(volume: Object) -> int:
    return whole((volume["spec"].get("capacity") or {}).get("storage") or 0)


def _requested(claim: Object) -> int:
    return whole(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or 0)


def _reference(claim: Object) -> Object:
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
    }


def _give(volume: Object, claim: Object) -> Patch:
    """Fails when somebody else was faster: the volume must be as it was seen."""
    meta = volume["metadata"]
    body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "spec": {"claimRef": _reference(claim)}}
    return Patch(PERSISTENTVOLUMES, meta["name"], None, body, seen=meta["resourceVersion"])


def _complete(plan: Plan, claim: Object, volume: Object) -> None:
    meta, name = claim["metadata"], volume["metadata"]["name"]
    if claim["spec"].get("volumeName") != name:
        marks = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
        body = {"metadata": {"annotations": marks}, "spec": {"volumeName": name}}
        plan.patch.append(Patch(PERSISTENTVOLUMECLAIMS, meta["name"], meta["namespace"], body))
    plan.status = {
        "phase": "Bound",
        "accessModes": list(volume["spec"].get("accessModes") or ()),
        "capacity": dict(volume["spec"].get("capacity") or {}),
    }


def _local_volume(claim: Object, storage_class: Object, folder: Path) -> Object:
    """A directory that is listed with the claim's size: nothing holds a directory to a size."""
    name = f"pvc-{claim['metadata']['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: LOCAL_PROVISIONER}},
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": list(claim["spec"].get("accessModes") or ()),
            "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": storage_class["metadata"]["name"],
            "hostPath": {"path": str(folder / name), "type": "DirectoryOrCreate"},
            "claimRef": _reference(claim),
        },
    }


def _why_not(claim: Object, classes: Mapping[str, Object]) -> str:
    name = class_of(claim, classes)
    if name and name not in classes:
        known = ", ".join(sorted(classes)) or "none"
        return f'no volume fits this claim, and storageclass "{name}" does not exist (there is: {known})'
    if name:
        return f'no volume fits this claim, and nothing on this machine provisions for storageclass "{name}"'
    return "no volume fits this claim and no storage class is set"


def decide_volume(volume: Object, claim: Object | None) -> Plan:
    """The volume's phase. Where the plan deletes it, its directory goes first. `claim` is the one it refers to."""
    plan = Plan()
    meta, spec = volume["metadata"], volume["spec"]
    ref = spec.get("claimRef") or {}
    if meta.get("deletionTimestamp"):
        return plan
    if not ref.get("uid"):
        phase = "Available"
    elif claim is not None and claim["metadata"]["uid"] == ref["uid"]:
        phase = "Bound"
    elif spec.get("persistentVolumeReclaimPolicy") == "Delete" and _is_ours(volume):
        plan.delete.append(Delete(PERSISTENTVOLUMES, meta["name"], None, uid=meta["uid"]))
        return plan
    else:
        phase = "Released"
    status: dict[str, Any] = volume.get("status") or {}
    if status.get("phase") != phase:
        plan.status = {**status, "phase": phase}
    return plan


def _is_ours(volume: Object) -> bool:
    return (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == LOCAL_PROVISIONER
