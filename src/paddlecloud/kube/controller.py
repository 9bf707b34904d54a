"""Turns changes of objects into calls of one reconcile function, one key at a time per key, many keys at once.

`reconcile(key)` brings the world closer to what the object of that name asks for and says when to look again:
None — done, until something changes; a number — after so many seconds. Raising means try again, later each time;
raising `TerminalError` means trying again cannot help until something changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.errors import ApiError, Conflict
from paddlecloud.kube.expectations import Expectations
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.logs import begin_reconcile, end_reconcile
from paddlecloud.kube.plan import PlanFailed
from paddlecloud.kube.queue import RateLimitingQueue, ShutDown
from paddlecloud.kube.resource import Key, Object, Resource, controller_of, key_of
from paddlecloud.kube.timeslice import TimeSlice

log = logging.getLogger(__name__)

Reconcile = Callable[[Key], Awaitable[float | None]]
Mapper = Callable[[Object], Iterable[Key]]
Predicate = Callable[[Object | None, Object | None], bool]


SYNC_TIMEOUT = 120.0
"""Seconds for the first list of all that a controller watches; then what is missing is reported, again and again. As
controller-runtime's CacheSyncTimeout, except that waiting goes on: a missing right may be granted."""


class TerminalError(Exception):
    """Trying again cannot help: the object itself must change first."""


class Hooks(Protocol):
    """What a controller reports about itself; `metrics.ControllerMetrics` counts it."""

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """`result` is done, after, error, conflict or terminal."""

    def depth(self, controller: str, ready: int) -> None:
        """How many keys wait, reported whenever one is taken."""

    def waiting(self, controller: str, collections: Sequence[str]) -> None:
        """Which collections could not be listed within `SYNC_TIMEOUT` and why, in a word; none once all are."""


