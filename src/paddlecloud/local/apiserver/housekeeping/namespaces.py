"""Namespaces: nothing is created where there is none, and a deleted one takes everything in it along.

Deletion follows Kubernetes: the namespace turns Terminating and keeps the finalizer `kubernetes` in its spec until it
is empty. Pods go first, so that nothing they run with (volumes, secrets, policies) is gone before them; objects with
finalizers or their own grace period may take their time.
"""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.kube.worker import Worker
from paddlecloud.local.apiserver.housekeeping import namespace_status
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.verbs import DeleteOptions, Mutate, Verbs
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress, Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

COLLECTION = "/namespaces"
PODS = "/pods"
ROOT_CA = "kube-root-ca.crt"
FINALIZER = "kubernetes"
DEFAULT_OBJECTS = (("/serviceaccounts", "default"), ("/configmaps", ROOT_CA))
KEPT = ("default", "kube-system", "kube-public")
"""Namespaces that cannot be deleted: too much assumes them."""


def admit(store: Store, info: KindInfo, obj: Object, old: Object | None, _: WriteOptions) -> None:
    """A guard: creation needs a living namespace."""
    if old is not None or not info.resource.namespaced:
        return
    name = obj["metadata"]["namespace"]
    record = store.latest(ObjectAddress(COLLECTION, "", name))
    if record is None:
        raise errors.not_found("namespaces", name)
    if record.meta.deletion_timestamp:
        why = f"unable to create new content in namespace {name} because it is being terminated"
        plural, group = info.resource.plural, info.resource.group
        refusal = errors.forbidden(plural, obj["metadata"].get("name", ""), why, group=group)
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated"}
        refusal.details = {**(refusal.details or {}), "causes": [{**cause, "field": "metadata.namespace"}]}
        raise refusal


