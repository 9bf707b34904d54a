"""How much disk a pod may use, and whether it used more: in its volumes, its own files and its logs.

The files of its image are not counted: they are the platform's copy. The messages are those of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.kube.quantity import add, whole
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.pod_state import all_containers
from paddlecloud.local.volumes import limits
from paddlecloud.local.volumes.limits import used_bytes

RESOURCE = "ephemeral-storage"


def has_limits(pod: Object) -> bool:
    return limits.has_limits(pod) or bool(container_limits(pod))


def container_limits(pod: Object) -> Mapping[str, str]:
    return {
        container["name"]: written
        for container in all_containers(pod)
        if (written := ((container.get("resources") or {}).get("limits") or {}).get(RESOURCE)) is not None
    }


def over_limit(pod: Object, paths: PodPaths) -> str:
    """The message of an eviction, or nothing."""
    if message := limits.over_limit(pod, paths.volumes):
        return message
    allowed = container_limits(pod)
    if not allowed:
        return ""
    used = {container["name"]: _own_bytes(container["name"], paths) for container in all_containers(pod)}
    total = add(*allowed.values())
    if sum(used.values()) + limits.disk_volumes_bytes(pod, paths.volumes) > whole(total):
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "
    for name, written in allowed.items():
        if used[name] > whole(written):
            return f'Container {name} exceeded its local ephemeral storage limit "{written}". '
    return ""


def _own_bytes(name: str, paths: PodPaths) -> int:
    return used_bytes(paths.private(name, "tmp")) + used_bytes(paths.logs(name))
