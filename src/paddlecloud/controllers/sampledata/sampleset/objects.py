"""The objects a SampleSet is made of, as pure functions of what was asked for.

A volume and its claim, a Secret with the cache servers' token and certificate, a headless Service, and a StatefulSet
with one cache server per partition, each on its own node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset.case import SampleSetCase
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.kube.resource import SAMPLEJOBS, Object, owner_reference

CAPACITY = "10Pi"
"""Nobody measures it; it must only never be too small."""


def build_volume(case: SampleSetCase) -> Object:
    """Static, kept when the claim goes (the data is not ours to delete), and reserved for the set's own claim."""
    settings = case.settings
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": case.alias, "labels": _labels(case), "annotations": dict(names.CREATED_BY)},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": CAPACITY},
            "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem",
            "storageClassName": names.STORAGE_CLASS,
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": settings.namespace,
                "name": settings.name,
            },
            "csi": _juicefs(case) if case.driver == "juicefs" else _local(case),
        },
    }


def _juicefs(case: SampleSetCase) -> Object:
    settings = case.settings
    secret = settings.secret
    assert secret is not None, "validation requires it"
    options = {**transfer.mount_options(settings), "cache-dir": ":".join(case.cache_folders.values())}
    return {
        "driver": names.JUICEFS_DRIVER,
        "fsType": "juicefs",
        "volumeHandle": case.handle,
        "volumeAttributes": {"mountOptions": transfer.mount_option_text(options)},
        "nodePublishSecretRef": {"name": secret.name, "namespace": secret.namespace},
    }


def _local(case: SampleSetCase) -> Object:
    return {
        "driver": names.LOCAL_DRIVER,
        "volumeHandle": case.handle,
        "volumeAttributes": {
            "path": "",
            "namespace": case.settings.namespace,
            "name": case.settings.name,
            "cacheDirs": ":".join(case.cache_folders.values()),
        },
    }


def build_claim(case: SampleSetCase) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(case, case.settings.name),
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": CAPACITY}},
            "selector": {"matchLabels": {case.label: "true"}},
            "storageClassName": names.STORAGE_CLASS,
            "volumeName": case.alias,
        },
    }


def build_secret(case: SampleSetCase, data: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(case, names.runtime_keys(case.settings.name)),
        "type": "Opaque",
        "data": dict(data),
    }


def build_service(case: SampleSetCase) -> Object:
    """Servers are found before they are ready: they must be asked why they are not."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(case, names.service(case.settings.name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": _pod_labels(case),
            "ports": [{"name": "service", "port": names.PORT, "targetPort": names.PORT}],
        },
    }


def build_stateful_set(case: SampleSetCase) -> Object:
    settings = case.settings
    template = build_template(case)
    meta = _metadata(case, names.runtime(settings.name))
    meta["annotations"][names.TEMPLATE] = names.digest_of(template)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": meta,
        "spec": {
            "replicas": settings.partitions,
            "serviceName": names.service(settings.name),
            "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": _pod_labels(case)},
            "template": template,
        },
    }


def build_warmup(case: SampleSetCase, name: str, options: Mapping[str, Any]) -> Object:
    """The warm-up that the set itself asks for, gone a day after its end."""
    spec: Object = {
        "type": "warmup",
        "sampleSetRef": {"name": case.settings.name},
        "ttlSecondsAfterFinished": 24 * 3600,
    }
    if options:
        spec["warmupOptions"] = dict(options)
    return {
        "apiVersion": SAMPLEJOBS.api_version,
        "kind": SAMPLEJOBS.kind,
        "metadata": _metadata(case, name),
        "spec": spec,
    }


def build_template(case: SampleSetCase) -> Object:
    """One cache server. It reads the data through the set's own claim and keeps its cache on its node."""
    settings = case.settings
    name = settings.name
    # Virtual nodes share one machine, so the local engine gives each its own folder.
    apart = {"subPathExpr": "$(NODE_NAME)"} if case.driver == "local" else {}
    volumes: list[Object] = []
    mounts: list[Object] = []
    for path, folder in case.cache_folders.items():
        volume = names.volume_name(path)
        volumes.append({"name": volume, "hostPath": {"path": folder, "type": "DirectoryOrCreate"}})
        mounts.append({"name": volume, "mountPath": names.cache_dir(path), **apart})
    volumes.append({"name": name, "persistentVolumeClaim": {"claimName": name}})
    mounts.append({"name": name, "mountPath": names.data_dir(name), "mountPropagation": "HostToContainer"})
    if source := _hidden_source(case):
        volumes.append({"name": "0-source", "hostPath": {"path": source, "type": "Directory"}})
        mounts.append({"name": "0-source", "mountPath": source, "readOnly": True})
    # A name that begins with a digit is no set's, and no path's below the allowed roots.
    volumes.append({"name": "0-keys", "secret": {"secretName": names.runtime_keys(name), "defaultMode": 0o400}})
    mounts.append({"name": "0-keys", "mountPath": names.KEYS_ROOT, "readOnly": True})
    shared = []
    if case.driver == "local":
        own = {"path": f"{settings.namespace}/{name}/own"}  # beside the data, of which the claim is all that pods see
        volumes.append({"name": "0-set", "csi": {"driver": names.LOCAL_DRIVER, "volumeAttributes": own}})
        mounts.append({"name": "0-set", "mountPath": names.SET_ROOT})
        shared.append(f"--setDir={names.SET_ROOT}")
    if _has_own_files(case):
        volumes.append({"name": "0-tmp", "emptyDir": {}})
        mounts.append({"name": "0-tmp", "mountPath": "/tmp"})  # noqa: S108 - the pod's own
    asked = {"path": "/readyz", "port": names.PORT, "scheme": "HTTPS"}
    probe = {"httpGet": asked, "periodSeconds": 2, "failureThreshold": 5}
    container = {
        "name": names.CONTAINER,
        "image": case.options.image,
        "command": [
            *("nuwa", "server", f"--driver={case.driver}"),
            *(f"--cacheDirs={names.cache_dir(path)}" for path in case.cache_dirs),
            *(f"--cacheLevels={level}" for level in _levels(case)),
            f"--dataDir={names.data_dir(name)}",
            *shared,
            f"--keys={names.KEYS_ROOT}",
            *_source_limits(case),
        ],
        "env": _environment(case),
        "ports": [{"name": "runtime", "containerPort": names.PORT}],
        "readinessProbe": probe,
        "volumeMounts": mounts,
        "securityContext": _container_security(case),
    }
    labels = {**_pod_labels(case), names.SAMPLE_SET: name}
    spec: Object = {
        "containers": [container],
        "volumes": volumes,
        "affinity": _affinity(case),
        "terminationGracePeriodSeconds": 30,
        "automountServiceAccountToken": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    if settings.tolerations:
        spec["tolerations"] = list(settings.tolerations)
    return {"metadata": {"labels": labels, "annotations": dict(names.CREATED_BY)}, "spec": spec}


def _source_limits(case: SampleSetCase) -> list[str]:
    sources = case.options.sources
    if sources is None:
        return []
    roots = [f"--sourceRoots={root}" for root in sources.roots or ("",)]  # an empty one alone allows nothing
    return [*roots, *(f"--sourceClosed={own}" for own in sources.closed)]


def _container_security(case: SampleSetCase) -> Object:
    """No privileges but those that the work needs.

    The server is root: kubelets make the folders of nodes for root, and a set holds files of whatever user a training
    runs as. For these it keeps three capabilities, to read, delete and give back files that are not its own.
    """
    found: Object = {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]},
    }
    return {**found, "readOnlyRootFilesystem": True} if _has_own_files(case) else found


