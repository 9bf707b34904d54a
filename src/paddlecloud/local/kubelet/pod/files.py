"""The directory of a pod: made before its first container, filled before each, removed with the pod."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from paddlecloud.kube.resource import Object
from paddlecloud.local.images.environment import Environment
from paddlecloud.local.kubelet.pod.container_order import assemble, hostname_of, platform_env, sub_paths
from paddlecloud.local.kubelet.pod.env import Facts, build_env
from paddlecloud.local.kubelet.pod.exec_limits import Room
from paddlecloud.local.kubelet.pod.hosts import own_lines, write_in_place
from paddlecloud.local.kubelet.pod.lifecycle import Start
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.pod_state import all_containers
from paddlecloud.local.kubelet.pod.services import NodeServices
from paddlecloud.local.kubelet.shim import cgroups, wire
from paddlecloud.local.removal import remove_tree
from paddlecloud.local.volumes.prepared_volumes import PreparedVolumes


class PodFiles:
    """Also holds the pod's address: it is kept in the directory's `spec.json`, so that it outlives the kubelet."""

    def __init__(self, pod: Object, machine: NodeServices) -> None:
        self._machine = machine
        self._uid: str = pod["metadata"]["uid"]
        self.paths = PodPaths(machine.pod_dir(self._uid))
        self._prepared: PreparedVolumes | None = None
        self._env: dict[str, dict[str, str]] = {}
        self._settled = False
        self.ip = ""
        if known := wire.read_json(str(self.paths.spec)):
            self.ip = known.get("ip", "")
            self._publish_names(pod)

    def create(self, pod: Object) -> None:
        """Give the pod its address and directory; does nothing the second time."""
        if self.ip:
            return
        host = bool(pod["spec"].get("hostNetwork"))
        self.ip = self._node_ip(pod) if host else self._machine.addresses.allocate()
        self.paths.root.mkdir(parents=True, exist_ok=True)
        write_in_place(self.paths.hostname, hostname_of(pod) + "\n")
        wire.write_json(str(self.paths.spec), self.pod_spec(pod)._asdict())
        self._publish_names(pod)

    def _node_ip(self, pod: Object) -> str:
        return self._machine.host_ip(pod["spec"].get("nodeName", ""))

    def _on_this_machine(self, pod: Object) -> bool:
        """Whether the pod has the whole network of this machine; that of a further virtual node is one address."""
        return bool(pod["spec"].get("hostNetwork")) and self._node_ip(pod) == "127.0.0.1"

    def _publish_names(self, pod: Object) -> None:
        self._machine.hosts.add(
            self._uid, self.paths.hosts, own=own_lines(pod, self.ip), namespace=pod["metadata"].get("namespace", "")
        )

    def pod_spec(self, pod: Object) -> wire.PodSpec:
        meta = pod["metadata"]
        return wire.PodSpec(
            uid=self._uid,
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            hostname=hostname_of(pod),
            ip=self.ip,
            forbid=self._machine.forbid,
            gpus={name: list(held) for name, held in self._machine.devices.held(self._uid).items()} or None,
            tmpfs=self._prepared.tmpfs if self._prepared else (),
            cgroup=self._machine.cgroups.pod(self._uid),
            pids_limit=self._machine.pids_limit,
        )

    async def container(self, pod: Object, container: Object, start: Start, image: Environment) -> wire.ContainerSpec:
        """Everything on disk that this run needs, and the order for the shim.

        Raises `ContainerConfigError` for a missing reference and `VolumeError` for a volume that is not there yet.
        """
        if self._prepared is None:
            self._prepared = await self._machine.volumes.prepare(pod, self.paths.volumes, pod_ip=self.ip)
        facts = Facts(
            pod_ip=self.ip,
            host_ip=self._node_ip(pod),
            node_name=pod["spec"].get("nodeName", ""),
            allocatable=self._machine.allocatable,
        )
        namespace = pod["metadata"].get("namespace", "")
        objects = await _referenced(container, namespace, self._machine)
        devices = self._machine.devices
        held = {c["name"]: devices.allocate(self._uid, c, node=facts.node_name) for c in all_containers(pod)}
        base = {
            **self._machine.service_env(pod),
            **platform_env(pod, container, image),
            **devices.env(held[container["name"]]),
        }
        volumes = self._prepared.volumes

        def in_a_thread() -> wire.ContainerSpec:
            """A pod may have as many variables and mounts as fit into a request."""
            room = Room()
            env = build_env(
                pod,
                container,
                facts=facts,
                configmap=lambda name: objects.get(("configmap", name)),
                secret=lambda name: objects.get(("secret", name)),
                base=base,
                room=room,
            )
            spec = assemble(
                pod,
                container,
                attempt=start.attempt,
                streak=start.streak,
                image=image,
                env=env,
                room=room,
                volumes=volumes,
                paths=self.paths,
                pod_ip="" if self._on_this_machine(pod) else self.ip,
            )
            self._materialize(container, spec, image)
            return spec

        spec = await asyncio.to_thread(in_a_thread)
        self._env[spec.name] = spec.env
        return spec

    def env(self, name: str) -> Mapping[str, str]:
        """The environment a container was last started with, for `$(VAR)` in its probes and hooks."""
        return self._env.get(name, {})

    async def refresh(self, pod: Object) -> None:
        """Let running containers see what became of the objects in their volumes."""
        if self._prepared is not None or self.paths.volumes.exists():
            await self._machine.volumes.refresh(pod, self.paths.volumes, pod_ip=self.ip)

    def _materialize(self, container: Object, spec: wire.ContainerSpec, image: Environment) -> None:
        name = spec.name
        home = self.paths.private(name, "tmp") / "home"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        message = self.paths.termination(name, spec.attempt)
        message.parent.mkdir(exist_ok=True)
        message.touch()
        if spec.uid:
            # The program may be another user; these are its own, so they are open to it.
            self.paths.private(name, "tmp").chmod(0o1777)
            home.chmod(0o777)
            message.chmod(0o666)
        if image.root is not None:
            _copy_whole(image.root, self.paths.private(name, "image"))
        for source in sub_paths(container, spec.mounts):
            _make_folders(Path(source))

    async def settle(self, pod: Object) -> None:
        """No process is left: volumes, scratch space and GPUs are free. Logs and the record stay until `remove`."""
        if self._settled or not self.paths.root.exists():
            return
        self._machine.hosts.remove(self._uid)
        self._machine.devices.release(self._uid)
        await self._machine.volumes.release(pod, self.paths.volumes)
        for scratch in ("volumes", "private", "root"):
            await asyncio.to_thread(remove_tree, self.paths.root / scratch)
        self._settled = True

    async def remove(self, pod: Object) -> None:
        """Free the address and delete the directory; logs that somebody may still ask for are kept elsewhere."""
        await self.settle(pod)
        if self.paths.root.exists():
            archive = self._machine.archive
            if owner := await archive.owner(pod):
                await asyncio.to_thread(archive.keep, pod, owner, self.paths)
            await remove_pod_dir(self.paths.root)
        if self.ip and not pod["spec"].get("hostNetwork"):
            self._machine.addresses.release(self.ip)
        self.ip = ""


async def _referenced(container: Object, namespace: str, machine: NodeServices) -> dict[tuple[str, str], Object]:
    """The ConfigMaps and Secrets that a container's environment names, as far as they exist."""
    wanted: set[tuple[str, str]] = set()
    for source in container.get("envFrom") or ():
        for field, kind in (("configMapRef", "configmap"), ("secretRef", "secret")):
            if field in source:
                wanted.add((kind, source[field]["name"]))
    for entry in container.get("env") or ():
        for field, kind in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
            if ref := (entry.get("valueFrom") or {}).get(field):
                wanted.add((kind, ref["name"]))
    found = {}
    for kind, name in wanted:
        look_up = machine.objects.configmap if kind == "configmap" else machine.objects.secret
        if (obj := await look_up(namespace, name)) is not None:
            found[(kind, name)] = obj
    return found


CGROUP_TRIES, CGROUP_PAUSE = 50, 0.02
"""The kernel may take a moment to bury the last process of a pod."""


async def remove_pod_dir(root: Path) -> None:
    """Delete the directory of a pod without processes, and its cgroup, which is named in it."""
    spec = wire.read_json(str(root / wire.SPEC)) or {}
    if place := cgroups.place_from(spec.get("cgroup")):
        for _ in range(CGROUP_TRIES):
            if cgroups.remove(place):
                break
            await asyncio.sleep(CGROUP_PAUSE)
    await asyncio.to_thread(remove_tree, root)


def _copy_whole(source: Path, target: Path) -> None:
    """What is at `target` is complete: a start that was given up may still be copying when the next one looks."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    shutil.copytree(source, fresh, symlinks=True, dirs_exist_ok=True)
    try:
        fresh.rename(target)
    except OSError:  # the other one was faster
        shutil.rmtree(fresh, ignore_errors=True)


def _make_folders(place: Path) -> None:
    """A folder of a volume and those above it, as open as the volume is, whatever the platform's own files are."""
    if os.path.lexists(place):
        return
    _make_folders(place.parent)
    place.mkdir()
    place.chmod(stat.S_IMODE(place.parent.stat().st_mode))