class Controller:
    """Watches are declared before `run`; `run` waits for their caches, works until cancelled, then drains."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        clock: Clock | None = None,
        workers: int = 4,
        hooks: Hooks | None = None,
        backoff_cap: float = 60.0,
        drain_timeout: float = 10.0,
    ) -> None:
        self.name = name
        self.queue: RateLimitingQueue[Key] = RateLimitingQueue(clock, cap=backoff_cap)
        self.terminal: dict[Key, str] = {}  # keys whose last run ended in a TerminalError, and what it said
        self.informers: list[Informer] = []
        self._reconcile = reconcile
        self._clock = clock or SystemClock()
        self._workers = workers
        self._hooks = hooks
        self._drain_timeout = drain_timeout

    def watch(
        self,
        informer: Informer,
        *,
        map: Mapper | None = None,
        when: Predicate | None = None,
        expectations: Expectations | None = None,
    ) -> None:
        """Work on the keys an object maps to (its own by default) whenever it changes and `when(old, new)` holds.

        The old state is mapped too: an object that changed hands concerns both. `expectations` are shown every change,
        before the key is queued. Objects that are already reconciled get low priority during the initial list: a
        controller that is started again on thousands of them serves a new one at once.
        """
        mapper = map or _own_key

        def enqueue(old: Object | None, new: Object | None) -> None:
            keys = {key: None for obj in (old, new) if obj is not None for key in mapper(obj)}
            if expectations is not None:
                for key in keys:
                    expectations.observe(key, old, new)
            if when is None or when(old, new):
                later = not informer.synced and (map is not None or new is None or _is_current(new))
                for key in keys:
                    self.queue.add(key, later=later)

        if informer not in self.informers:
            self.informers.append(informer)
        informer.on_change(enqueue)

    def watch_owned(
        self,
        informer: Informer,
        *,
        owner_kind: str | Resource,
        when: Predicate | None = None,
        expectations: Expectations | None = None,
    ) -> None:
        """Work on the controlling owner of what changes. A `Resource` as `owner_kind` checks the group as well."""

        def owner_key(obj: Object) -> Iterable[Key]:
            owner = controller_of(obj)
            if owner is not None and _is_kind(owner, owner_kind):
                yield Key(obj["metadata"].get("namespace", ""), owner["name"])

        self.watch(informer, map=owner_key, when=when, expectations=expectations)

    async def run(self) -> None:
        await self._wait_for_caches()
        workers = [asyncio.ensure_future(self._work()) for _ in range(self._workers)]
        try:
            # Unlike gather, wait leaves the workers alone when we are cancelled: they get the chance to finish.
            ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in ended:
                worker.result()
        finally:
            await self._stop(workers)

    async def _wait_for_caches(self) -> None:
        reports = asyncio.ensure_future(self._report_missing_caches())
        try:
            for informer in self.informers:
                await informer.wait_synced()
        finally:
            reports.cancel()
            await asyncio.gather(reports, return_exceptions=True)
            if self._hooks is not None:
                self._hooks.waiting(self.name, ())

    async def _report_missing_caches(self) -> None:
        while True:
            await self._clock.sleep(SYNC_TIMEOUT)
            missing = [informer for informer in self.informers if not informer.synced]
            what = "; ".join(f"{i.resource.plural}: {i.failure or 'no answer yet'}" for i in missing)
            log.error("%s does nothing until all it watches is listed. It still waits for %s", self.name, what)
            if self._hooks is not None:
                self._hooks.waiting(self.name, [informer.missing for informer in missing])

    async def _stop(self, workers: Sequence[asyncio.Future[None]]) -> None:
        """Let runs in progress end; what waits is left: the next process finds it again."""
        self.queue.shut_down(discard=True)
        _, late = await asyncio.wait(workers, timeout=self._drain_timeout)
        for worker in late:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        slice_ = TimeSlice()
        while True:
            await slice_.checkpoint()  # a reconcile that finds nothing to do never waits for anything
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            try:
                await self._process(key)
            finally:
                self.queue.done(key)

    async def _process(self, key: Key) -> None:
        started = self._clock.monotonic()
        if self._hooks is not None:
            self._hooks.depth(self.name, len(self.queue))
        token = begin_reconcile(self.name, key)
        try:
            result = await self._outcome(key)
        finally:
            end_reconcile(token)
        if self._hooks is not None:
            self._hooks.reconciled(self.name, result, self._clock.monotonic() - started)

    async def _outcome(self, key: Key) -> str:
        queue = self.queue
        try:
            after = await self._reconcile(key)
        except TerminalError as error:
            queue.forget(key)
            self.terminal[key] = str(error)
            log.error("%s %s: gave up until it changes: %s", self.name, key, error)
            return "terminal"
        except Exception as error:
            queue.add_rate_limited(key, at_least=_retry_after(error))
            if _is_conflict(error):
                log.debug("%s %s: %s", self.name, key, error)
                return "conflict"
            expected = isinstance(error, (ApiError, PlanFailed))  # the message says it all
            log.warning("%s %s failed %d times: %s", self.name, key, queue.failures(key), error, exc_info=not expected)
            return "error"
        self.terminal.pop(key, None)
        queue.forget(key)
        if after is None:
            return "done"
        queue.add_after(key, after)
        return "after"


def _is_current(obj: Object) -> bool:
    """Whether a controller has written a status for this generation of the object."""
    status = obj.get("status") or {}
    generation = obj["metadata"].get("generation")
    return bool(status) and status.get("observedGeneration", generation) == generation


def _own_key(obj: Object) -> Iterable[Key]:
    return (key_of(obj),)


def _is_kind(owner: Object, wanted: str | Resource) -> bool:
    if isinstance(wanted, str):
        return bool(owner["kind"] == wanted)
    group = owner["apiVersion"].rpartition("/")[0]
    return bool(owner["kind"] == wanted.kind and group == wanted.group)


def _is_conflict(error: Exception) -> bool:
    """Somebody else was faster: ordinary, and the cache will catch up."""
    return isinstance(error, Conflict) or (isinstance(error, PlanFailed) and error.only_conflicts)


def _retry_after(error: Exception) -> float:
    return float(getattr(error, "retry_after", None) or 0.0)
