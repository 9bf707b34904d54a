"""Garbage collection by owner references: background, foreground and orphan, as Kubernetes defines them.

The collector hears every commit synchronously and keeps two indexes: who has which uid, and who depends on which uid.
Work is queued by address and done in order by one task; each step re-reads the newest state, so it may be repeated or
interrupted at any point. At start all objects are looked at once, so a crash between a deletion and its consequences
loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import Address, Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

from .admission import WriteOptions
from .registry import KindInfo, Registry
from .verbs import FOREGROUND, ORPHAN, DeleteOptions, Verbs

log = logging.getLogger(__name__)

IGNORED = frozenset(("/events", "events.k8s.io/events", "coordination.k8s.io/leases"))
"""Collections that never own anything and are written too often to be worth indexing."""


class GarbageCollector:
    def __init__(self, store: Store, registry: Registry, verbs: Verbs) -> None:
        self._store = store
        self._registry = registry
        self._verbs = verbs
        self._uids: dict[str, Address] = {}
        self._owners: dict[Address, tuple[str, ...]] = {}
        self._dependents: dict[str, set[Address]] = {}
        self._dirty: dict[Address, None] = {}  # ordered set
        self._wake = asyncio.Event()
        for collection in store.collections():
            for record in store.list(collection):
                self._index(record)
        for collection in store.collections():
            for record in store.list(collection):
                self._mark_if_due(record)
        store.subscribe(self._heard)

    # Hearing -------------------------------------------------------------------------------------------------------

    def _heard(self, change: Change) -> None:
        address = change.record.address
        if address.collection in IGNORED:
            return
        if change.op is Op.DELETE:
            gone = self._forget(address, change.record)
            for dependent in self._dependents.get(gone, ()):
                self._mark(dependent)
            for owner in self._owners.pop(address, ()):
                self._dependents.get(owner, set()).discard(address)
                if owner in self._uids:  # its foreground deletion may have waited for this one
                    self._mark(self._uids[owner])
            return
        self._index(change.record)
        self._mark_if_due(change.record)

    def _index(self, record: Record) -> None:
        if record.address.collection in IGNORED:
            return
        self._uids[record.meta.uid] = record.address
        owners = tuple(ref.get("uid", "") for ref in record.meta.owner_references or ())
        before = self._owners.get(record.address, ())
        if owners == before:
            return
        for uid in before:
            self._dependents.get(uid, set()).discard(record.address)
        for uid in owners:
            self._dependents.setdefault(uid, set()).add(record.address)
        if owners:
            self._owners[record.address] = owners
        else:
            self._owners.pop(record.address, None)

    def _forget(self, address: Address, record: Record) -> str:
        uid = record.meta.uid
        if self._uids.get(uid) == address:
            del self._uids[uid]
        return uid

    def _mark_if_due(self, record: Record) -> None:
        """Only owned objects and those being deleted can ever need collecting."""
        if record.address in self._owners or record.meta.deletion_timestamp:
            self._mark(record.address)

    def _mark(self, address: Address) -> None:
        self._dirty[address] = None
        self._wake.set()

    # Doing ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._dirty:
                address = next(iter(self._dirty))
                del self._dirty[address]
                try:
                    await self._collect(address)
                except (errors.Conflict, errors.ServiceUnavailable):
                    self._mark(address)  # changed under our hands, or the disk is full: look again
                    await asyncio.sleep(0.01)
                except errors.NotFound:
                    pass  # gone meanwhile: nothing is left to collect
                except Exception:
                    log.exception("garbage collection of %s failed", address.key())

    async def _collect(self, address: Address) -> None:
        record = self._store.latest(address)
        if record is None:
            return
        info = self._info(address)
        if info is None:
            return
        finalizers = record.meta.finalizers or ()
        if record.meta.deletion_timestamp:
            if FOREGROUND in finalizers or ORPHAN in finalizers:
                await self._finish_owner(info, record.object)
        elif address in self._owners:
            await self._judge_dependent(info, record.object)

    async def _judge_dependent(self, info: KindInfo, obj: Object) -> None:
        """An object lives as long as one of its owners does; references to dead owners are dropped."""
        meta = obj["metadata"]
        refs = meta.get("ownerReferences", [])
        alive = [ref for ref in refs if self._lives(ref, meta.get("namespace", ""))]
        waiting = [ref for ref in alive if self._foreground(ref)]
        if alive and len(alive) == len(refs) and len(waiting) < len(alive):
            return
        if not alive or len(waiting) == len(alive):
            policy = "Foreground" if waiting and meta["uid"] in self._dependents else "Background"
            await self._verbs.delete(
                info, meta.get("namespace", ""), meta["name"], DeleteOptions(propagation=policy, uid=meta["uid"])
            )
            return
        await self._rewrite(info, obj, lambda m: m.update(ownerReferences=alive))

    def _lives(self, ref: Object, namespace: str) -> bool:
        address = self._uids.get(ref.get("uid", ""))
        return address is not None and address.namespace in ("", namespace)

    def _foreground(self, ref: Object) -> bool:
        """The owner waits for its dependents to go first."""
        record = self._store.latest(self._uids[ref["uid"]])
        if record is None:
            return False
        return bool(record.meta.deletion_timestamp) and FOREGROUND in (record.meta.finalizers or ())

    async def _finish_owner(self, info: KindInfo, obj: Object) -> None:
        meta = obj["metadata"]
        dependents = [a for a in self._dependents.get(meta["uid"], ()) if self._store.latest(a) is not None]
        if ORPHAN in meta["finalizers"]:
            for address in dependents:
                await self._orphan(address, meta["uid"])
            await self._rewrite(info, obj, lambda m: _drop_finalizer(m, ORPHAN))
            return
        blocking = [address for address in dependents if self._blocks(address, meta["uid"])]
        if blocking:
            for address in dependents:
                self._mark(address)
            return
        await self._rewrite(info, obj, lambda m: _drop_finalizer(m, FOREGROUND))

    def _blocks(self, address: Address, uid: str) -> bool:
        record = self._store.latest(address)
        refs = (record.meta.owner_references or ()) if record else ()
        return any(ref.get("uid") == uid and ref.get("blockOwnerDeletion") for ref in refs)

    async def _orphan(self, address: Address, uid: str) -> None:
        info, record = self._info(address), self._store.latest(address)
        if info is None or record is None:
            return
        obj = record.object
        kept = [ref for ref in obj["metadata"].get("ownerReferences", []) if ref.get("uid") != uid]
        await self._rewrite(info, obj, lambda m: _set_owners(m, kept))

    async def _rewrite(self, info: KindInfo, obj: Object, change: Callable[[Object], None]) -> None:
        def mutate(current: Object) -> Object:
            change(current["metadata"])
            return current

        meta = obj["metadata"]
        await self._verbs.update(
            info, meta.get("namespace", ""), meta["name"], mutate, options=WriteOptions(manager="garbage-collector")
        )

    def _info(self, address: Address) -> KindInfo | None:
        group, _, plural = address.collection.partition("/")
        return self._registry.any_version(group, plural)


def _drop_finalizer(meta: Object, name: str) -> None:
    meta["finalizers"] = [f for f in meta.get("finalizers", []) if f != name]
    if not meta["finalizers"]:
        del meta["finalizers"]


def _set_owners(meta: Object, owners: list[Object]) -> None:
    if owners:
        meta["ownerReferences"] = owners
    else:
        meta.pop("ownerReferences", None)
