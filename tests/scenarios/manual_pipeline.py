"""What the manual's pipeline finds on both platforms: its namespace, bucket, model store, shared volume and images.

Its data is generated and lies on a local S3 server that answers for the manual's bucket; the same server is the model
store that the manual calls minio-service. The images have the manual's names and hold small programs that really learn.
On a cluster a file system of JuiceFS is the volume that the steps share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.harness.juicefs import METADATA, OBJECTS
from harness import Kubectl, Target, until
from paddlecloud.pipelines import names
from paddlecloud.pipelines.components.image import IMAGE
from paddlecloud.visualdl.server import IMAGE as VISUALDL
from tools.s3 import ACCESS_KEY, SECRET_KEY

from .sample_stores import Stores

SPACE = names.SYSTEM_NAMESPACE
RIGHTS = Path(names.__file__).with_name("runner.yaml")
STORAGE_CLASS = "task-center"
USER = "author"
"""The account of the person who submits runs: it may edit what is in the namespace, and nothing else."""
SUITE = "paddlecloud/model-suite:latest"
IMAGES = (
    IMAGE,
    VISUALDL,
    SUITE,
    "registry.baidubce.com/paddleflow-public/paddleocr:2.1.3-gpu-cuda10.2-cudnn7",
    "registry.baidubce.com/paddleflow-public/serving:v0.6.2",
)
GENERATE = ["python", "/opt/suite/samples.py", "icdar2015", "/samples/icdar2015"]
UPLOAD = """
import os, sys
from paddlecloud.storage.sources import s3_store
store = s3_store(sys.argv[2], endpoint=sys.argv[1], region="us-east-1", client_options={"allow_http": True},
    access_key_id=os.environ["KEY"], secret_access_key=os.environ["SECRET"])
for folder, _, files in os.walk("/samples"):
    for name in files:
        path = os.path.join(folder, name)
        store.put(os.path.relpath(path, "/samples"), open(path, "rb").read())
"""


def prepare(shell: Kubectl, server: Target, stores: Stores) -> None:
    """What the manual's readers have made before they run the demo."""
    for image in IMAGES:
        server.offer(image)
    shell("apply", "-f", "-", input=listed(*_keys(), *_model_store(stores.s3.host, stores.s3.port), *_author()))
    if not server.embedded:
        shell("apply", "-f", str(RIGHTS))
        shell("apply", "-f", "-", input=listed(*_shared_volumes()))


def fill(shell: Kubectl, stores: Stores) -> None:
    """The manual's data set in its bucket: made by the suites' image, written by that of the launchers."""
    mounts = [{"name": "samples", "mountPath": "/samples"}]
    upload = {
        "name": "upload",
        "image": IMAGE,
        "command": ["python", "-c", UPLOAD, stores.s3.endpoint, stores.bucket],
        "env": [{"name": "KEY", "value": ACCESS_KEY}, {"name": "SECRET", "value": SECRET_KEY}],
        "volumeMounts": mounts,
    }
    spec = {
        "restartPolicy": "Never",
        "initContainers": [{"name": "generate", "image": SUITE, "command": GENERATE, "volumeMounts": mounts}],
        "containers": [upload],
        "volumes": [{"name": "samples", "emptyDir": {}}],
    }
    shell("apply", "-f", "-", input=json.dumps(_object("v1", "Pod", "samples", spec=spec)))
    phase = ("get", "pod", "samples", "-o", "jsonpath={.status.phase}")
    until(lambda: shell(*phase).stdout in ("Succeeded", "Failed"), timeout=300)
    assert shell(*phase).stdout == "Succeeded", shell("logs", "samples", "--all-containers").stdout


@contextmanager
def alone(shell: Kubectl, node: str) -> Iterator[None]:
    """While it is open pods go to this node only: training needs a GPU beside its data."""
    others = [name for line in shell("get", "nodes", "-o", "name").stdout.split() if (name := line[5:]) != node]
    if others:
        shell("cordon", *others)
    try:
        yield
    finally:
        if others:
            shell("uncordon", *others)


def step_logs(shell: Kubectl, workflow: str) -> str:
    """Of all steps, for the report of a failure and for what they must say."""
    pods = shell("get", "pods", "-l", f"workflows.argoproj.io/workflow={workflow}", "-o", "name").stdout.split()
    return "\n".join(f"== {pod}\n{shell('logs', pod, '-c', 'main', check=False).stdout}" for pod in pods)


def listed(*objects: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _object(version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def _keys() -> list[dict[str, Any]]:
    keys = {"access-key": ACCESS_KEY, "secret-key": SECRET_KEY}
    return [
        _object("v1", "Secret", "data-source", stringData={"key": "unused"}),
        _object("v1", "Secret", "model-center", stringData=keys),
    ]


def _model_store(host: str, port: int) -> list[dict[str, Any]]:
    addresses = [{"addresses": [{"ip": host}], "ports": [{"name": "http", "port": port}]}]
    return [
        _object("v1", "Service", "minio-service", spec={"ports": [{"name": "http", "port": 9000}]}),
        _object("v1", "Endpoints", "minio-service", subsets=addresses),
    ]


def _author() -> list[dict[str, Any]]:
    group = "rbac.authorization.k8s.io"
    return [
        _object("v1", "ServiceAccount", USER),
        _object(
            f"{group}/v1",
            "RoleBinding",
            USER,
            roleRef={"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
            subjects=[{"kind": "ServiceAccount", "namespace": SPACE, "name": USER}],
        ),
    ]


def _shared_volumes() -> list[dict[str, Any]]:
    """The class of the manual, and a volume of it for the run of each kfp."""
    made = [_object("storage.k8s.io/v1", "StorageClass", STORAGE_CLASS, provisioner="kubernetes.io/no-provisioner")]
    for generation in (1, 2):
        name = f"{STORAGE_CLASS}-{generation}"
        settings = {"name": name, "metaurl": f"{METADATA}-{name}", "storage": "file", "bucket": OBJECTS}
        source = {
            "driver": "csi.juicefs.com",
            "volumeHandle": name,
            "fsType": "juicefs",
            "nodePublishSecretRef": {"name": name, "namespace": SPACE},
        }
        spec = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "csi": source,
        }
        made.append(_object("v1", "Secret", name, stringData=settings))
        made.append(_object("v1", "PersistentVolume", name, spec=spec))
    return made


def remove_volumes(shell: Kubectl) -> None:
    """Sets end with the help of their controller, before it goes; volumes are of no namespace and outlive it. Pods of a
    service may take minutes to end, for requests that nobody makes any more."""
    shell("delete", "samplesets", "--all", "--timeout=100s", timeout=120)
    shell("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false")
    shell("delete", "pvc", "--all", "--wait=false")
    shell("delete", f"storageclass/{STORAGE_CLASS}", *(f"pv/{STORAGE_CLASS}-{n}" for n in (1, 2)), "--wait=false")
