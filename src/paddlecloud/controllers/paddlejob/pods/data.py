"""The data a job reads: the volume of its sample set, and the nodes that hold each partition of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paddlecloud.api.paddlejob import JobSettings
from paddlecloud.controllers.node_folders import local_cache, named_by
from paddlecloud.controllers.paddlejob.decision.case import JobOptions
from paddlecloud.controllers.paddlejob.observe import Observed
from paddlecloud.kube import quantity
from paddlecloud.kube.conditions import status_in
from paddlecloud.kube.resource import Object

LABEL = "paddlepaddle.org/"
_CACHE = "/cache"
_PEER_PORT = 7717
_BY_INDEX = ("worker",)
"""Roles whose pod i reads partition i."""


def missing(settings: JobSettings, observed: Observed) -> str:
    """What the job still waits for before its pods make sense; empty when the data is there.

    The claim of the sample set's name is what pods mount, so a plain claim that nobody made a SampleSet for will do.
    """
    wanted = settings.sample_set
    if wanted is None:
        return ""
    where = f"{settings.namespace}/{wanted.name}"
    if observed.sample_set is None and observed.claim is None:
        return f"SampleSet {where} not found, nor a PersistentVolumeClaim {wanted.name}"
    if observed.claim is None:
        return f"PersistentVolumeClaim {wanted.name} of SampleSet {where} does not exist yet"
    if observed.sample_set is None or wanted.wait_for == "None":
        return ""
    status = observed.sample_set.get("status") or {}
    if status.get("phase") != "Ready":
        why = f": {status['message']}" if status.get("message") else ""
        return f"SampleSet {where} is {status.get('phase') or 'new'}, waiting for Ready{why}"
    if wanted.wait_for == "Warm" and not _is_warm(status):
        return f"SampleSet {where} is Ready but not warm: run a SampleJob of type warmup"
    return ""


def being_deleted(settings: JobSettings, observed: Observed) -> str:
    """Which of the sets that pods of the job mount are being deleted; empty when none is."""
    found = [_shown(settings, one) for one in observed.mounted_sets if one["metadata"].get("deletionTimestamp")]
    return f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} being deleted" if found else ""


def not_imported(settings: JobSettings, observed: Observed) -> str:
    """The first set that pods mount by its claim and whose data is not all there yet; empty when there is none.

    The claim is bound before the import begins: pods that mounted it then would read what has been copied so far, and
    could not know. The cache servers are not waited for: reading without them is slower, and right. What
    `sampleSetRef` names has `waitFor` instead.
    """
    by_reference = settings.sample_set.name if settings.sample_set else ""
    for one in observed.mounted_sets:
        if one["metadata"]["name"] != by_reference and not _is_imported(one):
            status = one.get("status") or {}
            why = f": {status['message']}" if status.get("message") else ""
            return f"{_shown(settings, one)} is {status.get('phase') or 'new'}, waiting for its import{why}"
    return ""


def _is_imported(sample_set: Object) -> bool:
    status = sample_set.get("status") or {}
    return bool(
        (sample_set.get("spec") or {}).get("noSync")
        or status_in(status.get("conditions") or (), "Synced") == "True"
        or status.get("phase") in ("PartialReady", "Ready")  # of the original operator, which has no conditions
    )


def _shown(settings: JobSettings, sample_set: Object) -> str:
    return f"SampleSet {settings.namespace}/{sample_set['metadata']['name']}"


def _is_warm(status: Object) -> bool:
    return status_in(status.get("conditions") or (), "Warm") == "True"


def partition_labels(
    name: str, sample_set: Object | None, claim: Object | None, count: int
) -> dict[int, tuple[str, str]]:
    """The node label (key, value) under which each of the first `count` partitions of a sample set is cached.

    Nodes know a set by the name of its volume: sets of one name in two namespaces have two.
    """
    driver = ((sample_set or {}).get("status") or {}).get("driver") or "juicefs"
    volume = ((claim or {}).get("spec") or {}).get("volumeName") or name
    return {index: (f"{LABEL}{driver}-{volume}", f"{name}-runtime-{index}") for index in range(count)}


def labels_of(node: Object) -> Iterable[str]:
    """Index of nodes by the cache labels they carry, as `key=value`."""
    labels = node["metadata"].get("labels") or {}
    return [f"{key}={value}" for key, value in labels.items() if key.startswith(LABEL)]


def mount(
    spec: dict[str, Any],
    settings: JobSettings,
    role: str,
    index: int,
    observed: Observed,
    options: JobOptions,
) -> None:
    """Add the claim to a pod, and bring pod i to a node that caches partition i.

    Pods beyond the partitions go anywhere and read from afar.
    """
    wanted = settings.sample_set
    if wanted is None:
        return
    claim: dict[str, Any] = {"claimName": wanted.name}
    if wanted.read_only:
        claim["readOnly"] = True
    volumes = spec.setdefault("volumes", [])
    if all(volume.get("name") != wanted.name for volume in volumes):
        volumes.append({"name": wanted.name, "persistentVolumeClaim": claim})
    mounts = spec["containers"][0].setdefault("volumeMounts", [])
    mounts.append({"name": wanted.name, "mountPath": wanted.mount_path, "readOnly": wanted.read_only})
    _tell_places(spec, settings, observed.sample_set, options)
    label = observed.cache_nodes.get(index) if role in _BY_INDEX else None
    if label is None:
        return
    rule = {"key": label[0], "operator": "In", "values": [label[1]]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if wanted.policy == "Preferred":
        affinity.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(
            {"weight": 100, "preference": {"matchExpressions": [rule]}}
        )
        return
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    # Terms are alternatives: the rule must join each of them, or it would widen the user's own choice.
    terms = required.setdefault("nodeSelectorTerms", [])
    for term in terms or [{}]:
        term.setdefault("matchExpressions", []).append(rule)
        if term not in terms:
            terms.append(term)


def _is_own_cache(folder: str, namespace: str, name: str, options: JobOptions) -> bool:
    """Whether a folder that the status of a set names is the set's own: a status is no place to ask for others."""
    if options.local_root and folder == local_cache(options.local_root, namespace, name):
        return True
    named = named_by(folder, namespace, name)
    return named is not None and options.caches.problem(named) is None


