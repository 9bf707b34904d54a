"""Garbage collection by owner references: background, foreground and orphan.

The rules are those of kube-controller-manager (pkg/controller/garbagecollector/garbagecollector.go).

The collector observes every commit synchronously and keeps two indexes: which address has which uid, and which
addresses depend on which uid. Work is queued by address; each step re-reads the newest state, so it may be repeated or
interrupted at any point. At start all objects are looked at once, so a crash between a deletion and its consequences
loses nothing.

Objects that own each other in a circle are collected, too. kube-controller-manager clears blockOwnerDeletion when it
comes to the member that closes the circle, and misses a circle whose members are all deleted by hand at once; here an
object in foreground deletion does not wait for a dependent that is itself waiting for that object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.kube.timeslice import TimeSlice
from paddlecloud.kube.worker import Worker
from paddlecloud.local.apiserver.housekeeping.owner_cycles import in_a_cycle
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.verbs import FOREGROUND, ORPHAN, DeleteOptions, Verbs
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress, Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

IGNORED = frozenset(("/events", "events.k8s.io/events", "coordination.k8s.io/leases"))
"""Collections that never own anything and are written too often to be worth indexing."""


MANY = 16
"""Owners that are looked at in the middle of a commit; objects with more are left to the worker. More dependents of one
owner than this let others overtake them: somebody's ten thousand must not hold up what everybody else deletes."""

Owners = dict[str, bool]
"""The uids that an object's ownerReferences name, and whether the object blocks that owner's foreground deletion."""


