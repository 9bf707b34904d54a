"""What the controller knows of the cluster without asking: its caches, and one job's part of what they hold.

Jobs and what they own, all PodGroups, and the data jobs read: claims, sample sets and the labels of the
nodes that hold a part of one. Nothing here judges or writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from paddlecloud.api.names import ROLES
from paddlecloud.controllers.operator import MakeInformer
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.gang import podgroup
from paddlecloud.controllers.paddlejob.observe import Observed, PodView, view
from paddlecloud.controllers.paddlejob.pods import data, ports
from paddlecloud.kube.cache import by_label, by_owner, owned_by
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    NODES,
    PADDLEJOBS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    SAMPLESETS,
    SERVICES,
    Key,
    Object,
    Resource,
    controller_of,
    key_of,
)

GANGS = {engine.resource: engine for engine in podgroup.ENGINES}
OWNED = (PODS, CONFIGMAPS, SERVICES)


class Caches:
    """One informer per kind; kinds that the API server does not have are left out."""

    def __init__(self, informer: MakeInformer, served: Collection[Resource]) -> None:
        self.jobs = informer(PADDLEJOBS, indexers={"data": _data_of, "ports": ports.holders})
        self.owned = {
            resource: informer(
                resource,
                label_selector=None if resource in GANGS else names.JOB,
                indexers={"owner": by_owner, "job": by_label(names.JOB)},
            )
            for resource in (*OWNED, *(resource for resource in GANGS if resource in served))
        }
        self.claims = informer(PERSISTENTVOLUMECLAIMS)
        self.sets = informer(SAMPLESETS) if SAMPLESETS in served else None
        self.nodes = (
            informer(NODES, everywhere=True, transform=_only_labels, indexers={"labels": data.labels_of})
            if NODES in served
            else None
        )

    def readers_of(self, source: Object) -> Iterable[Key]:
        """The jobs that read a sample set, or a claim."""
        return [key_of(job) for job in self.jobs.cache.by_index("data", str(key_of(source)))]

    def observe(self, job: Object) -> Observed:
        """What is there of one job and around it. What only a controller remembers is not part of it."""
        uid, key = job["metadata"]["uid"], key_of(job)
        pods = [view(pod) for pod in self.owned[PODS].cache.by_index("owner", owned_by(job))]
        named = {resource: informer.cache.get(key) for resource, informer in self.owned.items() if resource != PODS}
        ours = {resource: obj for resource, obj in named.items() if obj is not None and _owner_uid(obj) == uid}
        leftovers, blockers = self._in_the_way(key, uid, named)
        data_key = _sample_set_of(job)
        return Observed(
            pods=tuple(sorted((pod for pod in pods if pod is not None), key=_by_place)),
            config=ours.get(CONFIGMAPS),
            service=ours.get(SERVICES),
            pod_groups={resource: obj for resource, obj in named.items() if resource in GANGS and obj is not None},
            claim=self.claims.cache.get(data_key) if data_key else None,
            sample_set=self.sets.cache.get(data_key) if data_key and self.sets else None,
            mounted_sets=self._mounted_sets(job),
            cache_nodes=self._cache_nodes(job, data_key) if data_key else {},
            leftovers=leftovers,
            blockers=blockers,
        )

    def _mounted_sets(self, job: Object) -> tuple[Object, ...]:
        found = (self.sets.cache.get(key) for key in _claims_of(job)) if self.sets else ()
        return tuple(each for each in found if each is not None)

    def _in_the_way(self, key: Key, uid: str, named: dict[Resource, Object | None]) -> tuple[int, tuple[str, ...]]:
        """What holds the names we need: leftovers of an earlier job will go by themselves, others will not."""
        pods = self.owned[PODS].cache.by_index("job", key.name)
        others = [pod for pod in pods if pod["metadata"]["namespace"] == key.namespace]
        others += [obj for resource, obj in named.items() if obj is not None and resource not in GANGS]
        return in_the_way(others, uid)

    def _cache_nodes(self, job: Object, data_key: Key) -> dict[int, tuple[str, str]]:
        """The label of each partition that some node holds."""
        if self.nodes is None:
            return {}
        known = self.nodes.cache
        sample_set = self.sets.cache.get(data_key) if self.sets else None
        replicas = block(job, "worker").get("replicas")
        count = replicas if isinstance(replicas, int) else 1
        labels = data.partition_labels(data_key.name, sample_set, self.claims.cache.get(data_key), count)
        return {index: label for index, label in labels.items() if known.by_index("labels", "=".join(label))}


def in_the_way(others: Iterable[Object], uid: str) -> tuple[int, tuple[str, ...]]:
    """Of objects with a job's names: how many were made for an earlier job, and what is of others, by kind and name."""
    leftovers, blockers = 0, []
    for obj in others:
        owner = controller_of(obj) or {}
        if owner.get("uid") == uid:
            continue
        if owner.get("kind") == PADDLEJOBS.kind:
            leftovers += 1
        else:
            blockers.append(f"{obj['kind']} {obj['metadata']['name']}")
    return leftovers, tuple(blockers)


def block(job: Object, name: str) -> Object:
    """A mapping in the spec; empty when it is not there or is nonsense, which `decide` will name."""
    spec = job.get("spec")
    found = spec.get(name) if isinstance(spec, dict) else None
    return found if isinstance(found, dict) else {}


def _sample_set_of(job: Object) -> Key | None:
    """The set a job reads, and the claim of the same name: both are in the job's own namespace, whatever it says."""
    name = block(job, "sampleSetRef").get("name")
    return Key(job["metadata"].get("namespace", ""), str(name)) if name else None


def _data_of(job: Object) -> Iterable[str]:
    """Index of jobs by the data they read."""
    return [str(key) for key in _claims_of(job)]


def _claims_of(job: Object) -> list[Key]:
    """The claims that pods of the job mount; that of a sample set has the set's name."""
    names_ = [block(job, "sampleSetRef").get("name")]
    for role in ROLES:
        spec = (block(job, role).get("template") or {}).get("spec")
        volumes = spec.get("volumes") if isinstance(spec, dict) else None
        for volume in volumes if isinstance(volumes, list) else ():
            claim = volume.get("persistentVolumeClaim") if isinstance(volume, dict) else None
            names_.append(claim.get("claimName") if isinstance(claim, dict) else None)
    namespace = job["metadata"].get("namespace", "")
    found = dict.fromkeys(name for name in names_ if name and isinstance(name, str))
    return [Key(namespace, name) for name in found]


def _by_place(pod: PodView) -> tuple[str, int]:
    return pod.role, pod.index


def _owner_uid(obj: Object) -> str:
    return str((controller_of(obj) or {}).get("uid", ""))


def _only_labels(node: Object) -> Object:
    """Of nodes nothing but labels is needed, and there may be thousands."""
    meta = node["metadata"]
    kept = {name: meta[name] for name in ("name", "uid", "resourceVersion", "labels") if name in meta}
    node["metadata"] = kept
    node.pop("spec", None)
    node.pop("status", None)
    return node
