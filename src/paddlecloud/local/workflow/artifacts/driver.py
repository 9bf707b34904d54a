"""How pods reach the artifact repository and the executor: volumes of a storage driver that the kubelet asks for.

A volume names no place. `artifacts` is the repository of the pod's own namespace, read-only; `outputs` is a folder of
the pod itself; the others are the interpreter and the modules of the platform, read-only, of which nothing is secret.
So it does not matter who writes such a volume into a pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from paddlecloud.kube.resource import Object
from paddlecloud.local.volumes.drivers import MountRequest
from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.pods import interpreter

NAME = "artifacts.paddlecloud.org"
ARTIFACTS_VOLUME, OUTPUTS_VOLUME = "argo-artifacts", "argo-outputs"


def volumes() -> list[Object]:
    """All that a pod of a workflow may mount."""
    folders = {ARTIFACTS_VOLUME: "artifacts", OUTPUTS_VOLUME: "outputs"}
    folders |= {interpreter.volume_name(folder): folder for folder in interpreter.FOLDERS}
    return [_volume(name, folder) for name, folder in folders.items()]


def _volume(name: str, folder: str) -> Object:
    source: Object = {"driver": NAME, "volumeAttributes": {"folder": folder}}
    return {"name": name, "csi": source if folder == "outputs" else {**source, "readOnly": True}}


class ArtifactDriver:
    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    async def publish(self, request: MountRequest) -> Path:
        folder = request.attributes.get("folder", "")
        if folder == "artifacts":
            if not request.readonly:
                raise VolumeError("the artifact repository is mounted with readOnly: true alone")
            return await asyncio.to_thread(self._repository.readable_by, request.namespace)
        if folder == "outputs":
            uid = str(request.pod["metadata"]["uid"])
            return await asyncio.to_thread(self._repository.outputs_of, request.namespace, uid)
        if folder in interpreter.FOLDERS:
            if not request.readonly:
                raise VolumeError("the interpreter of the platform is mounted with readOnly: true alone")
            return interpreter.FOLDERS[folder]
        known = ", ".join(("artifacts", "outputs", *interpreter.FOLDERS))
        raise VolumeError(f"{NAME}: volumeAttributes.folder must be one of {known}, not {folder[:60]!r}")

    async def unpublish(self, request: MountRequest) -> None:
        """What a pod saved stays until the controller has taken it over."""

    async def keep_only(self, pods: Collection[str]) -> None:
        """The controller removes what nobody takes over (`Repository.sweep`)."""
