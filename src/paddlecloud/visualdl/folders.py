"""Where a job's program writes its records, and how another pod reads them: which volumes of the job hold a folder.

Pure functions of the PaddleJob as it was written. A folder that only the job's own pods have (an emptyDir, the
container's own disk) can be read in them while they run, and by no other pod.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from paddlecloud.api.training_pod import mapping, mappings, training_container, training_pod
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS, Object

OF_ONE_POD = frozenset(("emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image"))
"""Types of volumes that no other pod can have."""
CLAIMS = "/claims"
"""Below it a claim that is named without a job is mounted."""
PLACED_LIKE_THE_JOB = ("nodeSelector", "tolerations", "imagePullSecrets", "securityContext")
"""Fields of a pod that decide where it may run and which files it may read."""


class FolderError(ValueError):
    """A folder cannot be read from another pod; the text says which one, why, and what to change."""


@dataclass(frozen=True)
class Placement:
    """What a pod needs to see the folders at the paths at which the job's program sees them."""

    folders: tuple[str, ...]
    volumes: tuple[Object, ...]
    mounts: tuple[Object, ...]


@dataclass(frozen=True)
class TrainingContainer:
    """The container that trains, as far as its files go."""

    workdir: str
    mounts: tuple[Object, ...]
    volumes: dict[str, Object]
    samples: str
    """Name of the volume with the data of the job's SampleSet."""

    @classmethod
    def of(cls, job: Object) -> TrainingContainer:
        pod = training_pod(job)
        first = training_container(job)
        mounts = [one for one in mappings(first.get("volumeMounts")) if one.get("mountPath")]
        volumes = {str(one.get("name")): one for one in mappings(pod.get("volumes"))}
        reference = mapping(mapping(job.get("spec")).get("sampleSetRef"))
        if (name := reference.get("name")) and (path := reference.get("mountPath")):
            volumes.setdefault(name, {"name": name, "persistentVolumeClaim": {"claimName": name}})
            mounts.append({"name": name, "mountPath": path})
        return cls(str(first.get("workingDir") or ""), tuple(mounts), volumes, str(reference.get("name") or ""))

    def mount_at(self, folder: str) -> Object | None:
        """The mount that a folder lies on: the deepest of those above it."""
        above = [one for one in self.mounts if _is_below(folder, str(one["mountPath"]))]
        return max(above, key=lambda one: len(_clean(str(one["mountPath"]))), default=None)

    def is_shared(self, mount: Object) -> bool:
        return not OF_ONE_POD.intersection(self.volumes.get(str(mount.get("name"))) or {"emptyDir": {}})

    def may_write(self, mount: Object) -> bool:
        claim = (self.volumes.get(str(mount.get("name"))) or {}).get("persistentVolumeClaim") or {}
        return not mount.get("readOnly") and not claim.get("readOnly") and mount.get("name") != self.samples


def of_claim(claim: Object, image: str) -> Object:
    """A claim as a job whose program had it at /claims/NAME: it keeps records when the job that wrote them is gone."""
    meta = claim["metadata"]
    name, path = str(meta["name"]), f"{CLAIMS}/{meta['name']}"
    container = {"image": image, "workingDir": path, "volumeMounts": [{"name": name, "mountPath": path}]}
    volume = {"name": name, "persistentVolumeClaim": {"claimName": name}}
    pod = {"containers": [container], "volumes": [volume]}
    kind = PERSISTENTVOLUMECLAIMS
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": meta,
        "spec": {"worker": {"template": {"spec": pod}}},
    }


def is_claim(job: Object) -> bool:
    """Whether it was made by `of_claim`."""
    return bool(job.get("kind") == PERSISTENTVOLUMECLAIMS.kind)


def likely(job: Object) -> tuple[str, ...]:
    """Where records are looked for unless a folder is named: the program's working directory if it lies on a volume,
    else every volume that it can write to. Empty when there is none."""
    program = TrainingContainer.of(job)
    if program.workdir and program.mount_at(_clean(program.workdir)) is not None:
        return (_clean(program.workdir),)
    writable = [one for one in program.mounts if program.may_write(one) and program.is_shared(one)]
    return tuple(dict.fromkeys(_clean(str(one["mountPath"])) for one in writable))


