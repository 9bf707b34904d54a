"""Two tenants on both platforms: what one of them writes must not reach what belongs to the other.

A tenant has Kubernetes' role `edit` in its own namespace, which covers the project's kinds. The other namespace is
the victim's: its Secrets, its sets and their caches.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator

import pytest

from harness import Kubectl, until
from paddlecloud.kube.resource import Object

from .hands import HOLD, job, read

pytestmark = [pytest.mark.core, pytest.mark.timeout(240)]

BATCH = "batch.paddlepaddle.org"
GRANTED = f"{BATCH}/granted-namespaces"
REFUSED = (
    "Secret {victim}/{secret} is not granted to namespace {own}: use a Secret of {own}, or ask the owner of {victim} "
    "to annotate theirs with batch.paddlepaddle.org/granted-namespaces: {own}"
)

Tenant = Callable[[Object], None]


@pytest.fixture
def victim(kubectl: Kubectl, namespace: str, operators: None) -> Iterator[str]:
    name = f"{namespace}-victim"
    kubectl("create", "namespace", name)
    data = {"access-key": "AK", "secret-key": "the-victims-key"}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": encoded}
    kubectl("apply", "-n", name, "-f", "-", input=json.dumps(secret))
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def tenant(kubectl: Kubectl, namespace: str) -> Tenant:
    """Creates an object as somebody who may edit the test's namespace, and nothing else."""
    who = f"system:serviceaccount:{namespace}:tenant"
    kubectl("create", "serviceaccount", "tenant")
    kubectl("create", "rolebinding", "tenant", "--clusterrole=edit", f"--serviceaccount={namespace}:tenant")

    def create(obj: Object) -> None:
        kubectl("create", "--as", who, "-f", "-", input=json.dumps(obj))

    return create


