"""What the original operator leaves in a cluster for a SampleSet, object by object, as its source says."""

from __future__ import annotations

from typing import Any

from paddlecloud.kube.resource import Object


def status(*, partitions: int = 1, phase: str = "Ready") -> Object:
    """A status as it writes it: words, and no conditions."""
    return {
        "phase": phase,
        "cacheStatus": {"totalSize": "4.2 GiB", "cachedSize": "4.2 GiB", "totalFiles": "128,660"},
        "runtimeStatus": {
            "runtimeReady": f"{partitions}/{partitions}",
            "specReplicas": partitions,
            "readyReplicas": partitions,
        },
        "jobsName": {"syncJobName": "4c5bbf8e-2c3d-4f7e-9a55-0d6a3c3f1b0e"},
    }


def objects(
    name: str,
    namespace: str,
    *,
    secret: str,
    cache_dir: str,
    partitions: int = 1,
    image: str = "paddleflow/runtime",
    command: list[str] | None = None,
    propagation: str = "Bidirectional",
    **pod: Any,
) -> list[Object]:
    """Volume, claim, Service and StatefulSet, which nobody owns. `cache_dir` is where nodes cache.

    `propagation` is for nodes whose disks are not shared mounts, as the original servers want them.
    """
    mark = {f"paddlepaddle.org/juicefs-{name}": "true"}
    annotations = {"CreatedBy": "paddle-operator"}
    shared = {"accessModes": ["ReadWriteMany"], "volumeMode": "Filesystem", "storageClassName": "paddle-operator"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
    csi = {
        "driver": "csi.juicefs.com",
        "fsType": "juicefs",
        "volumeHandle": f"{namespace}-{name}",
        "volumeAttributes": {"mountOptions": f"cache-size=1073741824,cache-dir={cache_dir}"},
        "nodePublishSecretRef": {"name": secret, "namespace": namespace},
    }
    labels = {**mark, "name": f"{name}-runtime"}
    inside = cache_dir.strip("/").replace("/", "-")
    mounts = [(inside, f"/cache/{inside}"), (name, f"/mnt/{name}")]
    server = {
        "name": "runtime",
        "image": image,
        "command": command or _command(inside, name),
        "ports": [{"name": "runtime", "containerPort": 7716}],
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", f"rm -rf /cache/{inside}/*"]}}},
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": volume, "mountPath": path, "mountPropagation": propagation} for volume, path in mounts
        ],
    }
    volumes = [
        {"name": inside, "hostPath": {"path": cache_dir, "type": "DirectoryOrCreate"}},
        {"name": name, "persistentVolumeClaim": {"claimName": name}},
    ]
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"containers": [server], "volumes": volumes, **pod},
    }

    def made(kind: str, called: str, spec: Object, *, version: str = "v1", namespaced: bool = True) -> Object:
        meta = {"name": called, "labels": dict(mark), "annotations": dict(annotations)}
        if namespaced:
            meta["namespace"] = namespace
        return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}

    size = {"storage": "10Pi"}
    return [
        made(
            "PersistentVolume",
            name,
            {**shared, "capacity": size, "persistentVolumeReclaimPolicy": "Retain", "claimRef": claim, "csi": csi},
            namespaced=False,
        ),
        made(
            "PersistentVolumeClaim",
            name,
            {**shared, "resources": {"requests": size}, "selector": {"matchLabels": mark}},
        ),
        made(
            "Service",
            f"{name}-runtime-service",
            {"clusterIP": "None", "selector": labels, "ports": [{"name": "service", "port": 7716}]},
        ),
        made(
            "StatefulSet",
            f"{name}-runtime",
            {
                "replicas": partitions,
                "serviceName": f"{name}-runtime-service",
                "selector": {"matchLabels": labels},
                "template": template,
            },
            version="apps/v1",
        ),
    ]


def _command(inside: str, name: str) -> list[str]:
    flags = (f"--cacheDirs=/cache/{inside}", f"--dataDir=/mnt/{name}")
    return ["nuwa", "server", "--driver=juicefs", "--development", *flags]
