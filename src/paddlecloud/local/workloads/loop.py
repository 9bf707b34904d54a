"""The hands that all workload controllers share: read the caches, let `decide` judge, carry the plan out.

A kind brings two functions: `observe(obj)` gathers what its decision is about, `decide(obj, observed, now)` is pure.
What it keeps in memory (open expectations, the last refusal) may be lost at any moment and costs nothing but a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from paddlecloud.kube.cache import by_owner
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Mapper
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.expectations import Expectations
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Plan, PlanFailed, carry_out
from paddlecloud.kube.resource import Key, Object, Resource, key_of
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.workloads.ownership import orphans_by_namespace
from paddlecloud.local.workloads.pace import Pace

T = TypeVar("T")

OWNER, ORPHANS = "owner", "orphans"


class Loop(Generic[T]):
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
        """`size` says how many objects a decision is about, for those that may be about thousands."""
        self.primary = manager.informer(resource)
        self.refusals: dict[Key, str] = {}  # why the last pass of an object could not be carried out
        self._manager = manager
        self._resource = resource
        self._observe = observe
        self._decide = decide
        self._clock = clock
        self._size = size
        self._pace: Pace[Key] = Pace(clock)
        self._expectations = Expectations(clock=clock)
        self._recorder = EventRecorder(manager.client, component=name, clock=clock)
        self.controller = manager.controller(name, self.reconcile)
        self.controller.watch(self.primary, expectations=self._expectations)

    def owns(self, resource: Resource, *, adopting: bool = True) -> Informer:
        """Follow what objects of this kind own and, where they adopt, what nobody owns."""
        informer = self._manager.informer(resource, indexers={OWNER: by_owner, ORPHANS: orphans_by_namespace})
        self.controller.watch_owned(informer, owner_kind=self._resource, expectations=self._expectations)
        if adopting:
            self.controller.watch(informer, map=self._adopters, expectations=self._expectations)
        return informer

    def follows(self, resource: Resource, *, map: Mapper) -> Informer:
        """Follow what objects of this kind write without owning it; `map` says whose it is."""
        informer = self._manager.informer(resource)
        self.controller.watch(informer, map=map, expectations=self._expectations)
        return informer

    def _adopters(self, obj: Object) -> list[Key]:
        if not list(orphans_by_namespace(obj)):
            return []
        labels = obj["metadata"].get("labels") or {}
        return [
            key_of(owner)
            for owner in self.primary.cache.list(obj["metadata"].get("namespace", ""))
            if LabelSelector.from_dict(owner["spec"].get("selector")).matches(labels)
        ]

    async def reconcile(self, key: Key) -> float | None:
        obj = self.primary.cache.get(key)
        if obj is None:
            self._expectations.forget(key)
            self._pace.forget(key)
            self.refusals.pop(key, None)
            return None
        if (wait := self._expectations.pending(key)) is not None:
            return wait  # our own writes are still on their way back; they bring the next pass
        if (wait := self._pace.wait(key)) is not None:
            return wait
        observed = self._observe(obj)
        self._pace.note(key, self._size(observed))
        plan = self._decide(obj, observed, self._clock.now())
        try:
            await carry_out(plan, self._manager.client, owner=obj, expectations=self._expectations)
        except PlanFailed as failed:
            await self._complain(key, obj, str(failed))
            raise
        self.refusals.pop(key, None)
        for event in plan.events:  # they tell what was done, so they wait until it is
            await self._recorder.record(event.about or obj, event.reason, event.message, type=event.type)
        return plan.after

    async def _complain(self, key: Key, obj: Object, text: str) -> None:
        """A refusal (a quota, an invalid template) is said on the object: once, not once per attempt."""
        if self.refusals.get(key) != text:
            self.refusals[key] = text
            await self._recorder.record(obj, "FailedCreate", text, type="Warning")