def _tell_places(spec: dict[str, Any], settings: JobSettings, sample_set: Object | None, options: JobOptions) -> None:
    """Where a program that reads through `paddlecloud.data` finds the data, and its node's cache of it.

    A JuiceFS mount is its own cache; the local engine's is a folder per node, which the pod gets as a volume.
    """
    assert settings.sample_set is not None
    container = spec["containers"][0]
    found = sample_set or {}
    status = found.get("status") or {}
    folders = [str(path) for path in status.get("cacheDirs") or () if status.get("driver") != "juicefs"]
    folders = [
        folder for folder in folders if _is_own_cache(folder, settings.namespace, settings.sample_set.name, options)
    ]
    levels = ((found.get("spec") or {}).get("cache") or {}).get("levels") or ()
    first = levels[0] if levels else {}  # programs add to the first folder only, and share its level with the others
    size = (int(first.get("cacheSize") or 0) << 20) // len(str(first.get("path") or "").split(":"))
    places: list[Object] = [{"name": "PADDLECLOUD_DATA_DIR", "value": settings.sample_set.mount_path}]
    if folders:
        places.append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
        inside = [f"{_CACHE}/{number}" for number in range(len(folders))]
        places.append({"name": "PADDLECLOUD_CACHE_DIR", "value": ":".join(inside)})
        if size:
            places.append({"name": "PADDLECLOUD_CACHE_BYTES", "value": str(size)})
        if _pass_on(settings, size, found):
            places.append({"name": "PADDLECLOUD_PEER_PORT", "value": str(_PEER_PORT)})
        for number, folder in enumerate(folders):
            host = {"path": folder, "type": "DirectoryOrCreate"}
            spec["volumes"].append({"name": f"sample-cache-{number}", "hostPath": host})
            mount = {"name": f"sample-cache-{number}", "mountPath": inside[number], "subPathExpr": "$(NODE_NAME)"}
            container["volumeMounts"].append(mount)
    entries = container.setdefault("env", [])
    given = {entry.get("name") for entry in entries}
    entries.extend(entry for entry in places if entry["name"] not in given)


def _pass_on(settings: JobSettings, size: int, sample_set: Object) -> bool:
    """Whether nodes should hand samples over to their next reader: none can hold the set, all of them together can.

    Pods must have their own addresses: behind a Service, or on the node's network, the port is not theirs.
    """
    workers = settings.role("worker")
    shown = ((sample_set.get("status") or {}).get("cacheStatus") or {}).get("totalSize")
    if workers is None or not size or not shown or settings.intranet != "PodIP":
        return False
    try:
        total = quantity.whole(str(shown).replace(" ", "").removesuffix("B"))  # `4.2 GiB`
    except quantity.QuantityError:
        return False  # not one of our own controllers wrote it
    return size < total <= size * workers.replicas
