"""`local.paddlecloud.org`: the data of a SampleSet is a folder of the platform's.

The volume `NAMESPACE-NAME` of a pod in NAMESPACE is `<root>/NAMESPACE/NAME/data`; the attribute `path` names another
folder below the root. Deleting the volume keeps the folder: data is removed by an rmr job, never by accident.
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
            return path
        namespace = request.pod["metadata"].get("namespace", "")
        name = request.handle.removeprefix(f"{namespace}-")
        if name == request.handle or not name or "/" in name or name in (".", ".."):
            raise VolumeError(f"volume {request.handle!r} must be called {namespace}-NAME, or have the attribute path")
        return f"{namespace}/{name}/data"
