"""A SampleSet of the original operator on a real cluster with JuiceFS CSI: taken over while a pod reads it.

The steps are those of docs/migration.md. The original manager and its image are not to be had; what it stores is.
"""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, Target, need, until
from paddlecloud.kube.resource import Object
from tools import original

from .harness.juicefs import METADATA, OBJECTS
from .operators import NAMESPACE, SAMPLESET

pytestmark = [pytest.mark.full, pytest.mark.timeout(500), pytest.mark.usefixtures("operators")]

CACHE = "/var/cache/old"


@pytest.fixture(autouse=True)
def _parts(server: Target, kubectl: Kubectl) -> None:
    have = kubectl("get", "csidriver", "csi.juicefs.com", check=False).returncode == 0
    need("juicefs", have=have, hint="`make cluster WITH=juicefs`")
    server.offer("paddlecloud/runtime")


def managers(kubectl: Kubectl, replicas: int) -> None:
    """Have so many controllers of sample sets, and no other."""
    kubectl("scale", f"deployment/{SAMPLESET}", "-n", NAMESPACE, f"--replicas={replicas}")
    kubectl("rollout", "status", f"deployment/{SAMPLESET}", "-n", NAMESPACE, "--timeout=100s", timeout=110)
    pods = ("get", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=sampleset", "-o", "name")
    until(lambda: len(kubectl(*pods).stdout.split()) == replicas, timeout=90)


def read(kubectl: Kubectl, kind: str, name: str) -> Object:
    found: Object = json.loads(kubectl("get", kind, name, "-o", "json").stdout)
    return found


def uid(kubectl: Kubectl, kind: str, name: str) -> str:
    return str(read(kubectl, kind, name)["metadata"]["uid"])


def reader(claim: str) -> Object:
    mounts = [{"name": "data", "mountPath": "/data"}]
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1000"], "volumeMounts": mounts}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "reader"}, "spec": spec}


def test_a_set_of_the_original_operator_goes_on_with_its_data(kubectl: Kubectl, namespace: str) -> None:
    name = f"old-{namespace}"[:40].rstrip("-")
    replicas = int(kubectl("get", "deployment", SAMPLESET, "-n", NAMESPACE, "-o", "jsonpath={.spec.replicas}").stdout)
    managers(kubectl, 0)
    try:
        values = {"name": namespace, "metaurl": f"{METADATA}-{namespace}", "storage": "file", "bucket": OBJECTS}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "files"}, "stringData": values}
        left = original.objects(
            name,
            namespace,
            secret="files",
            cache_dir=CACHE,
            image="busybox",
            command=["sleep", "1000"],
            propagation="HostToContainer",
            terminationGracePeriodSeconds=1,
        )
        mark = {"name": name, "finalizers": [f"paddlepaddle.org/sampleset-{name}"]}
        spec = {"partitions": 1, "secretRef": {"name": "files"}, "source": {"uri": "file:///usr/local/bin"}}
        sample_set = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": mark}
        everything = [secret, *left, {**sample_set, "spec": spec}]
        kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": everything}))
        status = json.dumps({"status": original.status()})
        kubectl("patch", "sampleset", name, "--subresource=status", "--type=merge", "-p", status)
        server = f"{name}-runtime-0"
        try:
            until(lambda: read(kubectl, "pod", server)["status"].get("phase") == "Running", timeout=120)
        except AssertionError:
            raise AssertionError(kubectl("describe", "pod", server).stdout[-1500:]) from None
        kubectl("exec", server, "--", "sh", "-c", f"echo of old > /mnt/{name}/file")
        kubectl("create", "-f", "-", input=json.dumps(reader(name)))
        kubectl("wait", "pod/reader", "--for=condition=Ready", "--timeout=90s", timeout=100)
        before = {kind: uid(kubectl, kind, name) for kind in ("pv", "pvc")}
        first = uid(kubectl, "pod", server)
    finally:
        managers(kubectl, replicas)

    def is_taken_over() -> bool:
        found = read(kubectl, "sampleset", name).get("status") or {}
        pods = json.loads(kubectl("get", "pods", "-l", f"paddlepaddle.org/sampleset={name}", "-o", "json").stdout)
        return found.get("phase") == "Ready" and [p["metadata"]["uid"] != first for p in pods["items"]] == [True]

    until(is_taken_over, timeout=200, every=0.5)
    found = read(kubectl, "sampleset", name)["status"]
    assert found["cacheDirs"] == [CACHE]
    assert {kind: uid(kubectl, kind, name) for kind in before} == before
    assert kubectl("exec", "reader", "--", "cat", "/data/file").stdout == "of old\n"
    events = kubectl("get", "events", "-A", "--field-selector", "reason=Adopted").stdout
    assert name in events
    until(lambda: read(kubectl, "sampleset", name)["status"]["cacheStatus"]["totalFiles"] == "1", timeout=60)
    kubectl("delete", "pod", "reader", "--timeout=60s", timeout=70)
    kubectl("delete", "sampleset", name, "--timeout=120s", timeout=130)
    assert kubectl("get", "pv", name, check=False).returncode != 0