def absolute(job: Object, folders: Sequence[str]) -> tuple[str, ...]:
    """Folders as the program writes them: relative ones begin in its working directory. Raises `FolderError`."""
    workdir = TrainingContainer.of(job).workdir
    for folder in folders:
        if not folder.startswith("/") and not workdir:
            raise FolderError(
                f"{folder} is relative, and the job does not say where its program starts: write the whole path as the "
                "program's container has it"
            )
    return tuple(_clean(posixpath.join(workdir, folder)) for folder in folders)


def placed(job: Object, paths: Sequence[str], *, below: str = "") -> Placement:
    """How another pod gets absolute paths of the job's program, at the same paths or at those `below` a folder. Raises
    `FolderError`."""
    program, chosen = TrainingContainer.of(job), {}
    if not paths:
        raise FolderError(
            "the job has no volume that it writes to and that another pod could mount: give its program a "
            "PersistentVolumeClaim, write the records there, and name the folder with --logdir"
        )
    for path in paths:
        mount = program.mount_at(path)
        if mount is None:
            raise FolderError(
                f"{path} lies on the container's own disk, which no other pod can read: have the program write its "
                f"records to a volume of the job{_where(program)}"
            )
        if not program.is_shared(mount):
            raise FolderError(
                f"{path} lies on the volume {mount.get('name')}, which each pod has for itself: have the program write "
                f"its records to a PersistentVolumeClaim{_where(program)}"
            )
        if mount.get("subPathExpr"):
            raise FolderError(f"{path} lies on a mount with subPathExpr, which names another folder in each pod")
        chosen[str(mount["mountPath"])] = mount
    kept = ("name", "mountPath", "subPath")
    mounts = tuple(
        {**{key: one[key] for key in kept if key in one}, "mountPath": below + str(one["mountPath"])}
        for one in chosen.values()
    )
    names = dict.fromkeys(str(one["name"]) for one in mounts)
    return Placement(tuple(below + path for path in paths), tuple(program.volumes[name] for name in names), mounts)


def together(placements: Sequence[Placement]) -> Placement:
    """Folders of several jobs for one pod. What several of them mount is one volume: a pod with two volumes of one
    claim does not start on every cluster, as the kubelet mounts a claim once."""
    if len(placements) == 1:
        return placements[0]
    volumes: dict[str, Object] = {}
    mounts: list[Object] = []
    for placement in placements:
        sources = {str(one["name"]): _source(one) for one in placement.volumes}
        for mount in placement.mounts:
            source = sources[str(mount["name"])]
            key = json.dumps(source, sort_keys=True)
            volumes.setdefault(key, {"name": f"records-{len(volumes)}", **source})
            mounts.append({**mount, "name": volumes[key]["name"]})
    return Placement(
        tuple(folder for one in placements for folder in one.folders), tuple(volumes.values()), tuple(mounts)
    )


def _source(volume: Object) -> Object:
    """Without what does not make it another one: every mount is read-only."""
    source = {key: value for key, value in volume.items() if key != "name"}
    if isinstance(claim := source.get("persistentVolumeClaim"), dict):
        source["persistentVolumeClaim"] = {"claimName": claim.get("claimName")}
    return source


def like_the_job(job: Object) -> Object:
    """Fields for a pod that reads what the job's pods write."""
    pod = training_pod(job)
    return {field: pod[field] for field in PLACED_LIKE_THE_JOB if pod.get(field)}


def _where(program: TrainingContainer) -> str:
    known = [str(one["mountPath"]) for one in program.mounts if program.is_shared(one) and program.may_write(one)]
    return f" ({', '.join(known)})" if known else ""


def _clean(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _is_below(path: str, folder: str) -> bool:
    above = _clean(folder)
    return path == above or path.startswith(above.rstrip("/") + "/")
