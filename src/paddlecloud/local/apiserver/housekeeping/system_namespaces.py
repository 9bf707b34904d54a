"""Namespaces that are always there: made at the start, and made again when somebody deletes one."""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.kube.worker import Worker
from paddlecloud.local.apiserver.housekeeping.namespaces import COLLECTION, KEPT
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import Registry
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

SYSTEM = (*KEPT, "kube-node-lease")
"""One that can be deleted comes back empty."""


class SystemNamespaces:
    """Makes the system namespaces and makes them again, as the controller of that name in kube-apiserver does.

    Without `kube-node-lease` no node can renew its lease, and nothing is scheduled to nodes that do not renew it.
    """

    def __init__(self, store: Store, registry: Registry, verbs: Verbs) -> None:
        self._registry = registry
        self._verbs = verbs
        self._worker: Worker[str] = Worker("system namespace", self._ensure)
        store.subscribe(self._observe)

    def _observe(self, change: Change) -> None:
        address = change.record.address
        if change.op is Op.DELETE and address.collection == COLLECTION and address.name in SYSTEM:
            self._worker.add(address.name)

    async def run(self) -> None:
        for name in SYSTEM:
            self._worker.add(name)
        await self._worker.run()

    async def ensure(self) -> None:
        for name in SYSTEM:
            await self._ensure(name)

    async def _ensure(self, name: str) -> None:
        kind = self._registry.find("", "v1", "namespaces")
        assert kind is not None, "namespaces are always served"
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await self._verbs.create(kind, namespace, namespace="", options=WriteOptions(manager="paddlecloud"))
        except errors.AlreadyExists:
            pass  # the usual case
