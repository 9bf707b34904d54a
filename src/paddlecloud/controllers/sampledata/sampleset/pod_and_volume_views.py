"""Reads pods, volumes and jobs in the words the decision needs. Nothing here decides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from paddlecloud.api.paddlejob import phase_of
from paddlecloud.api.sampleset import Secret
from paddlecloud.api.sampleset.spec import ReadReport
from paddlecloud.controllers import grants
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset.case import CacheServer, SampleJobView, SecretView
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.kube.cache import Cache, Indexer
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.controller import Mapper
from paddlecloud.kube.errors import BadRequest, Forbidden, NotFound
from paddlecloud.kube.resource import SECRETS, Key, Object, controller_of, key_of


def cache_server_of(pod: Object, name: str, stateful_set: str) -> CacheServer | None:
    """A cache server as its pod shows it; None for a pod that is none. `stateful_set` is the uid of the set's own."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    prefix, _, ordinal = meta["name"].rpartition("-")
    owner = controller_of(pod) or {}
    expected = names.runtime(name)
    if (owner.get("kind"), owner.get("name"), prefix) != ("StatefulSet", expected, expected) or not ordinal.isdecimal():
        return None
    ours = bool(stateful_set) and owner.get("uid") == stateful_set
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    leaving = bool(meta.get("deletionTimestamp"))
    running = status.get("phase") == "Running" and ours
    containers = status.get("containerStatuses") or [{}]
    return CacheServer(
        ordinal=int(ordinal),
        name=meta["name"],
        uid=meta["uid"],
        instance=f"{meta['uid']}/{containers[0].get('restartCount', 0)}/{containers[0].get('containerID', '')}",
        node=spec.get("nodeName") or "",
        ip=(status.get("podIP") or "") if ours else "",
        running=running and not leaving,
        ready=running and not leaving and (conditions.get("Ready") or {}).get("status") == "True",
        leaving=leaving,
        trouble=_trouble(status, conditions),
    )


def cache_servers(pods: Cache, key: Key, stateful_set: Object | None, owner: str) -> tuple[CacheServer, ...]:
    """The cache servers of a set, in order. `pods` has the index `set`, by the label that names it.

    Labels and names are everybody's to choose. Only pods of the StatefulSet that the set (its uid is `owner`) controls
    have an address here; those of another are shown, because the set waits for them when it goes.
    """
    controller = controller_of(stateful_set) if stateful_set else None
    uid = str(stateful_set["metadata"]["uid"]) if stateful_set and controller and controller["uid"] == owner else ""
    own = [pod for pod in pods.by_index("set", key.name) if key_of(pod).namespace == key.namespace]
    found = [server for pod in own if (server := cache_server_of(pod, key.name, uid)) is not None]
    return tuple(sorted(found, key=lambda server: server.ordinal))


def _trouble(status: dict[str, Any], conditions: dict[str, Any]) -> str:
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return str(scheduled.get("message") or scheduled.get("reason") or "")
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        stopped = state.get("waiting") or state.get("terminated")
        # With a message even these are worth a sentence: the embedded platform says there what it downloads.
        quiet = ("ContainerCreating", "PodInitializing") if not (stopped or {}).get("message") else ()
        if stopped and stopped.get("reason") not in quiet:
            return without_ids(": ".join(str(stopped[key]) for key in ("reason", "message") if stopped.get(key)))
    return ""


def without_ids(text: str) -> str:
    """A sentence that does not change each time a container is tried again."""
    return re.sub(r"\b[0-9a-f]{64}\b", "…", text)