def of_batch(kind: str, name: str, **spec: object) -> Object:
    version = "v1" if kind == "PaddleJob" else "v1alpha1"
    return {"apiVersion": f"{BATCH}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def message(kubectl: Kubectl, kind: str, name: str) -> str:
    def reported() -> str:
        return str((read(kubectl, kind, name).get("status") or {}).get("message") or "")

    until(lambda: bool(reported()), timeout=60, every=0.3)
    return reported()


def test_the_secret_of_another_namespace_stays_there_until_it_is_granted(
    kubectl: Kubectl, namespace: str, victim: str, tenant: Tenant
) -> None:
    uri = "s3://bucket.127.0.0.1:1/data"
    for name, secret in (("exists", "keys"), ("absent", "no-such-keys")):
        ref = {"name": secret, "namespace": victim}
        source = {"uri": uri, "secretRef": ref}
        tenant(of_batch("SampleSet", name, source=source, secretRef=ref, csi={"driver": "juicefs"}))
        assert message(kubectl, "sampleset", name) == REFUSED.format(victim=victim, secret=secret, own=namespace)
        events = json.dumps(read(kubectl, "events", f"--field-selector=involvedObject.name={name}"))
        assert "ErrorSecretNotGranted" in events
        assert "the-victims-key" not in events
    volumes = [volume["metadata"]["name"] for volume in read(kubectl, "persistentvolumes")["items"]]
    assert not {"exists", "absent"} & set(volumes)
    kubectl("annotate", "secret", "keys", "-n", victim, f"{GRANTED}={namespace}")
    until(lambda: "lacks name" in message(kubectl, "sampleset", "exists"), timeout=60, every=0.3)
    kubectl("annotate", "secret", "keys", "-n", victim, f"{GRANTED}-")
    until(lambda: "is not granted" in message(kubectl, "sampleset", "exists"), timeout=60, every=0.3)
    kubectl("delete", "sampleset", "exists", "absent", "--timeout=90s")


def test_sets_whose_joined_names_are_equal_have_volumes_of_their_own(
    kubectl: Kubectl, namespace: str, victim: str, tenant: Tenant
) -> None:
    """`team/victim-data` and `team-victim/data`: drivers give pods with one volume handle one mount."""
    values = {"name": "fs", "storage": "s3", "metaurl": "redis://127.0.0.1:1/0", "bucket": "http://127.0.0.1:1/b"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fs"}, "stringData": values}
    spec = {"noSync": True, "secretRef": {"name": "fs"}, "csi": {"driver": "juicefs"}}
    kubectl("apply", "-n", victim, "-f", "-", input=json.dumps(secret))
    kubectl("apply", "-n", victim, "-f", "-", input=json.dumps(of_batch("SampleSet", "data", **spec)))
    tenant(secret)
    tenant(of_batch("SampleSet", "victim-data", **spec))

    def handles() -> dict[str, str]:
        volumes = [volume["spec"] for volume in read(kubectl, "persistentvolumes")["items"]]
        return {spec["claimRef"]["namespace"]: spec["csi"]["volumeHandle"] for spec in volumes if "csi" in spec}

    until(lambda: {namespace, victim} <= set(handles()), timeout=60, every=0.3)
    found = handles()
    assert found[namespace] != found[victim]
    kubectl("delete", "sampleset", "victim-data", "--timeout=90s")
    kubectl("delete", "sampleset", "data", "-n", victim, "--timeout=90s")


def test_a_value_cannot_become_another_mount_option(kubectl: Kubectl, namespace: str, operators: None) -> None:
    options = {"juiceFSMountOptions": {"cache-dir": "/data,subdir=/victim"}}
    spec = {"noSync": True, "secretRef": {"name": "fs"}, "csi": {"driver": "juicefs", **options}}
    done = kubectl("create", "-f", "-", input=json.dumps(of_batch("SampleSet", "more", **spec)), check=False)
    assert done.returncode != 0
    assert "spec.csi.juiceFSMountOptions.cache-dir" in done.stderr


def test_a_job_reads_no_set_of_another_namespace(kubectl: Kubectl, namespace: str, victim: str, tenant: Tenant) -> None:
    kubectl("apply", "-n", victim, "-f", "-", input=json.dumps(of_batch("SampleSet", "data", noSync=True)))
    obj = json.loads(job("thief", "true", sampleSetRef={"name": "data", "namespace": victim, "mountPath": "/data"}))
    tenant(obj)
    text = message(kubectl, "paddlejob", "thief")
    assert f'spec.sampleSetRef.namespace: Invalid value: "{victim}": must be {namespace}, the job\'s own' in text
    assert read(kubectl, "pods")["items"] == []
    kubectl("delete", "sampleset", "data", "-n", victim, "--timeout=90s")


def test_a_pod_that_names_an_owner_of_another_namespace_is_not_its_pod(
    kubectl: Kubectl, namespace: str, victim: str, tenant: Tenant
) -> None:
    """Uids are no secret: everybody who may view the victim's objects knows them. A finalizer keeps the pod there after
    the garbage collector has deleted it."""
    kubectl("apply", "-n", victim, "-f", "-", input=job("train", HOLD, workers=1))
    until(lambda: _phase(kubectl, victim) == "Running", timeout=60, every=0.3)
    own = read(kubectl, "pod", "train-worker-0", "-n", victim)
    forged = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-worker-0",
            "labels": own["metadata"]["labels"],
            "ownerReferences": own["metadata"]["ownerReferences"],
            "finalizers": ["example.com/kept"],
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox", "command": ["false"]}]},
    }
    tenant(forged)
    until(lambda: "deletionTimestamp" in read(kubectl, "pod", "train-worker-0")["metadata"], timeout=60, every=0.3)
    kubectl("exec", "train-worker-0", "-n", victim, "--", "touch", "/tmp/go")
    until(lambda: _phase(kubectl, victim) in ("Completed", "Failed"), timeout=60, every=0.3)
    status = read(kubectl, "paddlejob", "train", "-n", victim)["status"]
    kubectl("patch", "pod", "train-worker-0", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert (status["phase"], status.get("failures")) == ("Completed", None)


def _phase(kubectl: Kubectl, namespace: str) -> str:
    return str((read(kubectl, "paddlejob", "train", "-n", namespace).get("status") or {}).get("phase"))
