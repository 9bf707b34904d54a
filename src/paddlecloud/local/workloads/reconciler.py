"""A reconciler made of two functions, on the shared caches of a manager: what workload and Knative controllers are.

`observe(obj)` gathers what the decision is about, `decide(obj, observed, now)` is pure.
"""

from __future__ import annotations

from collections.abc import Callable

from paddlecloud.kube.cache import by_owner
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Mapper
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.reconciler import Reconciler, T
from paddlecloud.kube.resource import Key, Object, Resource, key_of
from paddlecloud.kube.selectors import workload_selects
from paddlecloud.local.workloads.ownership import orphans_by_namespace
from paddlecloud.local.workloads.pace import rest

OWNER, ORPHANS = "owner", "orphans"


class WorkloadReconciler(Reconciler[T, Plan]):
    def __init__(
        self,
        manager: Manager,
        resource: Resource,
        *,
        name: str,
        observe: Callable[[Object], T],
        decide: Callable[[Object, T, float], Plan],
        clock: Clock,
        size: Callable[[T], int] = lambda _: 0,
    ) -> None:
        """`size` is the number of objects a decision is about, for those that may be about thousands."""
        super().__init__(manager.client, component=name, clock=clock)
        self.cache = manager.informer(resource).cache
        self.primary = (manager.informer(resource),)
        self._manager = manager
        self._resource = resource
        self._observe = observe
        self._decide = decide
        self._size = size
        self.controller = manager.controller(name, self.reconcile)
        self.controller.watch(self.primary[0], expectations=self.expectations)

    async def observe(self, obj: Object) -> T:
        return self._observe(obj)

    def decide(self, obj: Object, observed: T, now: float) -> Plan:
        return self._decide(obj, observed, now)

    def rest(self, observed: T) -> float:
        return rest(self._size(observed))

    def owns(self, resource: Resource, *, adopting: bool = True) -> Informer:
        """Watch what objects of this kind own and, where they adopt, what has no owner."""
        informer = self._manager.informer(resource, indexers={OWNER: by_owner, ORPHANS: orphans_by_namespace})
        self.controller.watch_owned(informer, owner_kind=self._resource, expectations=self.expectations)
        if adopting:
            self.controller.watch(informer, map=self._adopters, expectations=self.expectations)
        return informer

    def follows(self, resource: Resource, *, map: Mapper) -> Informer:
        """Watch what objects of this kind write without owning it; `map` names the objects it was written for."""
        informer = self._manager.informer(resource)
        self.controller.watch(informer, map=map, expectations=self.expectations)
        return informer

    def _adopters(self, obj: Object) -> list[Key]:
        if not list(orphans_by_namespace(obj)):
            return []
        labels = obj["metadata"].get("labels") or {}
        return [
            key_of(owner)
            for owner in self.cache.list(obj["metadata"].get("namespace", ""))
            if workload_selects(owner, labels)
        ]
