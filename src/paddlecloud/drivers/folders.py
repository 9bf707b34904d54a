"""`local.paddlecloud.org`: the data of a SampleSet is a folder of the platform's.

The PersistentVolume with the attributes `namespace` and `name` is `<root>/NAMESPACE/NAME/data`, for pods of that
namespace; without them it has the handle `NAMESPACE-NAME`. Its attribute `path` names another folder below the root; a
volume that a pod itself describes has only folders of the pod's namespace. Deleting the volume keeps the folder: data
is removed by an rmr job, never by accident.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from paddlecloud.local.volumes.drivers import MountRequest
from paddlecloud.local.volumes.errors import VolumeError


class FolderDriver:
    def __init__(self, root: Path) -> None:
        self._root = root

    async def publish(self, request: MountRequest) -> Path:
        folder = self._root / self._inner(request)
        try:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        except OSError as error:
            raise VolumeError(f"volume {request.handle}: {folder}: {error.strerror}") from error
        return folder

    async def unpublish(self, request: MountRequest) -> None:
        """Nothing was mounted."""

    async def keep_only(self, pods: Collection[str]) -> None:
        """Nothing was mounted."""

    def _inner(self, request: MountRequest) -> str:
        if path := request.attributes.get("path", ""):
            if path.startswith("/") or ".." in path.split("/"):
                raise VolumeError(f"volume {request.handle}: path {path!r} must be relative and without '..'")
            if not request.claim and path.split("/")[0] != request.namespace:
                raise VolumeError(
                    f"volume {request.handle}: path {path!r} must begin with {request.namespace}/: a pod itself names "
                    "folders of its namespace only; use a PersistentVolumeClaim for others"
                )
            return path
        own, name = request.namespace, self._name(request)
        if not name or "/" in name or name in (".", ".."):
            raise VolumeError(f"volume {request.handle!r} must be called {own}-NAME, or have the attribute path")
        return f"{own}/{name}/data"

    def _name(self, request: MountRequest) -> str:
        """The set's name; empty when the volume is none of the pod's namespace."""
        said = request.attributes if request.claim else {}
        if said.get("name"):
            return said["name"] if said.get("namespace") == request.namespace else ""
        name = request.handle.removeprefix(f"{request.namespace}-")
        return "" if name == request.handle else name
