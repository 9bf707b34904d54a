"""Pods run as a service account: they get its token, the CA and their namespace in a volume, as in Kubernetes.

The mutator only writes the volume into the pod; its content, the token included, is made by the kubelet.
"""

from __future__ import annotations

import random

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.tokens import EXTENDED_REQUEST
from paddlecloud.local.apiserver.objects.metadata import generate_name
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

COLLECTION = "/serviceaccounts"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX = "kube-api-access-"


def add_service_account(store: Store, rng: random.Random, info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: the account of a new pod must exist; its token volume and pull secrets are added."""
    if old is not None or info.kind != "Pod" or info.resource.group or not isinstance(obj.get("spec"), dict):
        return
    spec = obj["spec"]
    account = _account(store, obj)
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.get("automountServiceAccountToken")
    if wanted is not False:
        _mount(spec, rng)


def _account(store: Store, pod: Object) -> Object:
    namespace = pod["metadata"].get("namespace") or ""
    name = pod["spec"].get("serviceAccountName") or "default"
    record = store.latest(ObjectAddress(COLLECTION, namespace, name))
    if record is not None:
        return record.object
    if name == "default":
        return {}  # every namespace gets this one: it is on its way
    why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
    raise errors.forbidden("pods", pod["metadata"].get("name", ""), why)


def _mount(spec: Object, rng: random.Random) -> None:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    without = [c for c in containers if isinstance(c, dict) and MOUNT_PATH not in _mount_paths(c)]
    if not without:
        return
    name = generate_name(VOLUME_PREFIX, rng)
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": _projected()}]
    for container in without:
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def _mount_paths(container: Object) -> list[str]:
    return [mount.get("mountPath", "") for mount in container.get("volumeMounts") or () if isinstance(mount, dict)]


def _projected() -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": EXTENDED_REQUEST, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
    }
