"""A JuiceFS volume by its real CSI driver: two pods on different nodes share it, and nothing stays mounted for them."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, need

from .harness.juicefs import METADATA, OBJECTS

pytestmark = [pytest.mark.core, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _juicefs(kubectl: Kubectl) -> None:
    have = kubectl("get", "csidriver", "csi.juicefs.com", check=False).returncode == 0
    need("juicefs", have=have, hint="`make cluster WITH=juicefs`")


def volume(name: str, namespace: str) -> str:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"name": name, "metaurl": f"{METADATA}-{name}", "storage": "file", "bucket": OBJECTS},
    }
    source = {
        "driver": "csi.juicefs.com",
        "volumeHandle": name,
        "fsType": "juicefs",
        "nodePublishSecretRef": {"name": name, "namespace": namespace},
    }
    size = {"storage": "1Gi"}
    spec = {"capacity": size, "accessModes": ["ReadWriteMany"], "csi": source, "storageClassName": ""}
    pv = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": name,
        "resources": {"requests": size},
    }
    pvc = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim}
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [secret, pv, pvc]})


def pod(name: str) -> str:
    main = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", "600"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "shares"}}}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    spec = {
        "terminationGracePeriodSeconds": 1,
        "affinity": {"podAntiAffinity": wish},
        "containers": [main],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    metadata = {"name": name, "labels": {"app": "shares"}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def test_what_one_pod_writes_another_reads(kubectl: Kubectl, namespace: str) -> None:
    name = f"jfs-{namespace}"
    kubectl("create", "-f", "-", input=volume(name, namespace))
    for each in ("writer", "reader"):
        kubectl("create", "-f", "-", input=pod(each))
    kubectl("wait", "--for=condition=Ready", "pod/writer", "pod/reader", "--timeout=120s", timeout=130)
    assert " fuse.juicefs " in kubectl("exec", "writer", "--", "grep", "/data", "/proc/mounts").stdout
    kubectl("exec", "writer", "--", "sh", "-c", "echo from the writer > /data/note; sync")
    assert kubectl("exec", "reader", "--", "cat", "/data/note").stdout == "from the writer\n"
    kubectl("delete", "pod", "writer", "reader", "--timeout=60s", timeout=70)
    kubectl("delete", "pvc/data", f"pv/{name}", "--timeout=60s", timeout=70)
    each = "{range .items[*]}{.metadata.name} {end}"
    drivers = kubectl("get", "pods", "-n", "kube-system", "-l", "app=juicefs-csi-node", "-o", f"jsonpath={each}").stdout
    for driver in drivers.split():
        mounts = kubectl("exec", "-n", "kube-system", driver, "-c", "plugin", "--", "cat", "/proc/mounts").stdout
        left = [line for line in mounts.splitlines() if name in line and "/var/lib/kubelet/" in line]
        assert left == []