class GarbageCollector:
    def __init__(self, store: Store, registry: Registry, verbs: Verbs) -> None:
        self._store = store
        self._registry = registry
        self._verbs = verbs
        self._uids: dict[str, ObjectAddress] = {}
        self._owners: dict[ObjectAddress, Owners] = {}
        self._dependents: dict[str, set[ObjectAddress]] = {}
        self._worker: Worker[ObjectAddress] = Worker("garbage collection of", self._collect)
        for collection in store.collections():
            for record in store.list(collection):
                self._index(record)
        for collection in store.collections():
            for record in store.list(collection):
                self._mark_if_due(record)
        store.subscribe(self._observe)

    # Following the store

    def _observe(self, change: Change) -> None:
        address = change.record.address
        if address.collection in IGNORED:
            return
        if change.op is Op.DELETE:
            dependents = self._dependents.get(self._forget(address, change.record), ())
            for dependent in dependents:
                self._mark(dependent, later=len(dependents) > MANY)
            self._set_owners(address, {})
            return
        self._index(change.record)
        self._mark_if_due(change.record)

    def _index(self, record: Record) -> None:
        if record.address.collection in IGNORED:
            return
        self._uids[record.meta.uid] = record.address
        self._set_owners(record.address, _owners_of(record.meta.owner_references or ()))

    def _set_owners(self, address: ObjectAddress, owners: Owners) -> None:
        before = self._owners.get(address, {})
        if owners == before:
            return
        for uid, blocked in before.items():
            if uid not in owners:
                self._dependents[uid].discard(address)
                if not self._dependents[uid]:
                    del self._dependents[uid]
            if blocked and not owners.get(uid) and uid in self._uids:
                self._mark(self._uids[uid])  # its foreground deletion may have waited for this one
        for uid in owners:
            self._dependents.setdefault(uid, set()).add(address)
        if owners:
            self._owners[address] = owners
        else:
            self._owners.pop(address, None)

    def _forget(self, address: ObjectAddress, record: Record) -> str:
        uid = record.meta.uid
        if self._uids.get(uid) == address:
            del self._uids[uid]
        return uid

    def _mark_if_due(self, record: Record) -> None:
        """Only what may need work: others would wait behind every pod that a controller makes or reports on."""
        due = _waits(record) if record.meta.deletion_timestamp else not self._is_settled(record.address)
        if due:
            self._mark(record.address)

    def _is_settled(self, address: ObjectAddress) -> bool:
        """Whether all owners live and none waits for its dependents. The end of an owner marks them."""
        owners = self._owners.get(address, {})
        if len(owners) > MANY:
            return False
        found = [self._uids.get(uid) for uid in owners]
        return all(
            owner is not None and owner.namespace in ("", address.namespace) and not self._foreground(owner)
            for owner in found
        )

    def _mark(self, address: ObjectAddress, *, later: bool = False) -> None:
        self._worker.add(address, later=later)

    # Collecting

    async def run(self) -> None:
        await self._worker.run()

    async def _collect(self, address: ObjectAddress) -> None:
        record = self._store.latest(address)
        if record is None:
            return
        info = self._info(address)
        if info is None:
            return
        if record.meta.deletion_timestamp:
            if _waits(record):
                await self._finish_owner(info, address, record.object)
        elif address in self._owners:
            await self._judge_dependent(info, record.object)

    async def _judge_dependent(self, info: KindInfo, obj: Object) -> None:
        """An object lives as long as one of its owners does; references to dead owners are dropped."""
        meta = obj["metadata"]
        refs = meta.get("ownerReferences", [])
        if not info.resource.namespaced and any(map(self._is_namespaced, refs)):
            return  # as Kubernetes since 1.20: such an owner cannot be looked up, so it does not count as absent
        alive = [ref for ref in refs if self._lives(ref, meta.get("namespace", ""))]
        solid = [ref for ref in alive if not self._foreground(self._uids[ref["uid"]])]
        if solid and len(solid) == len(refs):
            return
        if not solid:
            policy = "Foreground" if alive and meta["uid"] in self._dependents else "Background"
            await self._verbs.delete(
                info, meta.get("namespace", ""), meta["name"], DeleteOptions(propagation=policy, uid=meta["uid"])
            )
            return
        # As attemptToDeleteItem of kube-controller-manager's garbage collector: owners that wait in foreground are
        # dropped as well, or they would wait for ever.
        await self._rewrite(info, obj, lambda m: m.update(ownerReferences=solid))

    def _lives(self, ref: Object, namespace: str) -> bool:
        address = self._uids.get(ref.get("uid", ""))
        return address is not None and address.namespace in ("", namespace)

    def _is_namespaced(self, ref: Object) -> bool:
        group, _, version = str(ref.get("apiVersion", "")).rpartition("/")
        found = self._registry.by_kind(group, version, str(ref.get("kind", "")))
        return found is not None and found.resource.namespaced

    def _foreground(self, address: ObjectAddress) -> bool:
        """The object waits for its dependents to go first."""
        record = self._store.latest(address)
        if record is None:
            return False
        return bool(record.meta.deletion_timestamp) and FOREGROUND in (record.meta.finalizers or ())

    async def _finish_owner(self, info: KindInfo, owner: ObjectAddress, obj: Object) -> None:
        meta = obj["metadata"]
        slice_ = TimeSlice()
        dependents = []
        for address in list(self._dependents.get(meta["uid"], ())):
            await slice_.checkpoint()
            if owner.namespace in ("", address.namespace) and self._store.latest(address) is not None:
                dependents.append(address)
        if ORPHAN in meta["finalizers"]:
            for address in dependents:
                await self._orphan(address, meta["uid"])
            await self._rewrite(info, obj, lambda m: _drop_finalizer(m, ORPHAN))
            return
        blocking = {address for address in dependents if self._owners.get(address, {}).get(meta["uid"])}
        if not self._may_go(owner, blocking):
            for address in dependents:
                await slice_.checkpoint()
                self._mark_if_alive(address, later=len(dependents) > MANY)
            return
        await self._rewrite(info, obj, lambda m: _drop_finalizer(m, FOREGROUND))

    def _may_go(self, owner: ObjectAddress, blocking: set[ObjectAddress]) -> bool:
        """Whether no dependent blocks the end of a foreground deletion but those that wait for this object."""
        return all(map(self._foreground, blocking)) and in_a_cycle(owner, blocking, self._waiting_owners)

    def _waiting_owners(self, address: ObjectAddress) -> Iterator[ObjectAddress | None]:
        """For each reference of the object the owner whose foreground deletion it blocks, if it blocks one."""
        for uid, blocks in self._owners.get(address, {}).items():
            owner = self._uids.get(uid) if blocks else None
            yield owner if owner is not None and self._foreground(owner) else None

    def _mark_if_alive(self, address: ObjectAddress, *, later: bool) -> None:
        """What is on its way already needs no second judgement; marking it again would go round in circles."""
        record = self._store.latest(address)
        if record is not None and not record.meta.deletion_timestamp:
            self._mark(address, later=later)

    async def _orphan(self, address: ObjectAddress, uid: str) -> None:
        info, record = self._info(address), self._store.latest(address)
        if info is None or record is None:
            return
        obj = record.object
        kept = [ref for ref in obj["metadata"].get("ownerReferences", []) if ref.get("uid") != uid]
        await self._rewrite(info, obj, lambda m: _set_owners(m, kept))

    async def _rewrite(self, info: KindInfo, obj: Object, change: Callable[[Object], None]) -> None:
        meta = obj["metadata"]

        def mutate(current: Object) -> Object:
            if current["metadata"]["uid"] != meta["uid"]:  # made anew meanwhile
                raise errors.conflict(info.resource.plural, meta["name"], group=info.resource.group)
            change(current["metadata"])
            return current

        await self._verbs.update(
            info, meta.get("namespace", ""), meta["name"], mutate, options=WriteOptions(manager="garbage-collector")
        )

    def _info(self, address: ObjectAddress) -> KindInfo | None:
        group, _, plural = address.collection.partition("/")
        return self._registry.any_version(group, plural)


def _waits(record: Record) -> bool:
    """Whether the collector has to finish the deletion of an object: its dependents go first, or are let go."""
    finalizers = record.meta.finalizers or ()
    return FOREGROUND in finalizers or ORPHAN in finalizers


def _owners_of(refs: Iterable[Object]) -> Owners:
    owners: Owners = {}
    for ref in refs:
        uid = ref.get("uid", "")
        owners[uid] = owners.get(uid, False) or bool(ref.get("blockOwnerDeletion"))
    return owners


def _drop_finalizer(meta: Object, name: str) -> None:
    meta["finalizers"] = [f for f in meta.get("finalizers", []) if f != name]
    if not meta["finalizers"]:
        del meta["finalizers"]


def _set_owners(meta: Object, owners: list[Object]) -> None:
    if owners:
        meta["ownerReferences"] = owners
    else:
        meta.pop("ownerReferences", None)
