"""What a storage driver must offer to be used by pods under its CSI name.

The platform knows no driver itself: `csi.juicefs.com` and the like are registered from outside.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from paddlecloud.kube.resource import Object


@dataclass(frozen=True, slots=True)
class MountRequest:
    """One volume for one pod. `target` is a directory of the pod that the driver may use, or not.

    `claim` is the claim of the pod's namespace whose PersistentVolume this is. Without one the pod itself describes the
    volume: its attributes are then a tenant's words, where those of a PersistentVolume are an administrator's.
    """

    handle: str
    target: Path
    pod: Object
    attributes: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    readonly: bool = False
    claim: str = ""

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"].get("namespace", ""))


class Driver(Protocol):
    async def publish(self, request: MountRequest) -> Path:
        """The directory to bind into the pod. May be called again for the same volume and pod.

        Raises `VolumeError` for what may come right later.
        """

    async def unpublish(self, request: MountRequest) -> None:
        """No process of the pod is left. May be called again, and also after publishing failed half-way."""

    async def keep_only(self, pods: Collection[str]) -> None:
        """Of all pods only these (by uid) are left on the machine: what was published for others goes.

        Raises `VolumeError` when something would not go.
        """
