"""Logs that outlive their pods: kept for as long as the object that made the pods exists.

A job that cleans up after itself, or that was restarted as a whole, has deleted the very pods whose output people ask
for. Kubernetes has no place for that; here the log directory is moved aside when the pod goes:

    <data>/logs/<owner uid>/owner.json            who made the pods
    <data>/logs/<owner uid>/<pod uid>/pod.json    enough of the pod to know it by
    <data>/logs/<owner uid>/<pod uid>/…           status.json and logs/, as in a pod directory

What is kept for one owner is bounded; the oldest pods go first.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, BadRequest, NotFound
from paddlecloud.kube.resource import Object, Resource, controller_of
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.shim import wire
from paddlecloud.local.volumes.limits import used_bytes

MAX_BYTES_PER_OWNER = 256 << 20
OWNER, POD = "owner.json", "pod.json"
_UID = re.compile(r"[0-9A-Za-z-]+")
"""The author of a pod may write any text as its owner's uid; only these name a folder."""


class KeptPod(NamedTuple):
    """A pod that is gone, as far as readers of logs need it."""

    pod: Object
    paths: PodPaths
    ip: str = ""


class LogArchive:
    def __init__(self, folder: Path, client: Client, *, owners: Collection[Resource] = ()) -> None:
        """`owners` are the kinds whose pods' logs are kept."""
        self._folder = folder
        self._client = client
        self._owners = {(resource.group, resource.kind): resource for resource in owners}

    async def owner(self, pod: Object) -> Object | None:
        """The reference to the pod's owner, if logs are kept for its kind and it is there to stay."""
        ref = controller_of(pod)
        if ref is None or not _UID.fullmatch(ref["uid"]):
            return None
        namespace = pod["metadata"].get("namespace", "")
        return ref if await self._stays({**ref, "namespace": namespace}) else None

    async def _stays(self, ref: Object) -> bool:
        resource = self._owners.get((ref["apiVersion"].rpartition("/")[0], ref["kind"]))
        if resource is None:
            return False
        try:
            owner = await self._client.get(resource, ref["name"], ref["namespace"])
        except (NotFound, BadRequest):  # the latter for a name that nothing can have
            return False
        except ApiError:
            return True  # while the API cannot be asked, nothing is thrown away
        return owner["metadata"]["uid"] == ref["uid"] and not owner["metadata"].get("deletionTimestamp")

    def keep(self, pod: Object, owner: Object, paths: PodPaths) -> None:
        """Move the logs of a pod that is about to be removed."""
        if not (paths.root / "logs").is_dir():
            return
        meta = pod["metadata"]
        folder = self._folder / owner["uid"]
        target = folder / meta["uid"]
        target.mkdir(parents=True, exist_ok=True)
        wire.write_json(str(folder / OWNER), {**owner, "namespace": meta.get("namespace", "")})
        wire.write_json(str(target / POD), outline(pod))
        shutil.copyfile(paths.status, target / wire.STATUS)
        os.replace(paths.root / "logs", target / "logs")
        self._bound(folder)

    def pods(self, owner_uid: str) -> list[KeptPod]:
        """In the order in which they went."""
        kept = [
            KeptPod(pod, PodPaths(folder))
            for folder in _folders(self._folder / owner_uid)
            if (pod := wire.read_json(str(folder / POD)))
        ]
        return sorted(kept, key=lambda one: (one.paths.root / POD).stat().st_mtime_ns)

    def pod(self, owner_uid: str, pod_uid: str) -> KeptPod | None:
        """One of them. The uid is a text of a request: only one that names a folder is looked for."""
        folder = self._folder / owner_uid / pod_uid
        found = wire.read_json(str(folder / POD)) if _UID.fullmatch(pod_uid) else None
        return KeptPod(found, PodPaths(folder)) if found else None

    def _bound(self, folder: Path) -> None:
        sizes = [(one, used_bytes(one.paths.root)) for one in self.pods(folder.name)]
        excess = sum(size for _, size in sizes) - MAX_BYTES_PER_OWNER
        for one, size in sizes[:-1]:
            if excess <= 0:
                break
            shutil.rmtree(one.paths.root)
            excess -= size

    async def tidy(self) -> None:
        """Forget what was kept for owners that are gone."""
        for folder in list(_folders(self._folder)):
            owner = wire.read_json(str(folder / OWNER))
            if owner is None or not await self._stays(owner):
                shutil.rmtree(folder, ignore_errors=True)


def _folders(parent: Path) -> Iterator[Path]:
    if parent.is_dir():
        yield from (entry for entry in parent.iterdir() if entry.is_dir())


def outline(pod: Object) -> Object:
    """What identifies a pod and each of its containers."""
    meta = pod["metadata"]
    kept = ("name", "namespace", "uid", "creationTimestamp", "labels", "annotations", "ownerReferences")
    containers = {
        kind: [{"name": container["name"]} for container in pod["spec"][kind]]
        for kind in ("initContainers", "containers", "ephemeralContainers")
        if pod["spec"].get(kind)
    }
    return {
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": {**containers, "nodeName": pod["spec"].get("nodeName", "")},
        "status": pod.get("status") or {},
    }