def _has_own_files(case: SampleSetCase) -> bool:
    """Whether pods have their own file system; on one machine they see the machine's."""
    return case.options.sources is None


def _hidden_source(case: SampleSetCase) -> str:
    """A source on this machine that pods do not see by themselves: their /tmp is their own."""
    scheme, _, path = case.settings.uri.partition("://")
    sources = case.options.sources
    hidden = sources and scheme == "file" and path.startswith("/tmp/")  # noqa: S108 - the user's choice
    return path.rstrip("/") if hidden and sources and not (case.settings.no_sync or sources.problem(path)) else ""


def _environment(case: SampleSetCase) -> list[Object]:
    def field(name: str, path: str) -> Object:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    mirrors = [{"name": "PADDLECLOUD_ENDPOINTS", "value": case.options.endpoints}] if case.options.endpoints else []
    return [
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace"),
        field("POD_IP", "status.podIP"),
        field("NODE_NAME", "spec.nodeName"),
        *mirrors,
    ]


def _levels(case: SampleSetCase) -> list[str]:
    """The tiers with their quotas, fastest first, as the server takes them: `MEM,1024,/cache/dev-shm-imagenet`."""
    if not case.settings.levels:
        size = case.settings.mount_options.get("cache-size")
        folders = ":".join(names.cache_dir(path) for path in case.cache_dirs)
        return [f",{size},{folders}"] if size else []
    found = []
    for level in case.settings.levels:
        paths = [path.rstrip("/") or "/" for path in level.paths]
        if paths and set(paths) <= set(case.cache_dirs):  # a mount keeps those that it was made with
            found.append(f"{level.medium},{level.size_mib},{':'.join(map(names.cache_dir, paths))}")
    return found


def _affinity(case: SampleSetCase) -> Object:
    """One server per node; which nodes is the user's to say."""
    apart: dict[str, Any] = {
        "labelSelector": {"matchLabels": _pod_labels(case)},
        "namespaces": [case.settings.namespace],
        "topologyKey": "kubernetes.io/hostname",
    }
    found: Object = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    if case.settings.node_affinity:
        found["nodeAffinity"] = case.settings.node_affinity
    return found


def _pod_labels(case: SampleSetCase) -> dict[str, str]:
    return {case.label: "true", "name": names.runtime(case.settings.name)}


def _labels(case: SampleSetCase) -> dict[str, str]:
    return {case.label: "true", names.SAMPLE_SET: case.settings.name}


def _metadata(case: SampleSetCase, name: str) -> Object:
    meta = case.sample_set["metadata"]
    return {
        "name": name,
        "namespace": meta["namespace"],
        "labels": _labels(case),
        "annotations": dict(names.CREATED_BY),
        "ownerReferences": [owner_reference(case.sample_set)],
    }
