"""Quotas and limit ranges at work on a store: totals that are never behind, room that is never given away twice.

The keeper observes every commit and keeps, per quota, what its objects use. A write that was admitted but is not yet
committed has its share reserved, so a burst of writes cannot pass together where only one fits. A reservation lives as
long as the store has an uncommitted write at that address: what failed, or was only a dry run, frees itself.
"""

from __future__ import annotations

import logging

from paddlecloud.kube.quantity import Amounts, minus, total
from paddlecloud.kube.resource import Object
from paddlecloud.kube.worker import Worker
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.policy import limitrange, quota
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress, Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

log = logging.getLogger(__name__)

QUOTAS, RANGES = "/resourcequotas", "/limitranges"
_MANAGER = "resourcequota-controller"
_SETTLE = 0.05  # seconds of changes that share one status write


class _Kept:
    """One quota and its running total."""

    __slots__ = ("collections", "quota", "used")

    def __init__(self, obj: Object) -> None:
        self.quota = obj
        self.collections = {quota.collection_of(name) for name in (obj.get("spec") or {}).get("hard") or {}}
        self.used: Amounts = {}

    @property
    def name(self) -> str:
        return str(self.quota["metadata"]["name"])


class QuotaKeeper:
    """`default` and `admit` go among the mutators and policies of admission, `run` beside the other controllers."""

    def __init__(self, store: Store, registry: Registry, verbs: Verbs) -> None:
        self._store = store
        self._registry = registry
        self._verbs = verbs
        self._quotas: dict[str, dict[str, _Kept]] = {}
        self._ranges: dict[str, dict[str, Object]] = {}
        self._reserved: dict[str, dict[ObjectAddress, dict[str, Amounts]]] = {}  # by namespace, address and quota
        self._worker: Worker[tuple[str, str]] = Worker("status of quota", self.write_status, settle=_SETTLE)
        for record in (*store.list(QUOTAS), *store.list(RANGES)):
            self._take(record)
        store.subscribe(self._observe)

    # --- admission ---

    def default(self, info: KindInfo, obj: Object, old: Object | None) -> None:
        """A mutator: new pods get the default requests and limits of their namespace."""
        if old is not None or info.resource.group or info.kind != "Pod":
            return
        ranges = self._ranges.get(obj["metadata"].get("namespace") or "")
        if ranges:
            limitrange.apply_defaults([ranges[name] for name in sorted(ranges)], obj)

    def admit(self, info: KindInfo, obj: Object, old: Object | None, _: WriteOptions) -> None:
        """A policy: refuse what is out of bounds or beyond a quota, reserve the rest."""
        namespace = obj["metadata"].get("namespace") or ""
        collection = info.collection
        ranges = self._ranges.get(namespace)
        if ranges and old is None:
            if collection == quota.PODS:
                limitrange.check_pod(ranges.values(), obj)
            elif collection == quota.CLAIMS:
                limitrange.check_claim(ranges.values(), obj)
        kept = [
            entry for _, entry in sorted(self._quotas.get(namespace, {}).items()) if collection in entry.collections
        ]
        if not kept:
            return
        reserved = self._living_reservations(namespace)
        taken = {entry.name: total([entry.used, *(r.get(entry.name, {}) for r in reserved.values())]) for entry in kept}
        quota.check([e.quota for e in kept], collection, obj, old, used=lambda one: taken[one["metadata"]["name"]])
        shares = reserved.setdefault(ObjectAddress(collection, namespace, obj["metadata"]["name"]), {})
        for entry in kept:
            grown = minus(quota.counted(entry.quota, collection, obj), quota.counted(entry.quota, collection, old))
            shares[entry.name] = total([shares.get(entry.name, {}), grown])

    def _living_reservations(self, namespace: str) -> dict[ObjectAddress, dict[str, Amounts]]:
        reserved = self._reserved.setdefault(namespace, {})
        for address in [a for a in reserved if self._store.latest(a) is self._store.get(a)]:
            del reserved[address]
        return reserved

    def used(self, namespace: str, name: str) -> Amounts:
        """What the objects of one quota use, as committed."""
        return dict(self._quotas[namespace][name].used)

    # --- following the store ---

    def _observe(self, change: Change) -> None:
        address = change.record.address
        for entry in self._quotas.get(address.namespace, {}).values():
            if address.collection in entry.collections:
                self._count(entry, change)
        if address.collection in (QUOTAS, RANGES):
            if change.op is Op.DELETE:
                self._forget(address)
            else:
                self._take(change.record)

    def _count(self, entry: _Kept, change: Change) -> None:
        address = change.record.address
        after = None if change.op is Op.DELETE else change.record
        grown = minus(_counted(entry.quota, after), _counted(entry.quota, change.previous))
        if not any(grown.values()):
            return
        entry.used = total([entry.used, grown])
        shares = self._reserved.get(address.namespace, {}).get(address)
        if shares and entry.name in shares:
            shares[entry.name] = minus(shares[entry.name], grown)  # committed now, so no longer only reserved
        self._mark(address.namespace, entry.name)

    def _take(self, record: Record) -> None:
        address, obj = record.address, record.object
        if address.collection == RANGES:
            self._ranges.setdefault(address.namespace, {})[address.name] = obj
            return
        known = self._quotas.get(address.namespace, {}).get(address.name)
        if known is not None and known.quota.get("spec") == obj.get("spec"):
            known.quota = obj
            if obj.get("status") != quota.status_of(obj, known.used):
                self._mark(address.namespace, address.name)
            return
        entry = _Kept(obj)
        entry.used = total(
            _counted(obj, found)
            for collection in entry.collections
            for found in self._store.list(collection, address.namespace)
        )
        self._quotas.setdefault(address.namespace, {})[address.name] = entry
        self._mark(address.namespace, address.name)

    def _forget(self, address: ObjectAddress) -> None:
        held: dict[str, dict[str, _Kept]] | dict[str, dict[str, Object]]
        held = self._quotas if address.collection == QUOTAS else self._ranges
        held.get(address.namespace, {}).pop(address.name, None)
        if not held.get(address.namespace):
            held.pop(address.namespace, None)
        if address.namespace not in self._quotas:
            self._reserved.pop(address.namespace, None)

    def _mark(self, namespace: str, name: str) -> None:
        self._worker.add((namespace, name))

    # --- status ---

    async def run(self) -> None:
        """Write `status.used` where it changed. Admission does not depend on it: it is for people to read."""
        await self._worker.run()

    async def write_status(self, key: tuple[str, str]) -> None:
        """Bring the status of one quota, by namespace and name, up to date."""
        namespace, name = key
        info = self._registry.find("", "v1", "resourcequotas")
        assert info is not None, "quotas are always served"
        entry = self._quotas.get(namespace, {}).get(name)
        if entry is None or entry.quota.get("status") == quota.status_of(entry.quota, entry.used):
            return

        def fill(obj: Object) -> Object:
            obj["status"] = quota.status_of(obj, entry.used)
            obj["metadata"].pop("resourceVersion", None)
            return obj

        options = WriteOptions(manager=_MANAGER)
        await self._verbs.update(info, namespace, name, fill, options=options, subresource="status")


def _counted(one: Object, record: Record | None) -> Amounts:
    if record is None:
        return {}
    try:
        return quota.counted(one, record.address.collection, record.object)
    except (AttributeError, TypeError, ValueError):
        # Validation keeps such objects out; should one be there all the same it cannot be counted.
        log.warning("%s is not understood and not counted by quotas", record.address.key())
        return {}
