"""The one shape of a pass that all controllers share: observe an object, decide, carry the plan out, report.

A kind says what it observes (`observe`) and what should be done about it (`decide`, a pure function). The order of the
rest is the same for all of them:

- An object that is gone, or was made anew under its name, is forgotten with everything remembered about it.
- While our own writes have not come back through the watch, nothing is decided: see `kube.expectations`.
- Events of the plan are recorded when its writes are done. One that reports success (`if_done`) is skipped if any of
  them failed. One that reports a transition of the status is not: the next pass finds the new status, and would not
  report it again.
- A plan that could not be carried out (a quota, an admission rule, a name that is taken) is reported on the object as a
  Warning event, once for each text until a pass succeeds, and tried again with backoff. Conflicts are not reported:
  somebody else wrote first, and the next pass reads what they wrote.

What is kept in memory may be lost at any moment: it costs a repeated event or an additional pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.expectations import Expectations
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.plan import Plan, PlanFailed, PlannedEvent, PlanResult, carry_out
from paddlecloud.kube.resource import Key, Object

T = TypeVar("T")
P = TypeVar("P", bound=Plan)

FAILED_CREATE = "FailedCreate"


class Reconciler(ABC, Generic[T, P]):
    """`T` is what a kind observes, `P` the plan it decides on. `component` is the source of the events.

    `expectations` belong to every watch of objects that plans write: `controller.watch(…, expectations=…)`.
    """

    def __init__(self, client: Client, *, component: str, clock: Clock | None = None) -> None:
        self.client = client
        self.clock = clock or SystemClock()
        self.expectations = Expectations(clock=self.clock)
        self.recorder = EventRecorder(client, component=component, clock=self.clock)
        self.primary: Sequence[Informer] = ()  # the caches of the objects that are reconciled
        self._uids: dict[Key, set[str]] = {}  # of the objects that the last pass over a key found
        self._refusals: dict[str, str] = {}  # by uid: why the last plan could not be carried out
        self._rests_until: dict[Key, float] = {}

    # What a kind is

    @abstractmethod
    async def observe(self, obj: Object) -> T:
        """Everything the decision is about, decoded once."""

    @abstractmethod
    def decide(self, obj: Object, observed: T, now: float) -> P:
        """What should be done now. Pure."""

    # What a kind may have of its own

    def objects(self, key: Key) -> Sequence[Object]:
        """The objects of this name: none or one, or several where one controller serves several kinds."""
        found = [informer.cache.get(key) for informer in self.primary]
        return [obj for obj in found if obj is not None]

    async def decided(self, obj: Object, observed: T) -> P:
        """For kinds whose decisions are large: elsewhere than on the event loop."""
        return self.decide(obj, observed, self.clock.now())

    async def act(self, obj: Object, observed: T, plan: P) -> float | None:
        """Do what the plan says; returns the seconds until the next pass. For writes outside of the API server too."""
        await self.carry_out(obj, plan)
        return plan.after

    def refused(self, obj: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
        """The events that report a plan which could not be carried out. Asked for after every attempt that fails."""
        return [PlannedEvent(FAILED_CREATE, str(failed), type="Warning")]

    def rest(self, observed: T) -> float:
        """Seconds before the next pass, for objects whose passes are expensive."""
        return 0.0

    def forget(self, key: Key, uid: str) -> None:
        """This object is gone: drop what was remembered of it."""

    # One pass

    async def reconcile(self, key: Key) -> float | None:
        """For a `Controller`: None, or the seconds after which the object is to be looked at again."""
        objects = self.objects(key)
        self._forget_others(key, objects)
        if not objects:
            return None
        if (wait := self.expectations.pending(key)) is not None:
            return wait  # our own writes are still on their way back; they bring the next pass
        if (wait := self._rests_until.get(key, 0.0) - self.clock.monotonic()) > 0:
            return wait
        waits = [await self._reconcile(key, obj) for obj in objects]
        return min((wait for wait in waits if wait is not None), default=None)

    async def _reconcile(self, key: Key, obj: Object) -> float | None:
        observed = await self.observe(obj)
        if (seconds := self.rest(observed)) > 0:
            self._rests_until[key] = self.clock.monotonic() + seconds
        plan = await self.decided(obj, observed)
        try:
            after = await self.act(obj, observed, plan)
        except PlanFailed as failed:
            await self._report(obj, failed)
            raise
        self._refusals.pop(obj["metadata"]["uid"], None)
        return after

    async def carry_out(self, obj: Object, plan: Plan) -> PlanResult:
        """The plan's writes, then its events."""
        return await carry_out(plan, self.client, owner=obj, recorder=self.recorder, expectations=self.expectations)

    def refusal_of(self, obj: Object) -> str:
        """Why the last plan for the object could not be carried out; empty when it could."""
        return self._refusals.get(obj["metadata"]["uid"], "")

    async def _report(self, obj: Object, failed: PlanFailed) -> None:
        if failed.only_conflicts:
            return
        uid, text = obj["metadata"]["uid"], str(failed)
        events = self.refused(obj, failed)
        if self._refusals.get(uid) == text:
            return
        self._refusals[uid] = text
        for event in events:
            await self.recorder.record(event.about or obj, event.reason, event.message, type=event.type)

    def _forget_others(self, key: Key, objects: Sequence[Object]) -> None:
        """Drop what is known about objects that had this name before."""
        found = {obj["metadata"]["uid"] for obj in objects}
        for uid in self._uids.get(key, set()) - found:
            self._refusals.pop(uid, None)
            self.forget(key, uid)
        if found:
            self._uids[key] = found
            return
        for known in (self._uids, self._rests_until):
            known.pop(key, None)
        self.expectations.forget(key)
