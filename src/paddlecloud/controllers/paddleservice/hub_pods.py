"""How pods get a version of the ModelHub: from its server, with a grant for that version alone, into a node's folder.

The folder is `ROOT/NAMESPACE` below a root that the operator sets. All replicas of the namespace on a node share it:
its files are named by their digest and verified by each that starts (`modelhub.node_folder`). Without a root, where
Knative or PodSecurity allow no hostPath, each pod has an emptyDir and fetches for itself. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.controllers.paddleservice.resolution import Version
from paddlecloud.kube.resource import Object
from paddlecloud.modelhub import names, pod_access, read_grant

VOLUME = "model"
MOUNT = "/mnt/models"
NODE_ROOT = "PADDLECLOUD_MODEL_FOLDER"
"""Setting of the controller: the root of the folders on nodes. `names.VARIABLE` is the hub's URL, as pods reach it."""

NO_HUB = (
    "this platform has no server of the ModelHub that pods can fetch from: the chart starts it with the "
    "values models.enabled and models.store"
)


class HubAccess(NamedTuple):
    """`key` signs grants; it is read when the first service needs one."""

    url: str = ""
    key: bytes = b""
    node_root: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> HubAccess:
        return cls(environment.get(names.VARIABLE, ""), node_root=environment.get(NODE_ROOT, ""))


def environment(hub: HubAccess, namespace: str, version: Version) -> list[dict[str, str]]:
    grant = read_grant.sign(hub.key, namespace, version.name, version.version, version.digest)
    return pod_access.environment(pod_access.PodAccess(hub.url, namespace, version.shown, version.digest, grant))


def volume(hub: HubAccess, namespace: str) -> tuple[Object, Object]:
    """The volume for the files, and its mount."""
    place: Object = {"emptyDir": {}}
    if hub.node_root:
        place = {"hostPath": {"path": f"{hub.node_root.rstrip('/')}/{namespace}", "type": "DirectoryOrCreate"}}
    return {"name": VOLUME, **place}, {"name": VOLUME, "mountPath": MOUNT}