def default(info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: new namespaces are Active, labelled with their name and held until empty."""
    if info.kind != "Namespace" or old is not None:
        return
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")
    finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    obj["status"] = {"phase": "Active"}


def keep(info: KindInfo, obj: Object) -> None:
    """A removal check: some namespaces stay."""
    name = obj["metadata"]["name"]
    if info.kind == "Namespace" and not info.resource.group and name in KEPT:
        raise errors.forbidden("namespaces", name, "this namespace may not be deleted")


class NamespaceCollector:
    """Empties namespaces that are being deleted. Observes commits synchronously, can be interrupted anywhere."""

    def __init__(self, store: Store, registry: Registry, verbs: Verbs) -> None:
        self._store = store
        self._registry = registry
        self._verbs = verbs
        self._terminating: set[str] = set()
        self._worker: Worker[str] = Worker("deletion of namespace", self._sweep)
        for record in store.list(COLLECTION):
            if record.meta.deletion_timestamp:
                self._terminating.add(record.address.name)
                self._worker.add(record.address.name)
        store.subscribe(self._observe)

    def _observe(self, change: Change) -> None:
        address = change.record.address
        if address.collection == COLLECTION:
            if change.op is Op.DELETE:
                self._terminating.discard(address.name)
            elif change.record.meta.deletion_timestamp:
                self._terminating.add(address.name)
                self._worker.add(address.name)
        elif change.op is Op.DELETE and address.namespace in self._terminating:
            self._worker.add(address.namespace)

    async def run(self) -> None:
        await self._worker.run()

    async def _sweep(self, name: str) -> None:
        record = self._store.latest(ObjectAddress(COLLECTION, "", name))
        if record is None or not record.meta.deletion_timestamp:
            return  # gone, and perhaps made anew
        content = [
            found
            for collection in self._store.collections()
            for found in self._store.list(collection, name)
            if collection != COLLECTION
        ]
        # As Kubernetes since 1.33 (OrderedNamespaceDeletion): the rest is deleted when no pod is left.
        pods = await self._removed([found for found in content if found.address.collection == PODS])
        if not pods:
            content = await self._removed([found for found in content if found.address.collection != PODS])
        if content:
            await self._report(name, record.object.get("status", {}), content)
            return

        def release(obj: Object) -> Object:
            spec = obj.get("spec", {})
            spec["finalizers"] = [finalizer for finalizer in spec.get("finalizers", ()) if finalizer != FINALIZER]
            return obj

        await self._write(name, release, subresource="finalize")

    async def _removed(self, content: list[Record]) -> list[Record]:
        """Delete each of them that is not being deleted yet, and say what is left."""
        for found in content:
            if not found.meta.deletion_timestamp:
                await self._remove(found.address)
        return [left for found in content if (left := self._store.get(found.address)) is not None]

    async def _report(self, name: str, status: Object, content: list[Record]) -> None:
        """Say in the status what keeps the namespace, unless it says so already."""
        found = namespace_status.conditions(content, status.get("conditions", ()), self._verbs.clock.now())
        if found == status.get("conditions"):
            return

        def report(obj: Object) -> Object:
            obj["status"] = {**obj.get("status", {}), "conditions": found}
            return obj

        await self._write(name, report, subresource="status")

    async def _write(self, name: str, mutate: Mutate, *, subresource: str = "") -> None:
        kind = self._registry.find("", "v1", "namespaces")
        assert kind is not None, "namespaces are always served"
        options = WriteOptions(manager="namespace-controller")
        await self._verbs.update(kind, name, name, mutate, options=options, subresource=subresource)

    async def _remove(self, address: ObjectAddress) -> None:
        group, _, plural = address.collection.partition("/")
        kind = self._registry.any_version(group, plural)
        if kind is None:
            return
        try:
            await self._verbs.delete(kind, address.namespace, address.name, DeleteOptions(propagation="Background"))
        except errors.NotFound:
            pass  # its owner took it along


class NamespaceInitializer:
    """Gives every namespace what pods expect to find: the service account `default` and the CA certificate.

    The certificate stays as it is, whatever is written there (pkg/controller/certificates/rootcacertpublisher).
    """

    def __init__(self, store: Store, registry: Registry, verbs: Verbs, *, ca: str) -> None:
        self._store = store
        self._registry = registry
        self._verbs = verbs
        self._data = {"ca.crt": ca}
        self._worker: Worker[str] = Worker("default objects of namespace", self._initialize)
        for record in store.list(COLLECTION):
            self._worker.add(record.address.name)
        store.subscribe(self._observe)

    def _observe(self, change: Change) -> None:
        address = change.record.address
        if change.op is Op.CREATE and address.collection == COLLECTION:
            self._worker.add(address.name)
        elif change.op is not Op.CREATE and (address.collection, address.name) in DEFAULT_OBJECTS:
            self._worker.add(address.namespace)

    async def run(self) -> None:
        await self._worker.run()

    async def _initialize(self, namespace: str) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        root = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ROOT_CA}, "data": dict(self._data)}
        wanted: tuple[tuple[str, str, Object], ...] = (
            ("serviceaccounts", "default", account),
            ("configmaps", ROOT_CA, root),
        )
        for plural, name, obj in wanted:
            kind = self._registry.find("", "v1", plural)
            assert kind is not None, f"{plural} are always served"
            options = WriteOptions(manager="namespace-controller")
            try:
                current = self._store.latest(ObjectAddress(f"/{plural}", namespace, name))
                if current is None:
                    await self._verbs.create(kind, obj, namespace=namespace, options=options)
                elif plural == "configmaps" and current.object.get("data") != self._data:
                    await self._verbs.update(kind, namespace, ROOT_CA, self._restored, options=options)
            except (errors.NotFound, errors.Forbidden) as error:
                if isinstance(error, errors.NotFound) or errors.is_namespace_terminating(error):
                    return  # the namespace is gone, or going
                raise  # a quota may be raised

    def _restored(self, config_map: Object) -> Object:
        return {**config_map, "data": dict(self._data)}
