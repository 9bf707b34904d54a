"""SampleSets on a real cluster: JuiceFS by its CSI driver, cache servers as containers on two nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest

from harness import Kubectl, Target, need, until
from paddlecloud.kube.resource import Object

from .harness.juicefs import METADATA, OBJECTS

pytestmark = [pytest.mark.full, pytest.mark.timeout(400), pytest.mark.usefixtures("operators")]

RUNTIME = "paddlecloud/runtime"
LABEL = "paddlepaddle.org/juicefs-samples"


@pytest.fixture(autouse=True)
def _parts(server: Target, kubectl: Kubectl) -> None:
    have = kubectl("get", "csidriver", "csi.juicefs.com", check=False).returncode == 0
    need("juicefs", have=have, hint="`make cluster WITH=juicefs`")
    nodes = len(kubectl("get", "nodes", "-o", "name").stdout.split())
    need("nodes", have=nodes >= 2, hint="`make cluster NODES=2`")
    server.offer(RUNTIME)


@pytest.fixture
def samples(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """A set of two partitions, filled from a folder that every cache server has, and ready."""
    values = {"name": namespace, "metaurl": f"{METADATA}-{namespace}", "storage": "file", "bucket": OBJECTS}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "files"}, "stringData": values}
    kubectl("create", "-f", "-", input=json.dumps(secret))
    spec = {
        "partitions": 2,
        "secretRef": {"name": "files"},
        "source": {"uri": "file:///usr/local/bin"},
        # The driver mounts in a container whose /dev/shm is too small for a cache; the rest of it is the node's disk.
        "csi": {"juiceFSMountOptions": {"cache-dir": "/var/cache"}},
    }
    body = {
        "apiVersion": "batch.paddlepaddle.org/v1alpha1",
        "kind": "SampleSet",
        "metadata": {"name": "samples"},
        "spec": spec,
    }
    kubectl("create", "-f", "-", input=json.dumps(body))
    until(lambda: status(kubectl, "sampleset", "samples").get("phase") in ("Ready", "SyncFailed"), timeout=200)
    assert status(kubectl, "sampleset", "samples")["phase"] == "Ready", status(kubectl, "sampleset", "samples")
    yield "samples"
    kubectl("delete", "sampleset", "samples", "--ignore-not-found", "--timeout=120s", timeout=130)


def status(kubectl: Kubectl, kind: str, name: str) -> Object:
    found: Object = json.loads(kubectl("get", kind, name, "-o", "json").stdout)
    return dict(found.get("status") or {})


def labelled(kubectl: Kubectl) -> dict[str, str]:
    """Nodes by the cache server they hold."""
    nodes = json.loads(kubectl("get", "nodes", "-l", LABEL, "-o", "json").stdout)["items"]
    return {node["metadata"]["labels"][LABEL]: node["metadata"]["name"] for node in nodes}


def node_of(kubectl: Kubectl, pod: str) -> str:
    return kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}").stdout


def _counted(kubectl: Kubectl, pod: str) -> bool:
    """Whether a worker has found files."""
    return kubectl("logs", pod).stdout.strip() not in ("", "0")


def do(kubectl: Kubectl, name: str, type: str, **spec: object) -> Object:
    body = {
        "apiVersion": "batch.paddlepaddle.org/v1alpha1",
        "kind": "SampleJob",
        "metadata": {"name": name},
        "spec": {"type": type, "sampleSetRef": {"name": "samples"}, **spec},
    }
    kubectl("create", "-f", "-", input=json.dumps(body))
    until(lambda: status(kubectl, "samplejob", name).get("phase") in ("Succeeded", "Failed"), timeout=120)
    found = status(kubectl, "samplejob", name)
    assert found["phase"] == "Succeeded", found
    return found


def test_a_set_lives_on_two_nodes_and_jobs_read_it_where_it_is_cached(kubectl: Kubectl, samples: str) -> None:
    found = status(kubectl, "sampleset", samples)
    assert found["driver"] == "juicefs"
    assert found["runtimeStatus"]["runtimeReady"] == "2/2"
    assert int(found["cacheStatus"]["totalFiles"].replace(",", "")) > 0
    nodes = labelled(kubectl)
    assert sorted(nodes) == ["samples-runtime-0", "samples-runtime-1"]
    assert len(set(nodes.values())) == 2

    assert do(kubectl, "warm", "warmup")["partitions"] == 2
    until(lambda: "WarmedUp" in json.dumps(status(kubectl, "sampleset", samples)["conditions"]), timeout=30)

    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", "find /data -type f | wc -l; until [ -e /tmp/end ]; do sleep 0.2; done"],
    }
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    job = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "reads"},
        "spec": {
            "cleanPodPolicy": "Never",
            "withGloo": 1,
            "sampleSetRef": {"name": samples, "mountPath": "/data", "waitFor": "Warm"},
            "worker": {"replicas": 2, "template": {"spec": pod}},
        },
    }
    kubectl("create", "-f", "-", input=json.dumps(job))
    until(lambda: status(kubectl, "pdj", "reads").get("phase") == "Running", timeout=120)
    for index in range(2):
        assert node_of(kubectl, f"reads-worker-{index}") == nodes[f"samples-runtime-{index}"]
        until(partial(_counted, kubectl, f"reads-worker-{index}"), timeout=30)

    kubectl("delete", "sampleset", samples, "--wait=false")
    until(lambda: "deletion waits for PaddleJob reads" in json.dumps(status(kubectl, "sampleset", samples)), timeout=30)
    for index in range(2):
        kubectl("exec", f"reads-worker-{index}", "--", "touch", "/tmp/end")
    # Kubernetes keeps a claim for as long as a pod refers to it, also one that has ended.
    until(lambda: "Pod reads-worker-0" in status(kubectl, "sampleset", samples).get("message", ""), timeout=60)
    kubectl("delete", "pdj", "reads", "--timeout=60s")
    until(lambda: "NotFound" in kubectl("get", "sampleset", samples, check=False).stderr, timeout=90)
    assert labelled(kubectl) == {}
    assert kubectl("get", "pv", samples, check=False).returncode != 0
