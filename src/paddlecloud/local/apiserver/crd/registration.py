"""Custom kinds come and go with their CustomResourceDefinitions, at the moment these are committed.

The registry follows the store synchronously: when the answer to a created CRD arrives, its kind is served. Deleting a
CRD deletes its objects first, as in Kubernetes, by a finalizer.
"""

from __future__ import annotations

import dataclasses

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import Object
from paddlecloud.kube.worker import Worker
from paddlecloud.local.apiserver.crd import install
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.verbs import DeleteOptions, Verbs
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress, Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

COLLECTION = "apiextensions.k8s.io/customresourcedefinitions"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_SETTLE = 0.05  # seconds of deletions that share one look at what is left


def accept(clock: Clock, registry: Registry, info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: a valid CRD is established at once; an invalid one is refused."""
    if info.kind != "CustomResourceDefinition":
        return
    causes = install.validate_crd(obj)
    if causes:
        raise errors.invalid(info.kind, obj["metadata"].get("name", ""), causes, group=info.resource.group)
    spec = obj["spec"]
    for version in spec["versions"]:
        existing = registry.find(spec["group"], version["name"], spec["names"]["plural"])
        if existing is not None and not existing.custom:
            raise errors.Forbidden(f"{spec['group']}/{version['name']} {spec['names']['kind']} is a built-in kind")
    if obj["metadata"].get("deletionTimestamp") is None:
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)
    if old is None or old.get("spec") != spec or "status" not in obj:
        obj["status"] = install.accepted_status(obj, clock.now())


def warn(info: KindInfo, obj: Object, old: Object | None, options: WriteOptions) -> None:
    """A policy that refuses nothing: what a definition asks for and will not get is said to its author."""
    if info.kind == "CustomResourceDefinition":
        options.warnings.extend(install.warnings_of(obj))


class CustomKinds:
    def __init__(self, store: Store, registry: Registry, verbs: Verbs) -> None:
        self._store = store
        self._registry = registry
        self._verbs = verbs
        self._served: dict[str, list[tuple[str, str, str]]] = {}
        self._deleted: dict[str, str] = {}  # definitions that are being deleted, by the collection of their objects
        self._worker: Worker[str] = Worker("custom resources of", self._clean, settle=_SETTLE)
        for record in store.list(COLLECTION):
            self._serve(record)
        store.subscribe(self._observe)

    def _observe(self, change: Change) -> None:
        address = change.record.address
        if address.collection == COLLECTION:
            if change.op is Op.DELETE:
                self._withdraw(address.name)
                self._deleted = {collection: name for collection, name in self._deleted.items() if name != address.name}
            else:
                self._serve(change.record)
        elif change.op is Op.DELETE and (name := self._deleted.get(address.collection)) is not None:
            self._worker.add(name)

    def _serve(self, record: Record) -> None:
        crd = record.object
        name = crd["metadata"]["name"]
        before = {key: self._registry.find(*key) for key in self._served.get(name, ())}
        self._withdraw(name)
        kinds = install.kinds_of(crd)
        for kind in kinds:
            old = before.get((kind.resource.group, kind.resource.version, kind.resource.plural))
            since = old.since if old is not None and old.schema == kind.schema else record.rev
            self._registry.add(dataclasses.replace(kind, since=since))
        self._served[name] = [(k.resource.group, k.resource.version, k.resource.plural) for k in kinds]
        if crd["metadata"].get("deletionTimestamp"):
            self._deleted[_collection(crd)] = name
            self._worker.add(name)

    def _withdraw(self, name: str) -> None:
        for group, version, plural in self._served.pop(name, ()):
            self._registry.remove(group, version, plural)

    async def run(self) -> None:
        """Finish deleted CRDs: first their objects, then themselves."""
        await self._worker.run()

    async def _clean(self, name: str) -> None:
        record = self._store.latest(ObjectAddress(COLLECTION, "", name))
        if record is None or not record.meta.deletion_timestamp:
            return  # gone, and perhaps made anew
        spec = record.object["spec"]
        kind = self._registry.any_version(spec["group"], spec["names"]["plural"])
        collection = _collection(record.object)
        for found in self._store.list(collection):
            if kind is not None and not found.meta.deletion_timestamp:
                await self._verbs.delete(kind, found.address.namespace, found.address.name, DeleteOptions())
        if self._store.count(collection):
            raise errors.Conflict("objects with finalizers remain")
        own = self._registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert own is not None, "CRDs are always served"

        def release(obj: Object) -> Object:
            meta = obj["metadata"]
            meta["finalizers"] = [f for f in meta.get("finalizers", []) if f != CLEANUP]
            return obj

        await self._verbs.update(own, "", name, release, options=WriteOptions(manager="apiextensions"))


def _collection(crd: Object) -> str:
    return f"{crd['spec']['group']}/{crd['spec']['names']['plural']}"