async def read_secret(client: Client, secret: Secret, *, namespace: str) -> SecretView | None:
    """The Secret as it is now; None when objects of `namespace` have none of that name, or none that they may use.

    `none` need not exist: it says that there are no keys.
    """
    found: Object | None = None
    try:
        found = await client.get(SECRETS, secret.name, secret.namespace)
    except (NotFound, BadRequest):
        pass  # reported in the same words as one that is not granted; a name like `a/b` is nobody's
    except Forbidden:
        if not grants.is_foreign(secret, namespace):
            raise  # else a controller that serves one namespace was asked for another's, which it cannot give
    if found is None or not grants.is_usable(found, namespace):
        return SecretView({}, "") if secret.name == "none" else None
    meta = found["metadata"]
    return SecretView(transfer.secret_values(found), f"{meta['uid']}/{meta['resourceVersion']}")


def volume_of(volumes: Cache, key: Key) -> tuple[Object | None, frozenset[str]]:
    """The set's own volume, and those of its possible names that another has."""
    ours: Object | None = None
    taken = set()
    for name in (key.name, names.unique(*key), names.former_alias(*key)):
        found = volumes.get(Key("", name))
        if found is None:
            continue
        ref = found["spec"].get("claimRef") or {}
        is_marked = any(label.endswith(f"-{name}") for label in found["metadata"].get("labels") or {})
        if is_marked and (ref.get("namespace"), ref.get("name")) == (key.namespace, key.name):
            ours = ours or found
        else:
            taken.add(name)
    return ours, frozenset(taken)


def handle_of(volume: Object) -> Iterable[str]:
    """Index of JuiceFS volumes by their handle. Folders of the local engine go by namespace and name."""
    csi = volume["spec"].get("csi") or {}
    return [str(csi["volumeHandle"])] if csi.get("driver") == names.JUICEFS_DRIVER else ()


def same_handle(volumes: Cache, ours: Object | None) -> tuple[str, ...]:
    """Other volumes that the driver would give the same mount. `volumes` has the index `handle`."""
    handles = handle_of(ours) if ours else ()
    found = {volume["metadata"]["name"] for handle in handles for volume in volumes.by_index("handle", handle)}
    return tuple(sorted(found - {ours["metadata"]["name"]} if ours else ()))


def is_done_to(job: Object, sample_set: Object) -> bool:
    """Whether a SampleJob that names the set is about this very one, not about a deleted set of the same name.

    Jobs of earlier releases do not note the set's uid: those that ended before the set was made are not its own.
    """
    status, meta = job.get("status") or {}, sample_set["metadata"]
    if uid := status.get("sampleSetUid"):
        return bool(uid == meta["uid"])
    ended, made = status.get("completionTime"), meta.get("creationTimestamp")
    return not (ended and made and parse_rfc3339(ended) < parse_rfc3339(made))


_OF_A_PART = ("source", "destination", "include", "exclude", "start", "end", "dry")
"""Options with which a sync copies other files than the import of the set would, or not to the same place."""


