"""Who a pod of a StatefulSet is: its number, its name, the claims that follow it. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.pods import pod_from
from paddlecloud.local.workloads.revisions import REVISION

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def pod_name(stateful_set: Object, ordinal: int) -> str:
    return f"{stateful_set['metadata']['name']}-{ordinal}"


def ordinals(stateful_set: Object) -> range:
    spec = stateful_set["spec"]
    start = int((spec.get("ordinals") or {}).get("start") or 0)
    return range(start, start + int(spec.get("replicas", 1)))


def ordinal_of(stateful_set: Object, name: str, *, prefix: str = "") -> int | None:
    """The number in a name such as `web-3` (with `prefix`: `data-web-3`); None for the names of others."""
    stem = f"{prefix}{stateful_set['metadata']['name']}-"
    rest = name.removeprefix(stem)
    return int(rest) if rest != name and rest.isdecimal() and str(int(rest)) == rest else None


def revision_of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION, ""))


def claim_templates(stateful_set: Object) -> list[Object]:
    return list(stateful_set["spec"].get("volumeClaimTemplates") or ())


def claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{pod_name(stateful_set, ordinal)}"


def pod_for(stateful_set: Object, template: Object, ordinal: int, revision: str) -> Object:
    """The pod of one number: reachable under its own name in the set's Service, with its own claims as volumes."""
    name = pod_name(stateful_set, ordinal)
    pod = pod_from(template, name=name, owner=stateful_set)
    meta, spec = pod["metadata"], pod["spec"]
    meta["labels"] = {**meta.get("labels", {}), POD_NAME: name, POD_INDEX: str(ordinal), REVISION: revision}
    spec["hostname"] = name
    if service := stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = service
    claimed = {
        claim["metadata"]["name"]: {
            "name": claim["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(stateful_set, claim, ordinal)},
        }
        for claim in claim_templates(stateful_set)
    }
    if claimed:
        others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claimed]
        spec["volumes"] = [*others, *claimed.values()]
    return pod


def claims_for(stateful_set: Object, ordinal: int) -> Iterable[Object]:
    """The claims of one number. Nobody owns them, so they outlive pod and set, unless the retention policy says so."""
    meta, spec = stateful_set["metadata"], stateful_set["spec"]
    ours = (spec.get("selector") or {}).get("matchLabels") or {}
    for template in claim_templates(stateful_set):
        given = template.get("metadata") or {}
        claim: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": claim_name(stateful_set, template, ordinal),
                "namespace": meta["namespace"],
                "labels": {**(given.get("labels") or {}), **ours},
            },
            "spec": copy.deepcopy(template.get("spec") or {}),
        }
        if given.get("annotations"):
            claim["metadata"]["annotations"] = dict(given["annotations"])
        if retention(stateful_set, "whenDeleted") == "Delete":
            owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": meta["name"], "uid": meta["uid"]}
            claim["metadata"]["ownerReferences"] = [owner]
        yield claim


def retention(stateful_set: Object, when: str) -> str:
    return str((stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(when) or "Retain")
