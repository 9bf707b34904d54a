"""Fills in the rules of aggregated ClusterRoles, so that `kubectl describe clusterrole admin` shows what it grants.

Decisions do not wait for it: `RbacIndex` aggregates by itself. This is for people and tools that read the object.
"""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.kube.worker import Worker
from paddlecloud.local.apiserver.auth.rbac import GROUP, RbacIndex
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

_COLLECTION = f"{GROUP}/clusterroles"
_SETTLE = 0.1  # seconds of changes that share one pass: charts bring many roles at once


class RoleAggregator:
    def __init__(self, store: Store, registry: Registry, verbs: Verbs, index: RbacIndex) -> None:
        self._store = store
        self._registry = registry
        self._verbs = verbs
        self._index = index
        self._worker: Worker[str] = Worker("rules of aggregated", lambda _: self.refresh(), settle=_SETTLE)
        self._worker.add(_COLLECTION)
        store.subscribe(self._observe)

    def _observe(self, change: Change) -> None:
        if change.record.address.collection == _COLLECTION:
            self._worker.add(_COLLECTION)

    async def run(self) -> None:
        await self._worker.run()

    async def refresh(self) -> None:
        """Write the rules of every aggregated role that does not show them yet."""
        info = self._registry.find(GROUP, "v1", "clusterroles")
        assert info is not None, "roles are always served"
        failed: errors.ApiError | None = None
        for record in self._store.list(_COLLECTION):
            role = record.object
            if not role.get("aggregationRule"):
                continue
            name = record.address.name
            rules = [rule.body() for rule in self._index.role_rules(("", name)) or ()]
            if (role.get("rules") or []) == rules:
                continue
            try:
                await self._write(info, name, rules)
            except errors.ApiError as error:
                failed = error  # the others first
        if failed is not None:
            raise failed

    async def _write(self, info: KindInfo, name: str, rules: list[Object]) -> None:
        def fill(role: Object) -> Object:
            role["rules"] = rules
            role["metadata"].pop("resourceVersion", None)
            return role

        options = WriteOptions(manager="clusterrole-aggregation-controller")
        await self._verbs.update(info, "", name, fill, options=options)
