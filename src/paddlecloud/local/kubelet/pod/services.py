"""What pod workers share: everything of the machine and of the API that they use, behind narrow interfaces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.resource import Object
from paddlecloud.local import loopback
from paddlecloud.local.images.environment import Environment
from paddlecloud.local.kubelet.node.addresses import Addresses
from paddlecloud.local.kubelet.node.devices import Devices
from paddlecloud.local.kubelet.node.limits import PodCgroups
from paddlecloud.local.kubelet.node.warmparents import WarmParents
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.streams.archive import LogArchive
from paddlecloud.local.volumes.prepared_volumes import PreparedVolumes

PIDS_LIMIT = 4096
"""Processes and threads that a pod may have, as OpenShift has it: more than programs need, less than a bomb."""


class Images(Protocol):
    def resolve(self, image: str) -> Environment | None:
        """The environment of an image that is ready to use; None when it must be built, or nobody can."""

    def how_far(self, image: str) -> str:
        """What is being built for an image, with bytes, rate and time left as far as known; empty for nothing."""

    async def prepare(self, image: str, *, policy: str) -> Environment:
        """The environment of an image, built now if need be. Raises `images.errors.ImageUnavailable`."""


class ConfigObjects(Protocol):
    """ConfigMaps and Secrets. Pods that need a missing one are woken when it is created."""

    async def configmap(self, namespace: str, name: str) -> Object | None: ...

    async def secret(self, namespace: str, name: str) -> Object | None: ...


class Volumes(Protocol):
    async def prepare(self, pod: Object, folder: Path, *, pod_ip: str) -> PreparedVolumes:
        """Provide all volumes of a pod under `folder`. Raises `volumes.errors.VolumeError`."""

    async def refresh(self, pod: Object, folder: Path, *, pod_ip: str) -> None:
        """Bring volumes made of objects up to date while the pod runs."""

    async def release(self, pod: Object, folder: Path) -> None: ...

    async def keep_only(self, pods: Collection[str]) -> None:
        """Only these pods (by uid) are left; what others used goes."""


class Hosts(Protocol):
    def add(self, uid: str, file: Path, *, own: str, namespace: str) -> None:
        """Keep `file` showing the pod's own lines (`own`) and the names of the cluster as `namespace` sees them."""

    def remove(self, uid: str) -> None: ...


@dataclass(slots=True)
class NodeServices:
    client: Client
    clock: Clock
    data: Path
    zygote: ZygoteClient
    addresses: Addresses
    images: Images
    objects: ConfigObjects
    volumes: Volumes
    hosts: Hosts
    recorder: EventRecorder
    devices: Devices
    warm: WarmParents
    cgroups: PodCgroups
    archive: LogArchive
    own_node: str = ""
    """The node that is this machine; others share it, and have their own addresses."""
    allocatable: Mapping[str, str] = field(default_factory=dict)
    service_env: Callable[[Object], Mapping[str, str]] = lambda pod: {}
    pids_limit: int = PIDS_LIMIT
    forbid: str = ""
    """Sandbox modes not to use, for tests and for machines where one is known to be broken."""

    def host_ip(self, node: str) -> str:
        return loopback.node_address(node) if self.own_node and node != self.own_node else "127.0.0.1"

    def pod_dir(self, uid: str) -> Path:
        return self.data / "pods" / uid