def sample_job_view(job: Object) -> SampleJobView:
    """A SampleJob of the set; one that has not ended has no time of completion."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    warmup, sync = spec.get("warmupOptions") or {}, spec.get("syncOptions") or {}
    some = warmup.get("paths") or (warmup.get("file") and warmup.get("strategyName") != "sampler")
    some = some or any(sync.get(option) for option in _OF_A_PART)
    ended = status.get("completionTime")
    return SampleJobView(
        name=job["metadata"]["name"],
        type=str(spec.get("type") or ""),
        whole=not some,
        options={key: value for key, value in warmup.items() if key != "partitions"},
        partitions=int(status.get("partitions") or 0),
        phase=str(status.get("phase") or ""),
        completed=parse_rfc3339(ended) if ended else 0.0,
        changed_files=bool(ended) and not sync.get("dry") and _has_changed(job),
    )


def _has_changed(job: Object) -> bool:
    """A job that failed may have changed files before it did."""
    type, progress = job["spec"].get("type"), job["status"].get("progress") or {}
    count = {name: int(progress.get(name) or 0) for name in ("files", "skippedFiles", "deletedFiles")}
    if type == "rmr":
        return count["files"] > 0
    return type == "sync" and (count["files"] > count["skippedFiles"] or count["deletedFiles"] > 0)


READING = frozenset({"Starting", "Running", "Restarting", "Scaling"})
"""Phases of PaddleJobs whose pods read. Pods of others are found by the claim they mount."""


def training(jobs: Iterable[Object]) -> tuple[str, ...]:
    """PaddleJobs that read their set. One that waits does not: it may wait for this very set."""
    active = [job for job in jobs if phase_of((job.get("status") or {}).get("phase")) in READING]
    return tuple(sorted(f"PaddleJob {job['metadata']['name']}" for job in active))


def uses_claim(pod: Object, claim: str) -> bool:
    """Whether a pod reads the set of this name. Its own cache servers do not count."""
    owner = controller_of(pod) or {}
    is_server = (owner.get("kind"), owner.get("name")) == ("StatefulSet", names.runtime(claim))
    volumes = pod["spec"].get("volumes") or ()
    return not is_server and any((v.get("persistentVolumeClaim") or {}).get("claimName") == claim for v in volumes)


def set_by_label(obj: Object) -> Iterable[Key]:
    name = (obj["metadata"].get("labels") or {}).get(names.SAMPLE_SET)
    return [Key(obj["metadata"].get("namespace", ""), name)] if name else ()


def set_by_claim(volume: Object) -> Iterable[Key]:
    """The set a volume was made for: that of the claim it is reserved for."""
    ref = volume["spec"].get("claimRef") or {}
    return [Key(ref["namespace"], ref["name"])] if ref.get("name") and ref.get("namespace") else ()


def set_of_sample_job(job: Object) -> Iterable[str]:
    ref = ((job.get("spec") or {}).get("sampleSetRef") or {}) if isinstance(job.get("spec"), dict) else {}
    return [f"{job['metadata'].get('namespace', '')}/{ref['name']}"] if ref.get("name") else ()


def set_of_paddle_job(job: Object) -> Iterable[str]:
    spec = job.get("spec")
    ref = spec.get("sampleSetRef") if isinstance(spec, dict) else None
    own = job["metadata"].get("namespace", "")
    if not isinstance(ref, dict) or not ref.get("name") or ref.get("namespace") not in (None, "", own):
        return ()  # a job that names another namespace reads nothing there, and holds nothing back
    return [f"{own}/{ref['name']}"]


def keys_of(index: Indexer) -> Mapper:
    """The keys of the sets that an index finds an object under."""
    return lambda obj: [Key(*text.split("/", 1)) for text in index(obj)]


def status_moved(old: Object | None, new: Object | None) -> bool:
    before, after = ((obj or {}).get("status") for obj in (old, new))
    return old is None or new is None or before != after


def epochs_of(job: Object) -> list[ReadReport]:
    """How a PaddleJob read the set, epoch by epoch, as far as its program reports."""
    epochs = ((job.get("status") or {}).get("cache") or {}).get("epochs") or ()
    fields = ("epoch", "hits", "misses")
    return [
        ReadReport(
            job=job["metadata"]["name"],
            stall_seconds=found.get("stallSeconds"),
            **{name: found.get(name) for name in fields},
        )
        for found in epochs
    ]


def only_metadata(node: Object) -> Object:
    """Of nodes nothing but labels is needed, and there may be thousands."""
    meta = node["metadata"]
    kept = {name: meta[name] for name in ("name", "uid", "resourceVersion", "labels") if name in meta}
    return {"apiVersion": node["apiVersion"], "kind": node["kind"], "metadata": kept}


def only_reading(job: Object) -> Object:
    """Of PaddleJobs: which set they read, how, and whether they have ended."""
    meta, spec = job["metadata"], job.get("spec")
    kept = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in meta}
    ref = spec.get("sampleSetRef") if isinstance(spec, dict) else None
    status = job.get("status") or {}
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": kept,
        "spec": {"sampleSetRef": ref} if ref else {},
        "status": {name: status[name] for name in ("phase", "cache") if status.get(name)} if ref else {},
    }
