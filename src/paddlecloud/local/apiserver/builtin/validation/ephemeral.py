"""Rules of ephemeral containers, which `kubectl debug` adds to a pod that runs. Pure.

As validateEphemeralContainers and ValidatePodEphemeralContainersUpdate of kubernetes/pkg/apis/core/validation: they are
no part of what a pod is for, so they have no ports, probes, hooks and resources, and they stay as they were added.
"""

from __future__ import annotations

from collections.abc import Collection

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, not_found

_NOT_ALLOWED = "cannot be set for an Ephemeral Container"
_OF_SERVICES = (
    "lifecycle", "livenessProbe", "ports", "readinessProbe", "resizePolicy", "resources", "restartPolicyRules",
    "startupProbe",
)  # fmt: skip


def ephemeral_rules(path: str, container: Object, others: Collection[str]) -> list[Cause]:
    """`others` are the names of the containers that the pod was made with."""
    found = [forbidden(f"{path}.{name}", _NOT_ALLOWED) for name in _OF_SERVICES if container.get(name)]
    target = container.get("targetContainerName")
    if target and target not in others:
        found.append(not_found(f"{path}.targetContainerName", target))
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        place = f"{path}.volumeMounts[{index}]"
        found += [forbidden(f"{place}.{name}", _NOT_ALLOWED) for name in ("subPath", "subPathExpr") if mount.get(name)]
    return found


def ephemeral_update(new: Object, old: Object) -> list[Cause]:
    """Of two specs: what was added before may neither change nor go."""
    now = {container.get("name"): container for container in new.get("ephemeralContainers") or ()}
    found = []
    for container in old.get("ephemeralContainers") or ():
        name = container["name"]
        if now.get(name) != container:
            verb = "changed" if name in now else "removed"
            detail = f'existing ephemeral containers "{name}" may not be {verb}'
            found.append(forbidden("spec.ephemeralContainers", detail))
    return found


def ephemeral_unchanged(new: Object, old: Object) -> list[Cause]:
    """Of two specs, for a write to the pod itself."""
    if (new.get("ephemeralContainers") or []) == (old.get("ephemeralContainers") or []):
        return []
    detail = "pod updates may not change fields other than images and the like; changed: ephemeralContainers"
    return [forbidden("spec", f"{detail} (kubectl debug adds them through pods/ephemeralcontainers)")]
