"""Claims and volumes in use are not pulled away: a finalizer holds a deleted one until nobody needs it any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Patch, Plan
from paddlecloud.kube.pods import is_finished
from paddlecloud.kube.resource import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    STORAGECLASSES,
    Key,
    Object,
    Resource,
    key_of,
    resource_of,
)
from paddlecloud.local.apiserver.builtin.classes import default_of
from paddlecloud.local.apiserver.objects.admission import Mutator
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.store import Store
from paddlecloud.local.volumes.binding import DEFAULT_MARK
from paddlecloud.local.workloads.reconciler import WorkloadReconciler

FINALIZERS = {
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
    "PersistentVolume": "kubernetes.io/pv-protection",
}
CLAIMS = "claims"


def protect(info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: new claims and volumes get their finalizer."""
    finalizer = FINALIZERS.get(info.kind) if not info.resource.group else None
    if finalizer and old is None:
        meta = obj["metadata"]
        meta["finalizers"] = sorted({*meta.get("finalizers", ()), finalizer})


def default_class(store: Store) -> Mutator:
    """A mutator: a claim that names no class gets the one marked as default. An empty name means none, on purpose."""
    collection = f"{STORAGECLASSES.group}/{STORAGECLASSES.plural}"

    def assign(info: KindInfo, obj: Object, old: Object | None) -> None:
        if info.kind != "PersistentVolumeClaim" or info.resource.group or old is not None:
            return
        spec = obj.get("spec")
        if not isinstance(spec, dict) or spec.get("storageClassName") is not None:
            return
        if marked := default_of(store, collection, DEFAULT_MARK):
            spec["storageClassName"] = marked

    return assign


def decide(obj: Object, in_use: bool, now: float) -> Plan:
    meta = obj["metadata"]
    finalizer = FINALIZERS[obj["kind"]]
    if not meta.get("deletionTimestamp") or finalizer not in meta.get("finalizers", ()) or in_use:
        return Plan()
    left = [name for name in meta["finalizers"] if name != finalizer]
    body = {"metadata": {"resourceVersion": meta["resourceVersion"], "finalizers": left or None}}
    patch = Patch(resource_of(obj), meta["name"], meta.get("namespace"), body, seen=meta["resourceVersion"])
    return Plan(patch=[patch])


def protection_controllers(manager: Manager, clock: Clock) -> None:
    """A claim is in use while a pod that is not over names it; a volume while its claim exists."""
    pods = manager.informer(PODS, indexers={CLAIMS: _claims_of})
    claims = manager.informer(PERSISTENTVOLUMECLAIMS)

    def used(claim: Object) -> bool:
        return any(not is_finished(pod) for pod in pods.cache.by_index(CLAIMS, str(key_of(claim))))

    def bound(volume: Object) -> bool:
        ref = volume["spec"].get("claimRef") or {}
        claim = claims.cache.get(Key(ref.get("namespace", ""), ref.get("name", "")))
        return claim is not None and claim["metadata"]["uid"] == ref.get("uid")

    def reconciler(resource: Resource, name: str, in_use: Callable[[Object], bool]) -> WorkloadReconciler[bool]:
        return WorkloadReconciler(manager, resource, name=name, observe=in_use, decide=decide, clock=clock)

    guard = reconciler(PERSISTENTVOLUMECLAIMS, "pvc-protection-controller", used)
    guard.controller.watch(pods, map=lambda pod: [_key(name) for name in _claims_of(pod)])
    guard = reconciler(PERSISTENTVOLUMES, "pv-protection-controller", bound)
    guard.controller.watch(claims, map=_volume_of)


def _claims_of(pod: Object) -> Iterable[str]:
    namespace = pod["metadata"].get("namespace", "")
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            yield f"{namespace}/{source['claimName']}"


def _key(text: str) -> Key:
    namespace, _, name = text.partition("/")
    return Key(namespace, name)


def _volume_of(claim: Object) -> Iterable[Key]:
    if name := claim["spec"].get("volumeName"):
        yield Key("", name)
