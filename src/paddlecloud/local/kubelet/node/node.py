"""The machine as a Node of the API: its object, and the Lease that says it is alive."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecloud import __version__
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, rfc3339, rfc3339_micro
from paddlecloud.kube.errors import AlreadyExists, ApiError, NotFound
from paddlecloud.kube.resource import LEASES, NODES, Object

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
HEARTBEAT = 10.0
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
MAX_PODS = 500


@dataclass(frozen=True, slots=True)
class NodeConfig:
    name: str
    capacity: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Object, ...] = ()
    declared: bool = False
    """Made by `pdc node add`: the GPUs in its status are declared only; none of the machine's are its own."""


def machine_capacity() -> dict[str, str]:
    """What this machine has, as Kubernetes counts it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    disk = os.statvfs("/")
    return {
        "cpu": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk.f_frsize * disk.f_blocks // 1024}Ki",
        "pods": str(MAX_PODS),
    }


def node_object(config: NodeConfig, *, host_ip: str, now: float) -> Object:
    capacity = {**machine_capacity(), **config.capacity}
    machine = MACHINES.get(platform.machine(), platform.machine())
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": config.name,
            "labels": {
                "kubernetes.io/hostname": config.name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": machine,
                "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": machine,
                **config.labels,
            },
            "annotations": dict(config.annotations),
        },
        "spec": {"taints": list(config.taints)} if config.taints else {},
        "status": node_status(config, capacity, host_ip=host_ip, now=now, machine=machine),
    }


def node_status(config: NodeConfig, capacity: Mapping[str, str], *, host_ip: str, now: float, machine: str) -> Object:
    return {
        "capacity": dict(capacity),
        "allocatable": dict(capacity),
        "conditions": [
            _condition("MemoryPressure", "False", "KubeletHasSufficientMemory", now),
            _condition("DiskPressure", "False", "KubeletHasNoDiskPressure", now),
            _condition("PIDPressure", "False", "KubeletHasSufficientPID", now),
            _condition("Ready", "True", "KubeletReady", now),
        ],
        "addresses": [
            {"type": "InternalIP", "address": host_ip},
            {"type": "Hostname", "address": config.name},
        ],
        "nodeInfo": {
            "machineID": "",
            "systemUUID": "",
            "bootID": _boot_id(),
            "kernelVersion": platform.release(),
            "osImage": _os_image(),
            "containerRuntimeVersion": f"process://{__version__}",
            "kubeletVersion": f"v1.34.0-paddlecloud.{__version__}",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": machine,
        },
    }


def _condition(kind: str, status: str, reason: str, now: float) -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "kubelet is posting ready status" if kind == "Ready" else f"kubelet says: {reason}",
        "lastHeartbeatTime": rfc3339(now),
        "lastTransitionTime": rfc3339(now),
    }


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


class NodeRegistration:
    """Creates or refreshes the Node once, then renews its Lease until cancelled."""

    def __init__(self, client: Client, clock: Clock, config: NodeConfig, *, host_ip: str) -> None:
        self._client = client
        self._clock = clock
        self._config = config
        self._host_ip = host_ip

    async def register(self) -> None:
        wanted = node_object(self._config, host_ip=self._host_ip, now=self._clock.now())
        try:
            await self._client.create(NODES, wanted)
        except AlreadyExists:
            ours = {key: wanted["metadata"][key] for key in ("labels", "annotations")}
            await self._client.patch(NODES, self._config.name, {"metadata": ours})
        await self._client.patch(
            NODES, self._config.name, {"status": wanted["status"]}, kind="strategic", subresource="status"
        )

    async def keep_alive(self) -> None:
        while True:
            try:
                await self._renew()
            except ApiError as error:
                log.warning("node %s: the heartbeat failed: %s", self._config.name, error)
            await self._clock.sleep(HEARTBEAT)

    async def _renew(self) -> None:
        now = rfc3339_micro(self._clock.now())
        name = self._config.name
        try:
            await self._client.patch(LEASES, name, {"spec": {"renewTime": now}}, namespace=LEASE_NAMESPACE)
        except NotFound:
            lease = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
            }
            await self._client.create(LEASES, lease, namespace=LEASE_NAMESPACE)
